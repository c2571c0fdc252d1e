"""Which runs are put together: those that differ in nothing but their seeds.

A group is named by its label and, where runs of one label differ, by what they differ in:
`arithmetic-gpt, task.fraction = 0.5`. Runs that differ in more are never averaged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmlab.core.config import Config
from lmlab.runs.run import Run
from lmlab.studies.study import Study


@dataclass(frozen=True)
class Group:
    """Runs of one label and one setting, a run per seed."""

    label: str
    setting: str
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        return f"{self.label}, {self.setting}" if self.setting else self.label

    @property
    def finished(self) -> tuple[Run, ...]:
        """The runs that statistics are made of."""
        return tuple(run for run in self.runs if run.status == "finished")

    @property
    def drawn(self) -> tuple[Run, ...]:
        """The runs a figure shows: a diverged one is shown up to where it stopped."""
        return tuple(run for run in self.runs if run.row.done)

    @property
    def left_out(self) -> tuple[Run, ...]:
        """The runs that statistics leave out, to be named beside them."""
        return tuple(run for run in self.runs if run.status != "finished")


def group_runs(runs: Iterable[Run], study: Study | None = None) -> list[Group]:
    """Groups in the order in which their first runs come.

    A study brings its own labels (a run that two studies share keeps the label of the first in the store) and its
    axes, which are named even where only one value of an axis is there.
    """
    found = {run.id: run for run in runs}
    labels = {run.id: run.row.label for run in found.values()}
    if study:
        labels |= {spec.run_id: label for label, spec in study.runs()}
    axes = tuple(study.axes) if study else ()
    by_label: dict[str, list[Run]] = {}
    for run in found.values():
        by_label.setdefault(labels[run.id], []).append(run)
    groups: dict[tuple[str, str], list[Run]] = {}
    for label, members in by_label.items():
        telling = (*axes, *(field for field in differing(members) if field not in axes))
        for run in members:
            groups.setdefault((label, _setting(run, telling)), []).append(run)
    return [Group(label, setting, tuple(members)) for (label, setting), members in groups.items()]


def differing(runs: Sequence[Run]) -> list[str]:
    """Fields outside `seeds` in which the specs differ; what merely follows from another field is left out."""
    fields = [chosen(run) for run in runs]
    names = dict.fromkeys(name for each in fields for name in each)
    return [name for name in names if any(each.get(name) != fields[0].get(name) for each in fields)]


def chosen(run: Run) -> dict[str, Any]:
    """{"model.width": 64, …}: a spec's fields without seeds and without those derived from others."""
    sections: Mapping[str, Config] = {"task": run.spec.task, "model": run.spec.model, "training": run.spec.training}
    return {
        f"{section}.{name}": value
        for section, config in sections.items()
        for name, value in config.to_json().items()
        if name not in config.derived or getattr(config, name) != config.derived[name](config)
    }


def _setting(run: Run, fields: Sequence[str]) -> str:
    spec = run.spec.to_json()
    parts = []
    for path in fields:
        section, _, name = path.partition(".")
        if name in spec[section]:
            parts.append(f"{path} = {value_text(spec[section][name])}")
    return ", ".join(parts)


def value_text(value: Any) -> str:
    """A field's value as one types it after `--set`."""
    return value if isinstance(value, str) else json.dumps(value)
