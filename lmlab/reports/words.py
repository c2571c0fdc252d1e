"""Captions: every symbol of a figure or table, explained where it is used."""

from __future__ import annotations

from collections.abc import Sequence

from lmlab.reports.figures import FEW_SEEDS, SPLITS, LearningCurves
from lmlab.reports.groups import Group
from lmlab.reports.numbers import Kind, listed, written
from lmlab.studies.study import Study

# By the task's family: averaged per example first, or over all tokens.
_LOSS = {
    "example": "the mean of −ln p over an example's counted tokens, then over examples",
    "token": "the mean of −ln p over all counted tokens",
}
_ACCURACY = {
    "example": "the share of examples with every counted token right",
    "token": "the share of next tokens that are right",
}


def figure_text(curves: LearningCurves) -> str:
    """What a reader who cannot see the figure should know."""
    ends = [
        f"{SPLITS[split]} from {written(_kind(curves), mean[0])} to {written(_kind(curves), mean[-1])}"
        for split, mean in ((split, mean[mean == mean]) for split, mean in curves.mean.items())
    ]
    return f"{curves.metric.capitalize()} of {curves.name} over {int(curves.steps.max()):,} steps: {listed(ends)}."


def figure_caption(curves: LearningCurves, group: Group) -> str:
    symbol = {"loss": "L", "accuracy": "A"}.get(curves.metric, curves.metric)
    seeds = len(curves.seeds)
    parts = [
        f"{curves.metric.capitalize()} {symbol} of {curves.name} over steps t, solid on validation, dashed on training."
    ]
    if seeds > 1:
        each = "; thin lines: each seed" if seeds < FEW_SEEDS else ""
        parts.append(f"Lines and bands: mean ± standard deviation over {seeds} seeds{each}.")
    diverged = [run for run in group.drawn if run.status == "diverged"]
    if diverged:
        stops = listed(f"seed {run.seed} diverged at step {run.row.step:,}" for run in diverged)
        parts.append(f"{stops[0].upper()}{stops[1:]} and is drawn up to there.")
    if curves.marks:
        what = "mean over seeds of the step" if seeds > 1 else "step"
        parts.append(f"Dashed vertical: {what} at which A_train is first at its best.")
        goal = f"the threshold {curves.marks.threshold:g} (dotted)"
        if curves.marks.delay is None:
            parts.append(f"Not every seed's A_val reaches {goal}, so no delay is drawn.")
        else:
            parts.append(f"Solid vertical: {what} at which A_val first reaches {goal}; the bracket is the delay.")
    return " ".join(parts)


def table_caption(study: Study, groups: Sequence[Group]) -> list[tuple[str, str]]:
    """(symbol, meaning) of everything in the table and the figures."""
    family = groups[0].runs[0].spec.task.family
    seeds = max(len(group.finished) for group in groups)
    found = [
        ("t", "step: after t updates of the weights; 0 is the untrained model"),
        (
            "L_train, L_val",
            f"lowest loss on training and validation examples over evaluated steps; L is {_LOSS[family]}",
        ),
        ("A_train, A_val", f"highest accuracy over evaluated steps; A is {_ACCURACY[family]}"),
        ("t_f(X)", "the first evaluated step at which X has that best value"),
        ("Δt(L), Δt(A)", "t_f(L_val) − t_f(L_train) and t_f(A_val) − t_f(A_train)"),
        (
            f"A_val ≥ {study.threshold:g}",
            "the threshold that counts as generalising; a run that never gets there is shown as not reached, "
            "and never averaged",
        ),
    ]
    if seeds > 1:
        aside = "95 %: the t-interval of the mean" if seeds >= FEW_SEEDS else "below it each seed's value"
        found.append(("±", f"mean ± population standard deviation over seeds; {aside}"))
    if len(groups) > 1:
        found.append(("bold", "the best mean of a row: lowest loss, highest accuracy, smallest step"))
    if study.bands:
        found.append(("✓ ✗", "the mean lies inside or outside the band that holds 80 % of seeds of this recipe"))
    return found


def _kind(curves: LearningCurves) -> Kind:
    return "accuracy" if curves.metric == "accuracy" else "loss"
