"""What commands print: tables for people, one JSON document for tools, a progress bar for a terminal."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from lmlab.runs.lab import Lab
from lmlab.runs.store import RunRow

POLL_SECONDS = 0.5

output = Console(width=None if sys.stdout.isatty() else 160)
notices = Console(stderr=True)


def show(document: Mapping[str, Any], as_json: bool, render: Callable[[], None]) -> None:
    """One JSON document on standard output, or the rendering for people."""
    if as_json:
        print(json.dumps(finite(document), ensure_ascii=False))
    else:
        render()


def finite(value: Any) -> Any:
    """JSON has no NaN: it becomes null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[str] = ()) -> Table:
    made = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in numeric else "left",
            overflow="fold",
            no_wrap=column in ("run", "recipe"),
        )
    for row in rows:
        made.add_row(*(str(cell) for cell in row))
    return made


def number(value: float | None) -> str:
    """A metric to read: steps in full, very small and very large losses in powers of ten."""
    if value is None:
        return "–"
    if isinstance(value, int) or (abs(value) < 1e6 and value == int(value)):
        return f"{int(value):,}"
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e6 else f"{value:.3e}"


def duration(seconds: float) -> str:
    """`48 s`, `12 min`, `3 h 20 min`"""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def watcher(as_json: bool) -> Callable[[Lab, Sequence[str]], Any]:
    """A progress bar where somebody can see it: silent with --json or when standard error is not a terminal."""
    return _unseen if as_json or not sys.stderr.isatty() else _progress


@contextmanager
def _unseen(_lab: Lab, _runs: Sequence[str]) -> Iterator[None]:
    yield


@contextmanager
def _progress(lab: Lab, runs: Sequence[str]) -> Iterator[None]:
    """One bar per recipe, fed from the store: it shows the work of every process that trains these runs."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} steps"),
        TextColumn("{task.fields[note]}"),
    )
    quit_event = threading.Event()
    with Progress(*columns, console=notices, transient=True) as progress:
        thread = threading.Thread(target=_follow, args=(progress, lab, runs, quit_event), daemon=True)
        thread.start()
        try:
            yield
        finally:
            quit_event.set()
            thread.join()


def _follow(progress: Progress, lab: Lab, runs: Sequence[str], quit_event: threading.Event) -> None:
    tasks: dict[str, TaskID] = {}
    begin: dict[str, tuple[float, int]] = {}
    while True:
        rows = lab.store.runs(runs)
        accuracy = lab.store.latest(runs, "accuracy")
        for label in dict.fromkeys(row.label for row in rows):
            own = [row for row in rows if row.label == label]
            done, total, now = sum(_done(row) for row in own), sum(row.total for row in own), time.monotonic()
            if label not in tasks:
                tasks[label] = progress.add_task(label, total=total, note="")
                begin[label] = (now, done)
            progress.update(
                tasks[label], completed=done, total=total, note=_note(own, accuracy, done, total, now, begin[label])
            )
        if quit_event.is_set():
            return
        quit_event.wait(POLL_SECONDS)


def _done(row: RunRow) -> int:
    return row.total if row.done else row.step


def _note(
    rows: Sequence[RunRow],
    accuracy: Mapping[tuple[str, str], float],
    done: int,
    total: int,
    now: float,
    begin: tuple[float, int],
) -> str:
    rate = (done - begin[1]) / max(1e-9, now - begin[0])
    parts = [f"{rate:,.0f} steps/s", f"{duration((total - done) / rate)} left" if rate > 0 and done < total else ""]
    for split in ("train", "val"):
        values = [accuracy[row.run, split] for row in rows if (row.run, split) in accuracy]
        if values:
            parts.append(f"A_{split} {sum(values) / len(values):.3f}")
    return "  ".join(part for part in parts if part)
