"""A run as one looks at it afterwards: its spec, its curves, its best values, its trained model."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmlab.core.errors import CheckpointError, MissingExtra, UnknownName
from lmlab.runs.extrema import extrema
from lmlab.runs.store import Curve, RunRow

if TYPE_CHECKING:
    from lmlab.data.task import Tokenizer
    from lmlab.engine.spec import RunSpec
    from lmlab.models.model import LanguageModel
    from lmlab.runs.lab import Lab


class Run:
    """A trained (or training) run of a lab. Numbers are read when asked for and then kept."""

    def __init__(self, lab: Lab, row: RunRow) -> None:
        self.lab, self.row = lab, row

    @property
    def id(self) -> str:
        return self.row.run

    @property
    def status(self) -> str:
        return self.row.state

    @property
    def seed(self) -> int:
        return self.row.seed

    @cached_property
    def spec(self) -> RunSpec:
        from lmlab.engine.spec import RunSpec

        return RunSpec(**self.row.spec)

    @cached_property
    def curves(self) -> dict[tuple[str, str, str], Curve]:
        """{(metric, split, group): curve}"""
        return {key[1:]: curve for key, curve in self.lab.store.curves([self.id]).items()}

    def curve(self, metric: str, split: str = "val", group: str = "all") -> Curve:
        """`run.curve("loss", "train")` → Curve(steps, values), both NumPy arrays."""
        try:
            return self.curves[metric, split, group]
        except KeyError:
            raise UnknownName("curve", f"{metric} {split} {group}", map(" ".join, self.curves)) from None

    def extrema(self, limit: int | None = None) -> dict[str, float | int | None]:
        """Best losses and accuracies, their first steps, delays; with a limit, of the steps up to it."""
        overall = {key[:2]: curve for key, curve in self.curves.items() if key[2] == "all"}
        return extrema(overall, limit)

    def final(self) -> dict[str, dict[str, float]]:
        """{"train": {"loss", "accuracy"}, "val": …} at the last evaluated step."""
        found: dict[str, dict[str, float]] = {}
        for (metric, split, group), curve in self.curves.items():
            if metric in ("loss", "accuracy") and group == "all":
                found.setdefault(split, {})[metric] = float(curve.values[-1])
        return found

    def frame(self) -> Any:
        """All metric rows as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", "notebook", "a data frame of metrics") from None
        return pandas.DataFrame([vars(row) for row in self.lab.store.metrics(self.id)])

    def model(self, step: int | None = None) -> LanguageModel:
        """The trained module, of the newest checkpoint or of the one at `step`."""
        from lmlab.models.model import build

        checkpoints = self.lab.checkpoints(self.id)
        snapshot = checkpoints.newest() if step is None else checkpoints.load(step)
        if snapshot is None:
            raise CheckpointError(f"run {self.id} has no checkpoint yet. Go on with: lmlab resume {self.id}")
        task, table = self.spec.task, snapshot.parameters["embedding.tokens.weight"]
        # The size of the vocabulary is in the weights: a model must not need the text it was trained on.
        model = build(self.spec.model, table.shape[0], task.length, task.padding, dtype=table.dtype)
        parameters = dict(model.named_parameters())
        if parameters.keys() != snapshot.parameters.keys():
            raise CheckpointError(f"the checkpoint of run {self.id} does not hold this model's parameters.")
        for name, parameter in parameters.items():
            parameter.data.copy_(snapshot.parameters[name])
        return model.eval()

    def tokenizer(self) -> Tokenizer:
        """The tokenizer the run was trained with, kept beside it where it was learnt from a text."""
        from lmlab.data.tokenizer_files import load_tokenizer

        path = self.lab.tokenizer_path(self.id)
        return load_tokenizer(path) if path.exists() else self.spec.task.build_tokenizer()

    def __repr__(self) -> str:
        return (
            f"Run({self.id}, {self.row.label}, seed {self.seed}, {self.status}, step {self.row.step}/{self.row.total})"
        )
