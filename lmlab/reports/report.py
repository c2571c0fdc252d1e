"""A study's report: one self-contained page, the same as Markdown, figures and tables as files.

    index.html   report.md   figures/*.png, *.svg   tables/*.csv

Every number comes from the store. A report is built beside its place and put there whole, so that an older one is
never half overwritten.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lmlab.core.errors import LabError
from lmlab.reports.figures import LearningCurves, common_bounds, draw
from lmlab.reports.findings import findings
from lmlab.reports.groups import Group, group_runs
from lmlab.reports.inventory import Inventory, trained_on
from lmlab.reports.pages import page
from lmlab.reports.style import save
from lmlab.reports.tables import Comparison, markdown_line
from lmlab.reports.words import figure_caption, figure_text, table_caption
from lmlab.runs.lab import Lab
from lmlab.runs.run import Run
from lmlab.studies.study import Study, studies

METRICS = ("accuracy", "loss")
GENERATOR = '<meta name="generator" content="lmlab">'
CONTENTS = {"index.html", "report.md", "report.pdf", "figures", "tables"}
FEW_RUNS = 4


@dataclass(frozen=True)
class Report:
    """Where a report lies."""

    directory: Path
    html: Path
    markdown: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "directory": str(self.directory),
            "html": str(self.html),
            "pdf": None,
            "markdown": str(self.markdown),
            "figures": [str(path) for path in self.figures],
            "tables": [str(path) for path in self.tables],
        }


@dataclass(frozen=True)
class Panel:
    """A figure in the page, with logarithmic and with linear steps."""

    name: str
    alt: str
    caption: str
    log: Markup
    linear: Markup


def make_report(study: Study | str, lab: Lab, folder: str | Path) -> Report:
    """Write the report of what the lab has of a study; what is missing is said on top."""
    study = studies[study] if isinstance(study, str) else study
    folder = Path(folder)
    runs = lab.runs([spec.run_id for _, spec in study.runs()])
    if not any(run.row.done for run in runs):
        raise LabError(
            f"study {study.name} has no finished run in {lab.path}; missing: {missing(study, runs)}. "
            f"Get them with: {study.command}"
        )
    _check_place(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            figures, tables = _build(study, runs, draft)
            _put(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise LabError(f"the report cannot be written to {folder}: {error.strerror or error}.") from error
    return Report(
        folder,
        folder / "index.html",
        folder / "report.md",
        tuple(folder / name for name in figures),
        tuple(folder / name for name in tables),
    )


def missing(study: Study, runs: Sequence[Run]) -> str:
    """`arithmetic-gpt (seed 0 interrupted, seed 42 not begun)`; empty when every run is done."""
    states = {run.id: run.status for run in runs}
    by_label: dict[str, list[str]] = {}
    for label, spec in study.runs():
        state = states.get(spec.run_id, "waiting")
        if state not in ("finished", "diverged"):
            words = "not begun" if state == "waiting" else state
            by_label.setdefault(label, []).append(f"seed {spec.seed} {words}")
    shown = (f"{label} ({', '.join(o) if len(o) <= FEW_RUNS else f'{len(o)} runs'})" for label, o in by_label.items())
    return ", ".join(shown)


def _build(study: Study, runs: Sequence[Run], draft: Path) -> tuple[list[str], list[str]]:
    """Fill the draft; the names of its figures and tables."""
    groups = group_runs(runs, study)
    comparison, inventory = Comparison.of(study, runs), Inventory.of(groups)
    tables = {"comparison.csv": comparison.csv(), "runs.csv": inventory.csv()}
    panels: list[Panel] = []
    (draft / "figures").mkdir()
    for metric in METRICS:
        found = _curves(study, groups, metric)
        for index, curves in found:
            name = f"{metric}-{_slug(curves.name, [panel.name for panel in panels], metric)}"
            tables[f"curves-{name}.csv"] = curves.csv()
            bounds = common_bounds([each for _, each in found])
            panels.append(_panel(curves, groups[index], name, index, bounds, draft / "figures"))
    (draft / "tables").mkdir()
    for name, text in tables.items():
        (draft / "tables" / name).write_text(text, encoding="utf-8", newline="")
    values = {
        "study": study,
        "generator": Markup(GENERATOR),
        "command": study.command,
        "full_command": f"lmlab study run {study.name.removesuffix('-quick')}",
        "missing": missing(study, runs),
        "done": sum(run.row.done for run in runs),
        "wanted": len(study.runs()),
        "findings": findings(study, groups, comparison),
        "panels": panels,
        "comparison": comparison,
        "comparison_html": Markup(comparison.html()),
        "table_caption": table_caption(study, groups),
        "inventory": inventory,
        "trained_on": trained_on,
        "line": markdown_line,
    }
    (draft / "index.html").write_text(page("index.html", **values), encoding="utf-8")
    (draft / "report.md").write_text(page("report.md", **values), encoding="utf-8")
    figures = sorted(path.name for path in (draft / "figures").iterdir())
    return [f"figures/{name}" for name in figures], [f"tables/{name}" for name in tables]


def _curves(study: Study, groups: Sequence[Group], metric: str) -> list[tuple[int, LearningCurves]]:
    """The curves of every group that has some, with the group's place, which is its colour."""
    return [
        (index, LearningCurves.of(group.drawn, metric, name=group.name, threshold=study.threshold))
        for index, group in enumerate(groups)
        if any(key[0] == metric and key[2] == "all" for run in group.drawn for key in run.curves)
    ]


def _panel(
    curves: LearningCurves, group: Group, name: str, index: int, bounds: tuple[float, float], folder: Path
) -> Panel:
    sources = []
    for log_steps in (True, False):
        figure = draw([curves], log_steps, first_colour=index, bounds=bounds)
        _, svg = save(figure, folder, name if log_steps else f"{name}-linear")
        sources.append(Markup(f"data:image/svg+xml;base64,{b64encode(svg.read_bytes()).decode()}"))
    return Panel(name, figure_text(curves), figure_caption(curves, group), *sources)


def _slug(name: str, taken: Sequence[str], metric: str) -> str:
    """A file name; settings that differ only in signs (`+`, `-`) are told apart by a number."""
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "runs"
    number, free = 1, slug
    while f"{metric}-{free}" in taken:
        number += 1
        free = f"{slug}-{number}"
    return free


def _check_place(folder: Path) -> None:
    """A folder that is replaced must be empty or an older report: anything else would be lost."""
    if folder.resolve() == Path.cwd():
        raise LabError("the report needs a folder of its own, not the one you are in. Give another with -o.")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise LabError(f"the report's folder {folder} is a file. Give another with -o.")
    inside = {path.name for path in folder.iterdir()}
    index = folder / "index.html"
    older = index.is_file() and GENERATOR in index.read_text(encoding="utf-8", errors="replace")[:2000]
    if inside and not (older and inside <= CONTENTS):
        raise LabError(f"the folder {folder} holds files that are no report; it is left alone. Give another with -o.")


def _put(draft: Path, folder: Path) -> None:
    """The draft takes the folder's place; the older report goes once the new one is there."""
    umask = os.umask(0)
    os.umask(umask)
    draft.chmod(0o777 & ~umask)  # a temporary folder is private at first
    if not folder.exists():
        draft.rename(folder)
        return
    place = folder.resolve()  # a link to a folder stays a link
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=place.parent))
    place.rename(old / "report")
    try:
        draft.rename(place)
    except OSError:
        (old / "report").rename(place)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
