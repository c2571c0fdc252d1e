"""Learning curves: a metric over steps, as mean ± population standard deviation over seeds. Compute, then draw.

curves = LearningCurves.of(runs, "accuracy")      numbers that can be tested
curves.plot(axes)                                 a picture to look at
plot_curves(runs)                                 both, for a notebook: a panel per model
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmlab.core.errors import LabError
from lmlab.reports.axes import frame_loss, frame_steps, legend_below, span
from lmlab.reports.groups import differing, group_runs
from lmlab.reports.numbers import written
from lmlab.reports.style import GREY, LINES, PALETTE, THIN_LINE, Picture, figure_style, shade
from lmlab.runs.extrema import Reached, Summary, first_reaching
from lmlab.runs.run import Run

SPLITS = {"val": "validation", "train": "training"}
AXIS_LABELS = {"loss": "loss $L$", "accuracy": "accuracy $A$"}
MARK_LINE = 0.8
FEW_SEEDS = 3
"""Below this many seeds a spread says little, so each seed is drawn and written out too."""


@dataclass(frozen=True)
class Marks:
    """t_f(A_train), and the first step with A_val ≥ threshold, over seeds."""

    threshold: float
    train_best: Summary
    val_reached: Reached

    @classmethod
    def of(cls, runs: Sequence[Run], threshold: float) -> Marks | None:
        """None when the runs were not validated. A diverged run stopped early, so its steps are left out."""
        runs = [run for run in runs if run.status != "diverged" and ("accuracy", "val", "all") in run.curves]
        if not runs:
            return None
        return cls(
            threshold,
            Summary.of([run.extrema()["t_accuracy_train"] for run in runs]),
            reached(runs, threshold),
        )

    @property
    def val_mean(self) -> float | None:
        """The mean step of reaching the threshold; None as soon as one run does not."""
        steps = [step for step in self.val_reached.steps if step is not None]
        return None if self.val_reached.missing else float(np.mean(steps))

    @property
    def delay(self) -> float | None:
        return None if self.val_mean is None else self.val_mean - self.train_best.mean


def reached(runs: Sequence[Run], threshold: float) -> Reached:
    """When each run first had A_val ≥ threshold."""
    steps = tuple(first_reaching(run.curve("accuracy", "val"), threshold) for run in runs)
    return Reached(steps, max(run.row.total for run in runs))


@dataclass(frozen=True)
class LearningCurves:
    """One metric of runs that differ only in their seeds.

    steps (N,): every step at which any of the runs was evaluated; values: split → (R, N), NaN where a run was not
    evaluated. A mean is over the runs that have the step, so a run that diverged early is in the early means only.
    """

    name: str
    metric: str
    seeds: tuple[int, ...]
    steps: np.ndarray
    values: Mapping[str, np.ndarray]
    marks: Marks | None = None

    @classmethod
    def of(cls, runs: Sequence[Run], metric: str, *, name: str = "", threshold: float = 0.9) -> LearningCurves:
        if fields := differing(runs):
            raise LabError(f"these runs differ in {', '.join(fields)}: a mean over them would mix different things.")
        curves = {
            (run.id, split): run.curves[metric, split, "all"]
            for run in runs
            for split in SPLITS
            if (metric, split, "all") in run.curves
        }
        if not curves:
            raise LabError(f"none of these runs has a curve of {metric!r} yet. Known metrics: loss, accuracy.")
        steps = np.unique(np.concatenate([curve.steps for curve in curves.values()]))
        values = {split: np.full((len(runs), len(steps)), np.nan) for split in SPLITS}
        for row, run in enumerate(runs):
            for split in SPLITS:
                if curve := curves.get((run.id, split)):
                    values[split][row, np.searchsorted(steps, curve.steps)] = curve.values
        values = {split: table for split, table in values.items() if not np.isnan(table).all()}
        marks = Marks.of(runs, threshold) if metric == "accuracy" else None
        seeds = tuple(run.seed for run in runs)
        return cls(name or runs[0].row.label, metric, seeds, steps, values, marks)

    @property
    def mean(self) -> dict[str, np.ndarray]:
        """split → (N,), NaN at steps that no run has."""
        return {split: _mean(values) for split, values in self.values.items()}

    @property
    def std(self) -> dict[str, np.ndarray]:
        """split → (N,), the population standard deviation over the seeds that have the step."""
        return {split: np.sqrt(_mean((values - _mean(values)) ** 2)) for split, values in self.values.items()}

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest positive value of any seed."""
        positive = np.concatenate([values[values > 0] for values in self.values.values()])
        return (float(positive.min()), float(positive.max())) if len(positive) else (0.1, 1.0)

    def csv(self) -> str:
        """A line per step: mean, std and each seed's value of each split; empty where there is none."""
        columns: dict[str, np.ndarray] = {"step": self.steps}
        for split, values in self.values.items():
            columns |= {f"{split}_mean": self.mean[split], f"{split}_std": self.std[split]}
            columns |= {f"{split}_seed_{seed}": row for seed, row in zip(self.seeds, values, strict=True)}
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for line in zip(*(column.tolist() for column in columns.values()), strict=True):
            writer.writerow("" if value != value else value for value in line)
        return text.getvalue()

    def plot(
        self,
        axes: Axes,
        log_steps: bool = True,
        *,
        colour: str = PALETTE[0],
        bounds: tuple[float, float] | None = None,
    ) -> None:
        """Draw mean ± std, below 3 seeds each seed too, and for accuracy where the two marks are.

        bounds: the range of losses to show, to give several panels the same axis.
        """
        low, high = bounds or self.bounds
        frame_steps(axes, self.steps, log_steps)
        if self.metric == "loss":
            frame_loss(axes, low, high)
        else:
            axes.set_ylim(-0.02, 1.02)
        axes.set_ylabel(AXIS_LABELS.get(self.metric, self.metric))
        for split, values in self.values.items():
            self._plot_split(axes, split, values, colour)
        axes.set_title(self.name, pad=22 if self.marks else 6)
        if self.marks:
            _plot_marks(axes, self.marks)
        legend_below(axes, self._legend_title())

    def _plot_split(self, axes: Axes, split: str, values: np.ndarray, colour: str) -> None:
        mean, std, line, tone = self.mean[split], self.std[split], LINES[split], shade(colour, split)
        known = ~np.isnan(mean)
        steps, mean, std = self.steps[known], mean[known], std[known]
        if len(values) > 1:
            # mean − std of a skewed loss can fall below 0, which a logarithmic axis cannot show.
            least = self.bounds[0] if self.metric == "loss" else -np.inf
            low = np.maximum(mean - std, least)
            axes.fill_between(steps, low, mean + std, color=tone, alpha=0.18, linewidth=0)
        if 1 < len(values) < FEW_SEEDS:
            for row in values:
                own = ~np.isnan(row)
                axes.plot(self.steps[own], row[own], color=tone, linestyle=line, linewidth=THIN_LINE, alpha=0.75)
        axes.plot(steps, mean, color=tone, linestyle=line, label=SPLITS.get(split, split))

    def _legend_title(self) -> str:
        if len(self.seeds) == 1:
            return f"seed {self.seeds[0]}"
        each = "; thin: each seed" if len(self.seeds) < FEW_SEEDS else ""
        return f"mean ± std over {len(self.seeds)} seeds{each}"


def plot_curves(runs: Iterable[Run], metric: str = "accuracy", log_steps: bool = True) -> Figure:
    """A panel per model (per group of runs that differ only in their seeds), all with the same axes."""
    groups = group_runs(runs)
    if not groups:
        raise LabError("there are no runs to plot.")
    curves = [LearningCurves.of(group.runs, metric, name=group.name) for group in groups]
    return draw(curves, log_steps)


def draw(
    curves: Sequence[LearningCurves],
    log_steps: bool = True,
    *,
    first_colour: int = 0,
    bounds: tuple[float, float] | None = None,
) -> Picture:
    """Panels side by side, two in a row."""
    columns = min(2, len(curves))
    rows = -(-len(curves) // columns)
    bounds = bounds or common_bounds(curves)
    with figure_style():
        figure = Picture(rows, columns)
        for index, each in enumerate(curves):
            axes = figure.add_subplot(rows, columns, index + 1)
            each.plot(axes, log_steps, colour=PALETTE[(first_colour + index) % len(PALETTE)], bounds=bounds)
    return figure


def common_bounds(curves: Sequence[LearningCurves]) -> tuple[float, float]:
    """One range for all, so that models can be compared by eye."""
    lows, highs = zip(*(each.bounds for each in curves), strict=True)
    return min(lows), max(highs)


def _plot_marks(axes: Axes, marks: Marks) -> None:
    """Thin vertical lines at both steps and a bracket above the panel that spans the delay."""
    best = marks.train_best.mean
    axes.axhline(marks.threshold, color=GREY, linewidth=0.6, linestyle=(0, (1, 3)))
    axes.axvline(
        best,
        color=GREY,
        linewidth=MARK_LINE,
        linestyle=(0, (4, 2)),
        label=f"$A_{{train}}$ first at its best: $t$ = {written('step', best)}",
    )
    goal = f"$A_{{val}}$ ≥ {marks.threshold:g}"
    if marks.val_mean is None or marks.delay is None:
        missing, runs, limit = marks.val_reached.missing, len(marks.val_reached.steps), marks.val_reached.limit
        who = "" if missing == runs else f" by {missing} of {runs} seeds"
        axes.plot([], [], " ", label=f"{goal} not reached in {limit:,} steps{who}")
        return
    axes.axvline(
        marks.val_mean,
        color=GREY,
        linewidth=MARK_LINE,
        label=f"{goal} first: $t$ = {written('step', marks.val_mean)}",
    )
    span(axes, best, marks.val_mean, f"delay {written('step', marks.delay)} steps")


def _mean(values: np.ndarray) -> np.ndarray:
    """(R, N) → (N,) over the rows that are not NaN."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(values.shape[1], np.nan), where=count > 0)
