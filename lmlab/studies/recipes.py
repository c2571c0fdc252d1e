"""Recipes: named specs to start from, and the bands their results are expected in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmlab.core.registry import Registry
from lmlab.data.arithmetic import Arithmetic
from lmlab.data.text import Text
from lmlab.data.transcripts import Transcripts
from lmlab.engine.spec import RunSpec, Training
from lmlab.models.model import ModelConfig
from lmlab.models.presets import (
    causal_decoder,
    elman_004,
    gpt_000,
    gru_004,
    lstm_000,
    tiny_transformer,
    transformer_004,
)

recipes: Registry[Callable[[], RunSpec]] = Registry("recipe")


@recipes.register("arithmetic-lstm")
def arithmetic_lstm() -> RunSpec:
    """Addition modulo 31 with a two-layer LSTM of 128 (document 000)."""
    return RunSpec(task=Arithmetic(), model=lstm_000())


@recipes.register("arithmetic-gpt")
def arithmetic_gpt() -> RunSpec:
    """Addition modulo 31 with a two-layer GPT of 128 and 4 heads (document 000)."""
    return RunSpec(task=Arithmetic(), model=gpt_000())


@recipes.register("shakespeare")
def shakespeare() -> RunSpec:
    """Document 002's TinyTransformer on windows of 50 sub-words; give Tiny Shakespeare with --set task.path=…

    Windows are split as the document does it, without a gap, so that its perplexities can be compared.
    """
    return RunSpec(
        task=Text(
            tokenizer="corpus-bpe",
            vocabulary=500,
            window=50,
            stride=1,
            gap=0,
            validation=0.2,
            drop_speakers=True,
            measured=2000,
        ),
        model=tiny_transformer(),
        training=Training(
            epochs=20.0,
            batch_size=64,
            lr=3e-5,
            betas=(0.9, 0.98),
            weight_decay=0.05,
            eval_first=0,
            eval_period=0,
            checkpoint_period=0,
            keep_last=20,
        ),
    )


@recipes.register("transcripts")
def transcripts() -> RunSpec:
    """Document 003's causal decoder on letters of utterances. The document gives no sizes: all numbers are ours."""
    return RunSpec(
        task=Transcripts(),
        model=causal_decoder(),
        training=Training(
            steps=3000,
            batch_size=32,
            lr=3e-3,
            betas=(0.9, 0.98),
            weight_decay=0.1,
            schedule="cosine",
            warmup=200,
            eval_first=0,
            eval_period=250,
            checkpoint_period=500,
        ),
    )


def _stories(model: ModelConfig, window: int, steps: int) -> RunSpec:
    """Document 004's training: Adam, batches of 32 windows of characters, the last short one dropped, no clipping."""
    return RunSpec(
        task=Text(window=window),
        model=model,
        training=Training(
            steps=steps,
            batch_size=32,
            drop_last=True,
            optimizer="adam",
            lr=1e-3,
            weight_decay=0.0,
            clip=0.0,
            eval_first=0,
            eval_period=250,
            checkpoint_period=500,
        ),
    )


@recipes.register("stories-rnn")
def stories_rnn() -> RunSpec:
    """An Elman network of 256 on windows of 20 characters (document 004)."""
    return _stories(elman_004(), window=20, steps=2000)


@recipes.register("stories-multilayer")
def stories_multilayer() -> RunSpec:
    """The same with two layers; 3 and 4 with --set model.layers=… (document 004)."""
    return _stories(elman_004(layers=2), window=20, steps=2000)


@recipes.register("stories-gru")
def stories_gru() -> RunSpec:
    """A GRU of 256 on windows of 100 characters (document 004)."""
    return _stories(gru_004(), window=100, steps=3000)


@recipes.register("stories-transformer")
def stories_transformer() -> RunSpec:
    """A GPT-2-style transformer of one layer on windows of 100; --set model.layers=8 for the deep one (004)."""
    return _stories(transformer_004(), window=100, steps=3000)


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

# The study `demo` (p = 17, width 64, 2,500 steps), 64 seeds in fp32; a third of the LSTMs need longer.
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
