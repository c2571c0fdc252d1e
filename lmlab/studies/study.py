"""A study: base specs × axes × seeds, and what its report shows.

    Study(name="data-scaling", recipes=("arithmetic-lstm", "arithmetic-gpt"), axes={"task.fraction": (0.1, 0.5, 0.9)})

Runs are named by the content of their spec, so a run that two studies share is trained once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from lmlab.core.config import nested
from lmlab.core.errors import ConfigError
from lmlab.core.registry import Registry
from lmlab.engine.spec import RunSpec
from lmlab.studies.recipes import ARITHMETIC_BANDS, DEMO_BANDS, Bands, recipes

Labelled = tuple[str, RunSpec]
"""A run with the label it has in tables: the recipe it came from."""


@dataclass(frozen=True)
class Study:
    """What is run, and what is asked of it."""

    name: str
    title: str
    about: str
    recipes: tuple[str, ...]
    base: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0, 42)
    bands: Mapping[str, Bands] = field(default_factory=dict)
    threshold: float = 0.9
    """The validation accuracy that counts as generalising."""
    quick_base: Mapping[str, Any] = field(default_factory=dict)
    """What the miniature changes."""
    miniature: bool = False

    def quick(self) -> Study:
        """The same study in miniature: other, smaller runs; no bands, which hold for the full size only."""
        base = {**self.base, **self.quick_base}
        return replace(self, name=f"{self.name}-quick", base=base, bands={}, miniature=True)

    @property
    def command(self) -> str:
        """What to type to train what is missing of it."""
        name = self.name.removesuffix("-quick") if self.miniature else self.name
        usual = name in studies and studies[name].seeds == self.seeds
        seeds = "" if usual else f" --seeds {','.join(map(str, self.seeds))}"
        return f"lmlab study run {name}{' --quick' if self.miniature else ''}{seeds}"

    def runs(self) -> list[Labelled]:
        """Every run, recipes outermost and seeds innermost."""
        return [
            (recipe, spec)
            for recipe in self.recipes
            for values in product(*self.axes.values())
            for spec in with_seeds(
                recipes[recipe]().override({**self.base, **dict(zip(self.axes, values, strict=True))}),
                self.seeds,
                frozenset(nested({**self.base, **self.axes}).get("seeds", {})),
            )
        ]


def with_seeds(spec: RunSpec, seeds: Sequence[int], keep: frozenset[str] = frozenset()) -> list[RunSpec]:
    """The spec once per seed; seeds named in `keep` stay as the spec has them."""
    return [spec.with_seed(seed, keep) for seed in seeds]


def parse_seeds(text: str) -> tuple[int, ...]:
    """`0,42` → (0, 42)"""
    try:
        seeds = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(
            "--seeds", "must be whole numbers separated by commas", text, "Example: --seeds 0,42"
        ) from None
    if len(set(seeds)) != len(seeds):
        raise ConfigError("--seeds", "must not name a seed twice", text)
    return seeds


studies: Registry[Study] = Registry("study")


def _add(study: Study) -> None:
    studies.register(study.name)(study)


_add(
    Study(
        name="demo",
        title="Memorise first, generalise later",
        about="A small LSTM and a small GPT learn addition modulo a small prime from part of its equations.",
        recipes=("arithmetic-lstm", "arithmetic-gpt"),
        base={
            "task.p": 17,
            "task.fraction": 0.7,
            "model.width": 64,
            "training.lr": 0.003,
            "training.steps": 2500,
            "training.eval_period": 25,
        },
        bands=DEMO_BANDS,
        quick_base={"task.p": 7, "model.width": 16, "training.steps": 200, "training.checkpoint_period": 100},
    )
)
_add(
    Study(
        name="sanity",
        title="Sanity check: LSTM and GPT on addition modulo 31",
        about="Document 000's default experiment: both models, p = 31, half of the equations, 10,001 steps.",
        recipes=("arithmetic-lstm", "arithmetic-gpt"),
        bands=ARITHMETIC_BANDS,
        quick_base={"task.p": 11, "model.width": 32, "training.steps": 400, "training.checkpoint_period": 200},
    )
)
