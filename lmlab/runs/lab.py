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
        self.path = self.place(path)
        if os.path.exists(self.path) and not self.path.is_dir():
            raise StoreError(f"the lab must be a folder; {self.path} is a file. Give another with --lab.")
        if create:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"the lab folder {self.path} cannot be made: {error.strerror}.") from error
            if not os.access(self.path, os.W_OK):
                raise StoreError(f"the lab folder {self.path} is not writable. Give another with --lab.")
        self.store = Store(self.path / "lab.sqlite", create=create)

    @staticmethod
    def place(path: str | Path | None = None) -> Path:
        """The folder asked for, else $LMLAB_HOME, else ./lab."""
        return Path(path or os.environ.get("LMLAB_HOME") or DEFAULT)

    @classmethod
    def existing(cls, path: str | Path | None = None) -> Lab | None:
        """The lab if there is one already; reading never makes one."""
        place = cls.place(path)
        there = os.path.exists(place / "lab.sqlite" if os.path.isdir(place) else place)
        return cls(path) if there else None

    def checkpoints(self, run: str) -> Checkpoints:
        from lmlab.runs.checkpoints import Checkpoints

        return Checkpoints(self.path / "checkpoints", run)

    def tokenizer_path(self, run: str) -> Path:
        """Where the tokenizer of a run on text lies: what was learnt from a file must outlive the file."""
        return self.path / "tokenizers" / f"{run}.json"

    def register(self, specs: Iterable[tuple[str, RunSpec]]) -> None:
        """Make (label, spec) pairs known, as waiting runs, and keep their tokenizers."""
        from lmlab.data.stored import StoredTokenizer
        from lmlab.data.tokenizer_files import save_tokenizer

        specs = list(specs)
        for _, spec in specs:
            tokenizer, path = spec.task.build_tokenizer(), self.tokenizer_path(spec.run_id)
            if isinstance(tokenizer, StoredTokenizer) and not path.exists():
                path.parent.mkdir(exist_ok=True)
                save_tokenizer(tokenizer, path)
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
        self.tokenizer_path(run).unlink(missing_ok=True)

    def __repr__(self) -> str:
        return f"Lab({str(self.path)!r})"
