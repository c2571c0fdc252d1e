"""The public names are few, all there, and change only on purpose."""

import subprocess
import sys

import lmlab

NAMES = [
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


def test_the_public_names_are_these() -> None:
    assert lmlab.__all__ == NAMES


def test_every_public_name_can_be_had() -> None:
    for name in lmlab.__all__:
        assert getattr(lmlab, name).__module__.startswith("lmlab") or name in ("recipes", "tasks")


def test_importing_does_nothing() -> None:
    code = "import sys, lmlab; print([name for name in ('torch', 'matplotlib', 'sqlalchemy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""
