"""lmlab: a laboratory for small language models.

    import lmlab

    runs = lmlab.train("arithmetic-gpt", seeds=[0, 42], steps=2000, overrides={"task.p": 13})
    lmlab.plot_curves(runs, "accuracy")
    steps, accuracy = runs[0].curve("accuracy", "val").steps, runs[0].curve("accuracy", "val").values
    model = runs[0].model()

Names are loaded when first used, so that `import lmlab` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lmlab.core.errors import ConfigError, LabError
    from lmlab.data.task import Examples, Split, Task, tasks
    from lmlab.engine.spec import RunSpec
    from lmlab.models.cost import cost
    from lmlab.models.model import Internals, LanguageModel, ModelConfig, build
    from lmlab.reports.figures import LearningCurves, plot_curves
    from lmlab.reports.report import make_report
    from lmlab.reports.tables import Comparison
    from lmlab.runs.lab import Lab
    from lmlab.runs.run import Run
    from lmlab.runs.store import Curve
    from lmlab.studies.recipes import recipes
    from lmlab.studies.session import load, train, train_study
    from lmlab.studies.study import Study

_HOMES = {
    "lmlab.core.errors": ("ConfigError", "LabError"),
    "lmlab.data.task": ("Examples", "Split", "Task", "tasks"),
    "lmlab.engine.spec": ("RunSpec",),
    "lmlab.models.cost": ("cost",),
    "lmlab.models.model": ("Internals", "LanguageModel", "ModelConfig", "build"),
    "lmlab.reports.figures": ("LearningCurves", "plot_curves"),
    "lmlab.reports.report": ("make_report",),
    "lmlab.reports.tables": ("Comparison",),
    "lmlab.runs.lab": ("Lab",),
    "lmlab.runs.run": ("Run",),
    "lmlab.runs.store": ("Curve",),
    "lmlab.studies.recipes": ("recipes",),
    "lmlab.studies.session": ("load", "train", "train_study"),
    "lmlab.studies.study": ("Study",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Comparison",
    "ConfigError",
    "Curve",
    "Examples",
    "Internals",
    "Lab",
    "LabError",
    "LanguageModel",
    "LearningCurves",
    "ModelConfig",
    "Run",
    "RunSpec",
    "Split",
    "Study",
    "Task",
    "build",
    "cost",
    "load",
    "make_report",
    "plot_curves",
    "recipes",
    "tasks",
    "train",
    "train_study",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lmlab' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
