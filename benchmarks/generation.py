"""Tokens per second of generation with the model's state, and with everything recomputed for every token.

    python -m benchmarks.generation [--tokens 512] [--rows 1] [--repeats 3] [--device cpu]

The models are a transformer of document 004's size (8 layers of 128, 8 heads; sinusoidal positions, which have no end)
and document 000's LSTM. Both ways generate greedily, and their tokens are compared. The first round is not counted.
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


@dataclass(frozen=True)
class Speed:
    """Tokens per second over all rows: the median of the repeats, and the slowest and fastest of them."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:8.1f} tokens/s ({self.low:.1f} … {self.high:.1f})"


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


def measure(
    way: Callable[[LanguageModel, int, int], list[list[int]]],
    model: LanguageModel,
    rows: int,
    tokens: int,
    repeats: int,
) -> tuple[Speed, list[list[int]]]:
    """Both ways end by copying the tokens to the host, which waits for the device."""
    found = way(model, rows, tokens)
    speeds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        found = way(model, rows, tokens)
        speeds.append(sum(map(len, found)) / (time.perf_counter() - begin))
    return Speed(statistics.median(speeds), min(speeds), max(speeds)), found


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
        fast, text = measure(with_state, model, options.rows, options.tokens, options.repeats)
        slow, same = measure(recomputing, model, options.rows, options.tokens, options.repeats)
        agree = "the same tokens" if text == same else "DIFFERENT tokens"
        print(f"{name:12} with state   {fast}")
        print(f"{name:12} recomputing  {slow}   ratio {fast.median / slow.median:.1f}, {agree}")


if __name__ == "__main__":
    main()
