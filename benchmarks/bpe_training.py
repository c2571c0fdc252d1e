"""Seconds to learn document 002's tokenizer: kept pair counts against counting the corpus anew for each merge.

    python -m benchmarks.bpe_training [--path FILE] [--size 500] [--repeats 3]

Both ways start from the same lines and must end with the same vocabulary and the same merges.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TypeVar

from lmlab.data.corpus_bpe import CorpusBPE
from lmlab.data.files import drop_speakers, read_text
from lmlab.data.pretokens import pretokens, show_bytes

T = TypeVar("T")
Merges = list[tuple[str, str]]


def by_recounting(lines: list[str], size: int) -> tuple[list[str], Merges]:
    """The document's way: for every merge, all pairs of all different words are counted again."""
    counts: dict[str, int] = {}
    for line in lines:
        for word in pretokens(line):
            shown = show_bytes(word.encode())
            shown = shown.capitalize() if shown.isupper() else shown
            counts[shown] = counts.get(shown, 0) + 1
    alphabet = sorted({symbol for word in counts for symbol in word})
    splits = {word: list(word) for word in counts}
    known, merges = set(alphabet), []
    while len(known) < size:
        pairs: dict[tuple[str, str], int] = {}
        for word, split in splits.items():
            for pair in pairwise(split):
                pairs[pair] = pairs.get(pair, 0) + counts[word]
        best = max(pairs, key=pairs.__getitem__)  # the first of equals
        for word, split in splits.items():
            if len(split) > 1:
                splits[word] = joined(split, best)
        merges.append(best)
        known.add("".join(best))
    return sorted(known, key=lambda symbol: (len(symbol), symbol)), merges


def joined(split: list[str], pair: tuple[str, str]) -> list[str]:
    left, right = pair
    result, i, last = [], 0, len(split) - 1
    while i <= last:
        if split[i] == left and i < last and split[i + 1] == right:
            result.append(left + right)
            i += 2
        else:
            result.append(split[i])
            i += 1
    return result


def made_up_lines(characters: int = 1_000_000, seed: int = 0) -> list[str]:
    """Lines of invented words whose frequencies fall as in a natural text (Zipf)."""
    draw = random.Random(seed)
    syllables = [a + b + c for a in "bcdfghklmnprstvw" for b in "aeiou" for c in ("", "n", "r", "s", "th")]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(12_000)]
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    lines, written = [], 0
    while written < characters:
        line = " ".join(draw.choices(words, cum_weights=weights, k=draw.randint(4, 10)))
        line = line.capitalize() + draw.choice(",.;:!?")
        lines.append(line)
        written += len(line)
    return lines


def timed(function: Callable[[], T]) -> tuple[T, float]:
    begin = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, help="a play such as Tiny Shakespeare; made-up text without it")
    parser.add_argument("--size", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3, help="of the kept counts; recounting runs once")
    options = parser.parse_args()
    lines = drop_speakers(read_text(options.path)).splitlines() if options.path else made_up_lines()
    trials = [timed(lambda: CorpusBPE.train(lines, options.size)) for _ in range(max(1, options.repeats))]
    ours, kept = trials[0][0], statistics.median(seconds for _, seconds in trials)
    (vocabulary, merges), recounted = timed(lambda: by_recounting(lines, options.size))
    if (list(ours.vocabulary), list(ours.merges)) != (vocabulary, merges):
        raise SystemExit("the two ways learned different tokenizers")
    print(f"{sum(map(len, lines)):,} characters, {len(ours.alphabet)} symbols, {len(merges)} merges, equal results")
    print(f"recounting per merge {recounted:8.2f} s")
    print(f"kept counts          {kept:8.2f} s   {recounted / kept:.0f} times faster")


if __name__ == "__main__":
    main()
