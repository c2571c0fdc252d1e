"""One table that compares the models of a study side by side.

    Comparison.of(study, runs)      numbers: a cell is a Summary over seeds, or a Reached for the threshold
    .csv() .markdown() .html() .rich()

Bold is the best mean of a row (lowest loss, highest accuracy, smallest step); ✓ and ✗ say whether a mean lies in the
band that is expected of it. Runs that are not finished are named, never averaged.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isclose, isfinite

from rich.markup import escape
from rich.table import Table

from lmlab.reports.figures import FEW_SEEDS, reached
from lmlab.reports.groups import Group, group_runs
from lmlab.reports.numbers import Kind, between, series, written
from lmlab.reports.pages import page
from lmlab.runs.extrema import Reached, Summary
from lmlab.runs.run import Run
from lmlab.studies.recipes import Band
from lmlab.studies.study import Study

FIRST = "first_accuracy_val"
"""The row of the threshold; all other names are those of `runs.extrema`."""


@dataclass(frozen=True)
class Quantity:
    """What a row shows."""

    name: str
    symbol: str
    kind: Kind


QUANTITIES = (
    Quantity("loss_train", "L_train", "loss"),
    Quantity("loss_val", "L_val", "loss"),
    Quantity("accuracy_train", "A_train", "accuracy"),
    Quantity("accuracy_val", "A_val", "accuracy"),
    Quantity("t_loss_train", "t_f(L_train)", "step"),
    Quantity("t_loss_val", "t_f(L_val)", "step"),
    Quantity("t_accuracy_train", "t_f(A_train)", "step"),
    Quantity("t_accuracy_val", "t_f(A_val)", "step"),
    Quantity("delay_loss", "Δt(L)", "step"),
    Quantity("delay_accuracy", "Δt(A)", "step"),
)


@dataclass(frozen=True)
class Cell:
    """One number of one model, over its seeds."""

    kind: Kind
    summary: Summary
    """Empty when there is no such number, or when a run did not reach the threshold."""
    reached: Reached | None = None
    band: Band | None = None
    best: bool = False

    @property
    def mean(self) -> float:
        return self.summary.mean

    @property
    def inside(self) -> bool | None:
        """Whether the mean lies in the expected band; None where there is no band or no mean."""
        return None if self.band is None or not self.summary.values else self.band.holds(self.mean)

    @property
    def mark(self) -> str:
        return {True: "✓", False: "✗", None: ""}[self.inside]

    @property
    def text(self) -> str:
        """mean ± std; one seed's value alone; or that the threshold was not reached."""
        if self.reached is not None and self.reached.missing:
            return str(self.reached) if len(self.reached.steps) >= FEW_SEEDS else self._each_reached()
        if not self.summary.values:
            return "—"
        return written(self.kind, self.mean, self.summary.std if len(self.summary) > 1 else None)

    @property
    def detail(self) -> str:
        """From 3 seeds on the 95 % interval, with 2 the single values."""
        if interval := self.summary.interval:
            return f"95 %: {between(self.kind, *interval)}"
        if len(self.summary) > 1:
            return series(self.kind, self.summary.values, self.mean)
        return ""

    @property
    def expected(self) -> str:
        return f"band {between(self.kind, self.band.low, self.band.high)}" if self.band else ""

    def _each_reached(self) -> str:
        assert self.reached is not None
        if self.reached.missing == len(self.reached.steps):
            return str(self.reached)
        never = f"not reached in {self.reached.limit:,} steps"
        return "; ".join(never if step is None else written("step", step) for step in self.reached.steps)


@dataclass(frozen=True)
class Row:
    quantity: Quantity
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Comparison:
    """Rows of quantities, a column per model; notes on the runs that are left out."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, study: Study, runs: Iterable[Run]) -> Comparison:
        groups = group_runs(runs, study)
        first = Quantity(FIRST, f"first t with A_val ≥ {study.threshold:g}", "step")
        rows = [_row(quantity, [_cell(quantity, group, study) for group in groups]) for quantity in QUANTITIES]
        rows.append(_row(first, [_first_cell(group, study) for group in groups]))
        return cls(
            tuple(group.name for group in groups),
            tuple(row for row in rows if any(cell.text != "—" for cell in row.cells)),
            tuple(left_out(group, run) for group in groups for run in group.left_out),
        )

    def csv(self) -> str:
        """Raw numbers: low and high bound the 95 % interval; n runs, of which not_reached missed the threshold."""
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(
            ("quantity", "model", "mean", "std", "n", "low", "high", "best", "band", "not_reached", "limit")
        )
        for row in self.rows:
            for model, cell in zip(self.columns, row.cells, strict=True):
                low, high = cell.summary.interval or ("", "")
                missing, limit = (cell.reached.missing, cell.reached.limit) if cell.reached else ("", "")
                mean, std = (cell.mean, cell.summary.std) if cell.summary.values else ("", "")
                count = len(cell.reached.steps) if cell.reached else len(cell.summary)
                best, band = "best" if cell.best else "", {True: "inside", False: "outside", None: ""}[cell.inside]
                writer.writerow((row.quantity.name, model, mean, std, count, low, high, best, band, missing, limit))
        return text.getvalue()

    def markdown(self) -> str:
        lines = [("", *self.columns), ("---",) * (1 + len(self.columns))]
        lines += [(row.quantity.symbol, *map(_markdown_cell, row.cells)) for row in self.rows]
        table = "\n".join(markdown_line(line) for line in lines)
        return "\n\n".join((table, *self.notes)) + "\n"

    def html(self) -> str:
        """A table element with its notes; styles are the page's."""
        return page("table.html", table=self)

    _repr_html_ = html

    def rich(self) -> Table:
        """For the terminal."""
        table = Table(caption="\n".join(map(escape, self.notes)) or None, caption_justify="left")
        table.add_column("")
        for column in self.columns:
            table.add_column(escape(column), justify="right")
        for row in self.rows:
            table.add_row(row.quantity.symbol, *map(_rich_cell, row.cells))
        return table


def markdown_line(parts: Iterable[str]) -> str:
    """`| a | b |`"""
    return "| " + " | ".join(part.replace("|", "\\|") for part in parts) + " |"


def left_out(group: Group, run: Run) -> str:
    """`arithmetic-gpt, seed 3 (run 0123456789abcdef): diverged at step 120 of 2,500; not in the statistics.`"""
    where = f" at step {run.row.step:,} of {run.row.total:,}" if run.row.step else ", not begun"
    return f"{group.name}, seed {run.seed} (run {run.id}): {run.status}{where}; not in the statistics."


def _cell(quantity: Quantity, group: Group, study: Study) -> Cell:
    values = [run.extrema()[quantity.name] for run in group.finished]
    return Cell(quantity.kind, Summary.of(values), band=_band(study, group, quantity.name))


def _first_cell(group: Group, study: Study) -> Cell:
    validated = [run for run in group.finished if ("accuracy", "val", "all") in run.curves]
    if not validated:
        return Cell("step", Summary(()))
    found = reached(validated, study.threshold)
    summary = Summary(()) if found.missing else Summary.of(found.steps)
    return Cell("step", summary, found, _band(study, group, FIRST))


def _band(study: Study, group: Group, name: str) -> Band | None:
    """Bands hold for a label as its recipe has it, so not for a point of an axis, unless they name that point."""
    bands = study.bands.get(group.name, {})
    return bands.get(name)


def _row(quantity: Quantity, cells: Sequence[Cell]) -> Row:
    best = _best(quantity.kind, cells)
    marked = tuple(
        Cell(cell.kind, cell.summary, cell.reached, cell.band, best is not None and isclose(cell.mean, best))
        for cell in cells
    )
    return Row(quantity, marked)


def _best(kind: Kind, cells: Sequence[Cell]) -> float | None:
    """The best mean, if one can be told: with one column, or where some seeds missed the threshold, it cannot."""
    censored = any(cell.reached and 0 < cell.reached.missing < len(cell.reached.steps) for cell in cells)
    means = [cell.mean for cell in cells if isfinite(cell.mean)]
    if len(cells) < 2 or not means or censored:
        return None
    return max(means) if kind == "accuracy" else min(means)


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    aside = ", ".join(part for part in (cell.detail, cell.expected) if part)
    return " ".join(part for part in (text, cell.mark, f"({aside})" if aside else "") if part)


def _rich_cell(cell: Cell) -> str:
    text = f"[bold]{escape(cell.text)}[/bold]" if cell.best else escape(cell.text)
    colour = {"✓": "green", "✗": "red", "": ""}[cell.mark]
    mark = f" [{colour}]{cell.mark}[/{colour}]" if cell.mark else ""
    return text + mark + (f"\n[dim]{escape(cell.detail)}[/dim]" if cell.detail else "")
