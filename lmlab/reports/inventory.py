"""What was run: settings, sizes, runs and machines, as the store has them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from lmlab.core.config import Config
from lmlab.reports.groups import Group, chosen, value_text
from lmlab.reports.numbers import listed
from lmlab.runs.run import Run


@dataclass(frozen=True)
class Setting:
    """A field of the spec that is not at its default in at least one model."""

    field: str
    default: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Size:
    """How large a model and its data are. Validation and training examples are those of the first seed."""

    name: str
    parameters: int
    train: int
    val: int


@dataclass(frozen=True)
class Machine:
    """Where runs were trained, and which."""

    facts: tuple[tuple[str, str], ...]
    runs: str


@dataclass(frozen=True)
class Inventory:
    """Everything needed to do it again."""

    columns: tuple[str, ...]
    settings: tuple[Setting, ...]
    sizes: tuple[Size, ...]
    runs: tuple[tuple[Group, Run], ...]
    machines: tuple[Machine, ...]
    specs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Inventory:
        runs = tuple((group, run) for group in groups for run in group.runs)
        return cls(
            tuple(group.name for group in groups),
            tuple(_settings(groups)),
            tuple(_size(group) for group in groups),
            runs,
            tuple(_machines(runs)),
            tuple((group.name, json.dumps(group.runs[0].spec.to_json(), indent=2)) for group in groups),
        )

    def csv(self) -> str:
        """A line per run: what it is, how it went, its best values and the steps they were first reached."""
        text = StringIO()
        extrema = list(self.runs[0][1].extrema())
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("run", "model", "seed", "status", "step", "total", "seconds", *extrema))
        for group, run in self.runs:
            row, best = run.row, run.extrema()
            values = ("" if best[name] is None else best[name] for name in extrema)
            writer.writerow((run.id, group.name, run.seed, run.status, row.step, row.total, row.seconds, *values))
        return text.getvalue()


def _settings(groups: Sequence[Group]) -> list[Setting]:
    """Fields in the order of the spec; a dash where a model has no such field."""
    fields = [chosen(group.runs[0]) for group in groups]
    defaults: dict[str, Any] = {}
    for group in reversed(groups):  # so that the first model's order and defaults win
        defaults = {**_defaults(group.runs[0]), **defaults} | _defaults(group.runs[0])
    found = []
    for name, default in defaults.items():
        own = [each[name] for each in fields if name in each]
        if name.endswith(".name") or any(value != default for value in own):
            values = tuple(value_text(each[name]) if name in each else "—" for each in fields)
            found.append(Setting(name, "" if name.endswith(".name") else value_text(default), values))
    return found


def _defaults(run: Run) -> dict[str, Any]:
    sections: Mapping[str, Config] = {"task": run.spec.task, "model": run.spec.model, "training": run.spec.training}
    return {
        f"{section}.{name}": list(value) if isinstance(value, tuple) else value
        for section, config in sections.items()
        for name, info in type(config).model_fields.items()
        for value in (info.get_default(call_default_factory=True),)
    }


def _size(group: Group) -> Size:
    spec = group.runs[0].spec
    split = spec.task.split(spec.seeds.split)
    parameters = sum(parameter.numel() for parameter in spec.build_model().parameters())
    return Size(group.name, parameters, len(split.train_rows), len(split.val_rows))


def _machines(runs: Sequence[tuple[Group, Run]]) -> list[Machine]:
    """Distinct machines; the runs are named only where there is more than one."""
    by_facts: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for _, run in runs:
        if run.row.machine:
            facts = tuple((name.replace("_", " "), str(value)) for name, value in run.row.machine.items())
            by_facts.setdefault(facts, []).append(run)
    every = len(by_facts) == 1
    return [
        Machine(facts, "all runs" if every else listed(run.id for run in members))
        for facts, members in by_facts.items()
    ]


def trained_on(run: Run) -> str:
    """The day the run was begun or last gone on with."""
    return datetime.fromtimestamp(run.row.started, UTC).date().isoformat() if run.row.started else "—"
