"""`train(specs)` yields records; it never prints, plots or saves.

    Evaluation   metric rows of all runs of a stack at one step
    Snapshot     everything needed to go on with one run (see `engine.stack`)
    Ended        a run is finished, diverged or interrupted
    Tick         a sign of life between evaluations

An Evaluation of step k comes before the Snapshot of step k, and a Snapshot before the Ended of its run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log
from typing import Literal

import torch

from lmlab.core.device import Precision, resolve_device, resolve_precision
from lmlab.data.task import Split
from lmlab.engine.spec import RunSpec
from lmlab.engine.stack import Readout, Snapshot, Stack, shape_of
from lmlab.engine.strategies import Strategy, driver, resolve_strategy

TICK_SECONDS = 0.1


@dataclass(frozen=True)
class Row:
    """One number. split: train, val, or run for numbers of no split; group: all, or a slice of the task."""

    run: str
    step: int
    split: str
    group: str
    metric: str
    value: float


@dataclass(frozen=True)
class Evaluation:
    step: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Ended:
    run: str
    status: Literal["finished", "diverged", "interrupted"]
    step: int


@dataclass(frozen=True)
class Tick:
    runs: tuple[str, ...]
    step: int
    total: int


Record = Evaluation | Snapshot | Ended | Tick


def never() -> bool:
    return False


def train(
    specs: Sequence[RunSpec],
    *,
    device: str = "auto",
    strategy: Strategy = "auto",
    resume: Mapping[str, Snapshot] | None = None,
    stop: Callable[[], bool] = never,
    capture: bool = True,
) -> Iterator[Record]:
    """Train runs of any shapes, equal shapes together. `stop()` is asked after every step.

    Snapshots in `resume` are gone on from; the steps before them are not yielded again. `capture=False` drives a
    CUDA stack without graphs, which is slower and gives the same numbers.
    """
    place = resolve_device(device)
    precisions: dict[str, Precision] = {
        spec.run_id: resolve_precision(spec.training.precision, place) for spec in specs
    }
    splits = {spec.run_id: spec.task.split(spec.seeds.split) for spec in specs}
    resume = resume or {}
    groups: dict[tuple[str, int, bool], list[RunSpec]] = {}
    for spec in {spec.run_id: spec for spec in specs}.values():
        split, snapshot = splits[spec.run_id], resume.get(spec.run_id)
        spec.batches_per_epoch(len(split.train_rows))  # refuses a batch that cannot be filled before any work
        key = (shape_of(spec, split), snapshot.step if snapshot else 0, len(split.val_rows) > 0)
        groups.setdefault(key, []).append(spec)
    if resolve_strategy(strategy, place) == "loop":
        stacks = [[spec] for group in groups.values() for spec in group]
    else:
        stacks = list(groups.values())
    for members in stacks:
        if stop():
            return
        yield from _train_stack(
            members,
            [splits[spec.run_id] for spec in members],
            place,
            precisions[members[0].run_id],
            resolve_strategy(strategy, place) == "stacked",
            [resume[spec.run_id] for spec in members if spec.run_id in resume],
            stop,
            capture,
        )


def _train_stack(
    specs: Sequence[RunSpec],
    splits: Sequence[Split],
    device: torch.device,
    precision: Precision,
    vectorised: bool,
    resume: Sequence[Snapshot],
    stop: Callable[[], bool],
    capture: bool,
) -> Iterator[Record]:
    stack = Stack(specs, splits, device, precision, vectorised, resume)
    step, total, training = resume[0].step if resume else 0, stack.total, stack.training
    if step:
        stack.prepare(step)
    drive = driver(stack, capture)
    names = tuple(spec.run_id for spec in specs)
    alive = dict(enumerate(names))
    last_sign = time.monotonic()

    def measure() -> Iterator[Record]:
        readout = stack.readout(step, drive.evaluate())
        failed = _diverged(readout, total)
        healthy = [(member, run) for member, run in alive.items() if not failed[member]]
        yield Evaluation(step, tuple(row for member, run in healthy for row in _rows(readout, member, run)))
        yield from bury(failed)

    def bury(failed: Sequence[int]) -> Iterator[Record]:
        for member in [member for member in alive if failed[member]]:
            yield Ended(alive.pop(member), "diverged", failed[member])

    if step == 0:
        yield from measure()
    while step < total and alive:
        drive.advance(step)
        step += 1
        if training.is_evaluated(step, total, stack.per_epoch):
            yield from measure()
            last_sign = time.monotonic()
        stopping = step < total and stop()
        if alive and (training.is_saved(step, total, stack.per_epoch) or stopping):
            yield from bury(stack.diverged_at.tolist())  # a run that failed since the last evaluation has no checkpoint
            for member in alive:
                yield stack.snapshot(member, step)
        if stopping:
            for run in alive.values():
                yield Ended(run, "interrupted", step)
            return
        if time.monotonic() - last_sign > TICK_SECONDS:
            if device.type == "cuda":
                torch.cuda.synchronize()  # replays are queued far ahead of the GPU; a tick is about work done
            last_sign = time.monotonic()
            yield Tick(names, step, total)
    for run in alive.values():
        yield Ended(run, "finished", step)


def _diverged(readout: Readout, total: int) -> list[int]:
    """For each run the first update that was not finite (loss, gradient or new weights), 0 while there is none.

    Weights may be finite and the loss not: then the next update fails; after the last one, the last step counts.
    """
    failed = readout.diverged_at.tolist()
    if readout.step == total:
        broken = ~torch.isfinite(readout.losses).all(1)
        failed = [at or (total if bad else 0) for at, bad in zip(failed, broken.tolist(), strict=True)]
    return failed


def _rows(readout: Readout, member: int, run: str) -> Iterator[Row]:
    """The finite numbers of one run: nan and infinity are not measurements."""
    return (row for row in _all_rows(readout, member, run) if isfinite(row.value))


def _all_rows(readout: Readout, member: int, run: str) -> Iterator[Row]:
    step = readout.step
    ratio = readout.measures.tokens_per_byte
    for index, (split, group) in enumerate(readout.measures.names):
        loss = float(readout.losses[member, index])
        yield Row(run, step, split, group, "loss", loss)
        yield Row(run, step, split, group, "accuracy", float(readout.accuracies[member, index]))
        if ratio is not None:
            yield Row(run, step, split, group, "perplexity", exp(min(loss, 700.0)))
            yield Row(run, step, split, group, "bits_per_byte", loss * float(ratio[member, index]) / log(2))
    yield Row(run, step, "run", "all", "norm", float(readout.norms[member]))
    if step:  # step 0 is the untrained model: there was no update to speak of
        yield Row(run, step, "train", "all", "batch_loss", float(readout.batch_losses[member]))
        yield Row(run, step, "run", "all", "gradient_norm", float(readout.gradient_norms[member]))
        yield Row(run, step, "run", "all", "lr", float(readout.rates[member]))
