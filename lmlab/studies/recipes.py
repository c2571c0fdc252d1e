"""Recipes: named specs to start from, and the bands their results are expected in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmlab.core.registry import Registry
from lmlab.data.arithmetic import Arithmetic
from lmlab.engine.spec import RunSpec
from lmlab.models.decoder import DecoderConfig
from lmlab.models.recurrent import LSTMConfig

recipes: Registry[Callable[[], RunSpec]] = Registry("recipe")


@recipes.register("arithmetic-lstm")
def arithmetic_lstm() -> RunSpec:
    """Addition modulo 31 with a two-layer LSTM of 128 (document 000)."""
    return RunSpec(task=Arithmetic(), model=LSTMConfig())


@recipes.register("arithmetic-gpt")
def arithmetic_gpt() -> RunSpec:
    """Addition modulo 31 with a two-layer GPT of 128 and 4 heads (document 000)."""
    return RunSpec(task=Arithmetic(), model=DecoderConfig())


@dataclass(frozen=True)
class Band:
    """Where 80 % of seeds lie: the 10 %, 50 % and 90 % quantiles."""

    low: float
    median: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


Bands = dict[str, Band]

# Document 000's grid, 64 seeds in fp32. Names as in `runs.extrema`; first_accuracy_val: first step with A_val ≥ 0.9.
ARITHMETIC_BANDS: dict[str, Bands] = {
    "arithmetic-lstm": {
        "t_accuracy_train": Band(300, 300, 300),
        "loss_train": Band(6e-5, 8e-5, 1.3e-4),
        "loss_val": Band(4e-4, 7e-3, 5e-2),
        "accuracy_val": Band(0.971, 0.998, 1),
        "t_accuracy_val": Band(6500, 9500, 10000),
        "first_accuracy_val": Band(4400, 6100, 7900),
    },
    "arithmetic-gpt": {
        "t_accuracy_train": Band(75, 85, 93),
        "loss_train": Band(1.3e-4, 1.6e-4, 2.1e-4),
        "loss_val": Band(3e-4, 1.4e-3, 2.7e-2),
        "accuracy_val": Band(0.981, 1, 1),
        "t_accuracy_val": Band(4100, 6700, 10000),
        "first_accuracy_val": Band(3500, 5000, 9000),
    },
}

# The study `demo` (p = 17, width 64, 2,500 steps), 64 seeds in fp32; a third of the LSTMs do not generalise in that time.
DEMO_BANDS: dict[str, Bands] = {
    "arithmetic-lstm": {
        "t_accuracy_train": Band(225, 250, 275),
        "loss_train": Band(4.1e-3, 4.9e-3, 5.6e-3),
        "loss_val": Band(1.7e-2, 8.4e-2, 0.63),
        "accuracy_val": Band(0.625, 0.977, 1),
        "t_accuracy_val": Band(1640, 2350, 2500),
        "first_accuracy_val": Band(1300, 1900, float("inf")),
    },
    "arithmetic-gpt": {
        "t_accuracy_train": Band(70, 78, 96),
        "loss_train": Band(2.3e-3, 3.9e-3, 4.7e-3),
        "loss_val": Band(3.6e-3, 3.6e-2, 0.19),
        "accuracy_val": Band(0.938, 1, 1),
        "t_accuracy_val": Band(1000, 1850, 2360),
        "first_accuracy_val": Band(875, 1250, 1975),
    },
}
