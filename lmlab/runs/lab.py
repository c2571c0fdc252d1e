"""A lab is a folder: `lab.sqlite` with runs and metrics, `checkpoints/` with weights, `reports/` with reports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.core.errors import StoreError
from lmlab.runs.store import Store

if TYPE_CHECKING:
    from lmlab.engine.spec import RunSpec
    from lmlab.runs.checkpoints import Checkpoints
    from lmlab.runs.run import Run

DEFAULT = "lab"


class Lab:
    """Opens the folder for reading, or makes it when `create` is set."""

    def __init__(self, path: str | Path | None = None, *, create: bool = False) -> None:
        self.path = Path(path or os.environ.get("LMLAB_HOME") or DEFAULT)
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"the lab must be a folder; {self.path} is a file. Give another with --lab.")
        if create:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"the lab folder {self.path} cannot be made: {error.strerror}.") from error
            if not os.access(self.path, os.W_OK):
                raise StoreError(f"the lab folder {self.path} is not writable. Give another with --lab.")
        self.store = Store(self.path / "lab.sqlite", create=create)

    @classmethod
    def existing(cls, path: str | Path | None = None) -> Lab | None:
        """The lab if there is one already; reading never makes one."""
        place = Path(path or os.environ.get("LMLAB_HOME") or DEFAULT)
        return cls(path) if place.exists() and (not place.is_dir() or (place / "lab.sqlite").exists()) else None

    def checkpoints(self, run: str) -> Checkpoints:
        from lmlab.runs.checkpoints import Checkpoints

        return Checkpoints(self.path / "checkpoints", run)

    def register(self, specs: Iterable[tuple[str, RunSpec]]) -> None:
        """Make (label, spec) pairs known, as waiting runs."""
        self.store.register(
            {
                "run": spec.run_id,
                "label": label,
                "seed": spec.seed,
                "spec": spec.to_json(),
                "total": spec.total_steps(len(spec.task.split(spec.seeds.split).train_rows)),
            }
            for label, spec in specs
        )

    def run(self, name: str) -> Run:
        """A run by id, unique prefix or `latest`."""
        from lmlab.runs.run import Run

        return Run(self, self.store.resolve(name))

    def runs(self, ids: Sequence[str] | None = None) -> list[Run]:
        from lmlab.runs.run import Run

        return [Run(self, row) for row in self.store.runs(ids)]

    def delete(self, run: str) -> None:
        """Forget a run: its row and metrics first, then its checkpoints."""
        self.store.delete(run)
        self.checkpoints(run).delete()

    def __repr__(self) -> str:
        return f"Lab({str(self.path)!r})"
