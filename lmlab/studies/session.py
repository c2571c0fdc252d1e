"""Training by name, from a notebook or a command: `train("arithmetic-gpt", seeds=[0, 42], steps=2000)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmlab.core.config import nested
from lmlab.runs.lab import Lab
from lmlab.runs.run import Run
from lmlab.studies.execute import Watch, check, execute, stopping, unwatched
from lmlab.studies.recipes import recipes
from lmlab.studies.study import Labelled, Study, studies, with_seeds


def specs_of(recipe: str, seeds: Sequence[int] = (0,), overrides: Mapping[str, Any] | None = None) -> list[Labelled]:
    """The runs of a recipe with dotted fields overridden, one per seed; a seed set by an override stays."""
    overrides = overrides or {}
    spec = recipes[recipe]().override(overrides)
    return [(recipe, one) for one in with_seeds(spec, seeds, frozenset(nested(overrides).get("seeds", {})))]


def train(
    recipe: str,
    *,
    seeds: Sequence[int] = (0,),
    steps: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    lab: str | Path | None = None,
    device: str = "auto",
    watch: Watch = unwatched,
) -> list[Run]:
    """Train a recipe, or go on with it, and return its runs. What is finished already is not trained again.

    >>> runs = train("arithmetic-gpt", seeds=[0, 42], steps=2000, overrides={"task.p": 13})
    >>> runs[0].curve("accuracy", "val").values
    """
    changes = {**(overrides or {}), **({} if steps is None else {"training.steps": steps})}
    return train_runs(specs_of(recipe, seeds, changes), lab, device, watch)


def train_study(
    study: str | Study,
    *,
    quick: bool = False,
    lab: str | Path | None = None,
    device: str = "auto",
    watch: Watch = unwatched,
) -> list[Run]:
    """Train what a study still lacks, and return all its runs."""
    study = studies[study] if isinstance(study, str) else study
    return train_runs((study.quick() if quick else study).runs(), lab, device, watch)


def train_runs(runs: Sequence[Labelled], lab: str | Path | None, device: str, watch: Watch = unwatched) -> list[Run]:
    """Ctrl-C stops at the next step and saves; the returned runs then say `interrupted`."""
    check(runs, device)
    with stopping() as stop:
        return execute(runs, Lab(lab, create=True), device=device, stop=stop, watch=watch)


def load(run: str = "latest", lab: str | Path | None = None) -> Run:
    """A run of a lab by id, unique prefix, or `latest`."""
    return Lab(lab).run(run)
