"""What happened, in sentences made of measured values.

    memorised     A_train reached 1: every training example right
    generalised   A_val reached the study's threshold
    delay         steps from the first to the second

Which model generalises first is decided from 5 seeds on, when the 95 % t-interval of the paired difference (same seeds)
excludes 0. Below that the seeds are said to agree, or it is not decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from lmlab.reports.figures import FEW_SEEDS, reached
from lmlab.reports.groups import Group
from lmlab.reports.numbers import between, listed, written
from lmlab.reports.tables import Comparison
from lmlab.runs.extrema import Summary, first_reaching
from lmlab.runs.run import Run
from lmlab.studies.study import Study

DECIDING_SEEDS = 5
ALL_RIGHT = 1 - 1e-6
"""A_train from here on is 1 up to rounding of the mean over examples."""


@dataclass(frozen=True)
class Finding:
    """What is found of one model, or of a pair of them."""

    subject: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """Which of two models generalises first."""

    state: Literal["decided", "agree", "undecided"]
    text: str


def findings(study: Study, groups: Sequence[Group], comparison: Comparison) -> list[Finding]:
    """A finding per model, one per pair of models under the same setting, and one on the expected bands."""
    told = [group for group in groups if _with_curve(group, "train")]
    found = [Finding(group.name, _of_group(group, study.threshold)) for group in told]
    for one, other in combinations(told, 2):
        if one.setting == other.setting and _with_curve(one, "val") and _with_curve(other, "val"):
            verdict = generalises_first(one, other, study.threshold)
            found.append(Finding(f"Which generalises first, {one.name} or {other.name}?", (verdict.text,)))
    return found + _of_bands(comparison)


def generalises_first(one: Group, other: Group, threshold: float) -> Verdict:
    """The verdict on the first step with A_val ≥ threshold, over the seeds that both models have finished."""
    ours, theirs = _first_steps(one, threshold), _first_steps(other, threshold)
    pairs = [(ours[seeds], theirs[seeds]) for seeds in ours if seeds in theirs]
    names = [dict(seeds)["init"] for seeds in ours if seeds in theirs]
    if not pairs:
        return Verdict("undecided", "Not decided: the two have no finished seed in common.")
    if all(pair == (None, None) for pair in pairs):
        return Verdict("undecided", f"Not decided: neither reached A_val ≥ {threshold:g}.")
    if len(pairs) >= DECIDING_SEEDS:
        return _by_interval(one, other, pairs)
    signs = {_sign(pair) for pair in pairs}
    each = "; ".join(f"seed {seed}: {_pair_text(pair)}" for seed, pair in zip(names, pairs, strict=True))
    steps = f"first step with A_val ≥ {threshold:g}, {one.name} against {other.name}: {each}"
    if len(pairs) == 1:
        return Verdict("undecided", f"Not decided by a single seed ({steps}).")
    if len(signs) == 1 and 0 not in signs:
        all_seeds = "Both" if len(pairs) == 2 else f"All {len(pairs)}"
        winner = one.name if signs == {-1} else other.name
        return Verdict("agree", f"{all_seeds} seeds agree: {winner} generalises first ({steps}).")
    return Verdict("undecided", f"Not decided: the seeds do not agree ({steps}).")


def _by_interval(one: Group, other: Group, pairs: Sequence[tuple[int | None, int | None]]) -> Verdict:
    differences = [a - b for a, b in pairs if a is not None and b is not None]
    missed = len(pairs) - len(differences)
    if missed:
        return Verdict(
            "undecided",
            f"Not decided: in {missed} of {len(pairs)} seeds one of the two did not reach the threshold, "
            "so their difference has no interval.",
        )
    summary = Summary.of(differences)
    assert summary.interval is not None
    low, high = summary.interval
    paired = (
        f"paired difference {one.name} − {other.name}: {written('step', summary.mean)} steps, "
        f"95 % interval {between('step', low, high)}, {len(pairs)} seeds"
    )
    if low <= 0 <= high:
        return Verdict("undecided", f"Not decided: the interval of the difference holds 0 ({paired}).")
    return Verdict("decided", f"Decided: {one.name if high < 0 else other.name} generalises first ({paired}).")


def _of_group(group: Group, threshold: float) -> tuple[str, ...]:
    runs = _with_curve(group, "train")
    best = [(run, run.extrema()) for run in runs]
    steps = {run.id: int(values["t_accuracy_train"] or 0) for run, values in best}
    learnt = [run for run, values in best if (values["accuracy_train"] or 0) >= ALL_RIGHT]
    if not _with_curve(group, "val"):
        return _memorised(runs, learnt, steps), "There was no validation."
    firsts = {run.id: first_reaching(run.curve("accuracy", "val"), threshold) for run in runs}
    sentences = [_memorised(runs, learnt, steps), _generalised(runs, firsts, threshold)]
    delays = {run.id: first - steps[run.id] for run in learnt if (first := firsts[run.id]) is not None}
    if len(delays) == len(runs) or (delays and len(runs) < FEW_SEEDS):
        sentences.append(f"Delay between the two, in steps: {_over(runs, delays)}.")
    return tuple(sentences)


def _memorised(runs: Sequence[Run], learnt: Sequence[Run], steps: Mapping[str, int]) -> str:
    if len(learnt) == len(runs):
        return f"Memorised: A_train reached 1.0000 first at step {_over(runs, steps)}."
    best = {run.id: float(run.extrema()["accuracy_train"] or 0) for run in runs}
    text = f"the best A_train was {_over(runs, best, 'accuracy')}."
    share = f"Memorised in {len(learnt)} of {len(runs)} seeds" if learnt else "Did not memorise"
    return f"{share}: {text}"


def _generalised(runs: Sequence[Run], firsts: Mapping[str, int | None], threshold: float) -> str:
    found = reached(runs, threshold)
    there = {run: step for run, step in firsts.items() if step is not None}
    if not found.missing:
        return f"Generalised: A_val ≥ {threshold:g} first at step {_over(runs, there)}."
    best = {run.id: float(run.extrema()["accuracy_val"] or 0) for run in runs}
    rose = f"the best A_val was {_over(runs, best, 'accuracy')}"
    if not there:
        return f"Did not generalise: A_val ≥ {threshold:g} was not reached in {found.limit:,} steps; {rose}."
    share = f"Generalised in {len(there)} of {len(runs)} seeds: A_val ≥ {threshold:g} first at step"
    if len(runs) < FEW_SEEDS:
        each = [
            f"{written('step', step)} (seed {run.seed})" if step is not None else f"none (seed {run.seed})"
            for run, step in ((run, firsts[run.id]) for run in runs)
        ]
        return f"{share} {listed(each)}, not reached in {found.limit:,} steps otherwise; {rose}."
    return f"{share} {found} as the median over all seeds; {rose}."


def _of_bands(comparison: Comparison) -> list[Finding]:
    banded = [
        (f"{row.quantity.symbol} of {model} ({cell.text}, {cell.expected})", cell.inside)
        for row in comparison.rows
        for model, cell in zip(comparison.columns, row.cells, strict=True)
        if cell.inside is not None
    ]
    if not banded:
        return []
    outside = [text for text, inside in banded if not inside]
    count = f"{len(banded) - len(outside)} of {len(banded)} means lie inside their expected band"
    return [Finding("As expected?", (f"{count}; outside: {listed(outside)}." if outside else f"{count}.",))]


def _first_steps(group: Group, threshold: float) -> dict[tuple[tuple[str, int], ...], int | None]:
    """All four seeds of a run → when it first reached the threshold: runs are paired by what chance gave them."""
    return {
        tuple(sorted(run.row.spec["seeds"].items())): first_reaching(run.curve("accuracy", "val"), threshold)
        for run in _with_curve(group, "val")
    }


def _with_curve(group: Group, split: str) -> list[Run]:
    """The finished runs whose accuracy was measured on that split."""
    return [run for run in group.finished if ("accuracy", split, "all") in run.curves]


def _sign(pair: tuple[int | None, int | None]) -> int:
    """−1 when the first is earlier; a run that never got there comes after every number."""
    one, other = ((step is None, step or 0) for step in pair)
    return (one > other) - (one < other)


def _pair_text(pair: tuple[int | None, int | None]) -> str:
    return " against ".join("not reached" if step is None else written("step", step) for step in pair)


def _over(runs: Sequence[Run], values: Mapping[str, float], kind: Literal["step", "accuracy"] = "step") -> str:
    """Each seed's value below 3 seeds, else mean ± std and the interval."""
    known = [run for run in runs if run.id in values]
    if len(known) < FEW_SEEDS:
        return listed(f"{written(kind, values[run.id])} (seed {run.seed})" for run in known)
    summary = Summary.of([values[run.id] for run in known])
    assert summary.interval is not None
    interval = between(kind, *summary.interval)
    return f"{written(kind, summary.mean, summary.std)} ({len(known)} seeds, 95 % interval {interval})"
