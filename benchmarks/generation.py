"""Tokens per second of generation with the model's state, and with everything recomputed for every token.

    python -m benchmarks.generation [--tokens 512] [--rows 1] [--repeats 3] [--device cpu]

The models are a transformer of document 004's size (8 layers of 128, 8 heads; sinusoidal positions, which have no end)
and document 000's LSTM. Both ways generate greedily, and their tokens must be the same.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from lmlab.core.device import resolve_device
from lmlab.models.decoder import DecoderConfig
from lmlab.models.decoding import generate
from lmlab.models.model import LanguageModel, ModelConfig, build
from lmlab.models.recurrent import LSTMConfig
from lmlab.models.sampling import Sampling

VOCABULARY, LENGTH = 92, 100
MODELS: dict[str, ModelConfig] = {
    "transformer": DecoderConfig(layers=8, width=128, heads=8, positions="sinusoidal", norm_first=True),
    "lstm": LSTMConfig(layers=2, width=128),
}


Way = Callable[[LanguageModel, int, int], list[list[int]]]


@dataclass(frozen=True)
class Figure:
    """The median of the repeats, and the smallest and largest of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Figure:
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{self.median:.1f} ({self.low:.1f} … {self.high:.1f})"


def with_state(model: LanguageModel, rows: int, tokens: int) -> list[list[int]]:
    found = generate(model, [[row] for row in range(rows)], Sampling(max_tokens=tokens, temperature=0))
    return [list(one.tokens) for one in found]


@torch.no_grad()
def recomputing(model: LanguageModel, rows: int, tokens: int) -> list[list[int]]:
    """The whole row through the model for every new token, as documents 002 and 004 do."""
    text = torch.arange(rows, device=model.get_parameter("embedding.tokens.weight").device).unsqueeze(1)
    for _ in range(tokens):
        best = model(text)[0][:, -1].argmax(-1, keepdim=True)
        text = torch.cat((text, best), dim=1)
    return text[:, 1:].tolist()


def speed(way: Way, model: LanguageModel, rows: int, tokens: int) -> tuple[float, list[list[int]]]:
    """Tokens per second over all rows. Both ways end by copying the tokens to the host, which waits for the device."""
    begin = time.perf_counter()
    found = way(model, rows, tokens)
    return rows * tokens / (time.perf_counter() - begin), found


def compare(model: LanguageModel, rows: int, tokens: int, repeats: int) -> tuple[Figure, Figure, Figure]:
    """Tokens per second with the state, recomputing, and their ratio; the ways take turns, so that both see the same
    machine."""
    pairs = []
    for turn in range(repeats + 1):
        fast, text = speed(with_state, model, rows, tokens if turn else 32)
        slow, same = speed(recomputing, model, rows, tokens if turn else 32)
        if text != same:
            raise AssertionError("the two ways disagree")
        if turn:  # the first warms up
            pairs.append((fast, slow))
    with_, without = zip(*pairs, strict=True)
    return Figure.of(list(with_)), Figure.of(list(without)), Figure.of([fast / slow for fast, slow in pairs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    device = resolve_device(options.device)
    print(f"{options.tokens} tokens, {options.rows} rows, {device.type}, {torch.get_num_threads()} threads")
    for name, config in MODELS.items():
        model = build(config, VOCABULARY, LENGTH).eval().to(device)
        fast, slow, ratio = compare(model, options.rows, options.tokens, options.repeats)
        print(f"{name:12} tokens/s: {fast} with state, {slow} recomputing; ratio {ratio}", flush=True)


if __name__ == "__main__":
    main()
