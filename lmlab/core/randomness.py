"""Named, stateless random streams: the same number for the same (seed, purpose, step, index), always.

A counter-based generator (in the spirit of Salmon et al., 2011, "Parallel random numbers: as easy as 1, 2, 3"):
nothing is carried from one draw to the next, so a run does not depend on its neighbours in a stack, resuming
needs no generator state, and a step captured in a CUDA graph draws fresh numbers because the step is a tensor.

All arithmetic is on 32-bit words held in int64. The two multipliers are below 2³¹, so a product of a word and
a multiplier never overflows int64: CPU, CUDA and compiled code give the same bits.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, TypeVar

import torch
from torch import Tensor

_WORD: Final = 0xFFFFFFFF
_GOLDEN: Final = 0x9E3779B9

Word = TypeVar("Word", int, Tensor)


def stream(seed: int, purpose: str, *names: str | int) -> int:
    """The 32-bit key of a named stream, e.g. `stream(42, "split", "ternary")`."""
    text = "/".join(str(part) for part in (purpose, seed, *names))
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "little")


def mix(x: Word) -> Word:
    """A bijection of 32-bit words whose output bits each depend on all input bits (two xor-shift-multiply rounds)."""
    x = (x ^ (x >> 16)) * 0x21F0AAAD & _WORD
    x = (x ^ (x >> 15)) * 0x735A2D97 & _WORD
    return x ^ (x >> 15)


def fold(key: Tensor, number: Tensor | int) -> Tensor:
    """A new key from a key and a number (a step, an epoch, a dropout site); broadcasts."""
    offset: Any = (number + _GOLDEN) & _WORD  # a plain number stays one: nothing to copy to the device
    return mix(key ^ mix(offset))


def words(key: Tensor, index: Tensor) -> Tensor:
    """Uniform 32-bit words at the given indices of the key's stream; broadcasts, int64."""
    return mix(mix((index + _GOLDEN) & _WORD) ^ key)


def permutations(keys: Tensor, size: int) -> Tensor:
    """One random order of 0 … size−1 per key: (…,) → (…, size). Ties keep their order, so it is the same everywhere."""
    index = torch.arange(size, device=keys.device)
    return words(keys.unsqueeze(-1), index).argsort(dim=-1, stable=True)


def generator(seed: int, purpose: str, *names: str | int) -> torch.Generator:
    """A CPU generator at the start of a named stream, for draws that are made once (initial weights)."""
    return torch.Generator().manual_seed(stream(seed, purpose, *names))
