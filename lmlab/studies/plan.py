"""From runs to work: what is left to do, and what can be trained together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lmlab.engine.spec import RunSpec
from lmlab.engine.stack import shape_of
from lmlab.engine.strategies import Strategy, resolve_strategy
from lmlab.runs.lab import Lab
from lmlab.runs.store import RunRow
from lmlab.studies.study import Labelled

WORTH_A_WORKER = 2e12
"""Floating-point operations below which a worker process costs more (its start is about 3 s) than it saves."""


@dataclass(frozen=True)
class Plan:
    """Groups of runs of equal shape that are not done yet, in the order of the study."""

    groups: tuple[tuple[RunSpec, ...], ...]
    finished: int

    @property
    def waiting(self) -> int:
        return sum(len(group) for group in self.groups)


def plan(runs: Sequence[Labelled], lab: Lab, device: torch.device, strategy: Strategy = "auto") -> Plan:
    """What of these runs is left to train. A group is trained at once where runs are stacked, else each run alone."""
    specs = {spec.run_id: spec for _, spec in runs}
    done = {row.run for row in lab.store.runs(list(specs)) if row.done}
    stacked = resolve_strategy(strategy, device) == "stacked"
    groups: dict[str, list[RunSpec]] = {}
    for run, spec in specs.items():
        if run not in done:
            groups.setdefault(shape_of(spec, spec.task.split(spec.seeds.split)) if stacked else run, []).append(spec)
    return Plan(tuple(map(tuple, groups.values())), len(done))


def seconds_left(rows: Sequence[RunRow], runs: int) -> float | None:
    """An estimate from the speed so far, for a study of `runs`, of which the store knows `rows`; None at first."""
    trained = [row for row in rows if row.seconds > 0 and row.step > 0]
    if not trained:
        return None
    per_run = sum(row.seconds / row.step * row.total for row in trained) / len(trained)
    started = sum(row.seconds / row.step * (row.total - row.step) for row in trained if not row.done)
    running = max(1, sum(row.state == "running" for row in rows))
    return (started + per_run * (runs - len(trained))) / running


def work(spec: RunSpec) -> float:
    """Floating-point operations of a run's training, to the nearest power of two or so: 6 · P · B · S · T."""
    rows = len(spec.task.split(spec.seeds.split).train_rows)
    parameters = sum(parameter.numel() for parameter in spec.build_model().parameters())
    tokens = min(rows, spec.training.batch_size) * spec.task.length
    return 6.0 * parameters * tokens * spec.total_steps(rows)
