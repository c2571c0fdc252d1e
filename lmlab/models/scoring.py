"""How probable a model finds a text: log-probability, negative log-likelihood per token, perplexity, bits per byte.

    log p(t_1 … t_N | t_0) = Σ_n log p(t_n | t_0 … t_{n−1})

t_0 is the start marker, whose probability is 1 (document 003); with the end marker as t_N this is the probability of
the complete sequence. A text longer than the model's window is read through windows that overlap (`score_long`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.core.errors import ConfigError, DataError
from lmlab.models.continuation import check_tokens, device_of, evaluating, finite, learned_positions, symbols
from lmlab.models.model import LanguageModel

TOKENS_AT_ONCE = 4096
SCORES_AT_ONCE = 2**23
"""A call of the model has about so many tokens and scores (the latter are 64 MiB in float64)."""
PIECE = 512
"""Tokens of one row that are read in one call: attention holds the weights of a piece over all that came before."""


@dataclass(frozen=True, eq=False)
class Score:
    """−log p of every scored token, in order: (N,) float64, natural logarithms, on the CPU."""

    nlls: Tensor

    @property
    def tokens(self) -> int:
        return len(self.nlls)

    @property
    def logprob(self) -> float:
        """log p of all tokens."""
        return -float(self.nlls.sum())

    @property
    def nll(self) -> float:
        """The mean of −log p per token."""
        return float(self.nlls.mean())

    @property
    def perplexity(self) -> float:
        """exp(nll); infinite where that is beyond the numbers."""
        return float(self.nlls.mean().exp())

    def bits_per_byte(self, size: int) -> float:
        """−log₂ p of all tokens per byte of the scored text, `size` = len(text.encode()) of what tokens stand for."""
        if size < 1:
            raise DataError("bits per byte need a text of at least one byte.")
        return float(self.nlls.sum()) / log(2) / size

    def to_json(self, size: int) -> dict[str, Any]:
        """`size` as for `bits_per_byte`. What is no number (of an empty text, beyond exp's range) is null."""
        return {
            "logprob": self.logprob,
            "tokens": self.tokens,
            "nll": self.nll,
            "perplexity": self.perplexity if isfinite(self.perplexity) else None,
            "bits_per_byte": self.bits_per_byte(size) if size else None,
        }

    def __repr__(self) -> str:
        return f"Score({self.tokens} tokens, nll {self.nll:.4f}, perplexity {self.perplexity:.4g})"


def score_sequence(model: LanguageModel, tokens: Sequence[int], first: int = 1) -> Score:
    """The probability of tokens[first:] given what comes before, with all of it as context."""
    return score_sequences(model, [tokens], first)[0]


def score_sequences(model: LanguageModel, sequences: Sequence[Sequence[int]], first: int = 1) -> list[Score]:
    """`score_sequence` of each; sequences of equal length share a batch."""
    for tokens in sequences:
        _check(model, tokens, first)
        last = learned_positions(model)
        if last is not None and len(tokens) - 1 > last:
            raise DataError(
                f"the model has learned {last} positions; the text needs {len(tokens) - 1}. "
                f"Read it through windows: score_long, or --window {last}."
            )
    lengths: dict[int, list[int]] = {}
    for row, tokens in enumerate(sequences):
        lengths.setdefault(len(tokens), []).append(row)
    found: dict[int, Score] = {}
    for length, rows in lengths.items():
        share = _batch(model, length)
        for start in range(0, len(rows), share):
            batch = rows[start : start + share]
            table = torch.tensor([list(sequences[row]) for row in batch], device=device_of(model))
            found.update(zip(batch, map(Score, _carried(model, table)[:, first - 1 :].cpu()), strict=True))
    return [found[row] for row in range(len(sequences))]


def score_long(
    model: LanguageModel, tokens: Sequence[int], window: int, stride: int, first: int = 1, *, carry: bool = False
) -> Score:
    """A text of any length: each token scored once, in a window of `window` tokens that moves on by `stride`.

    The first window scores all its tokens, each later one its last `stride`: they see at least window − stride + 1
    tokens, the smaller the stride the more; stride = 1 gives everyone the full window. The last window ends with the
    text. With `carry` the state goes on from one window to the next instead and every token sees all that came before:
    natural for recurrent models, and possible for attention where positions have no end.
    """
    _check(model, tokens, first)
    last = learned_positions(model)
    if window < 1 or (last is not None and window > last):
        upper = "" if last is None else f" and at most the {last} positions the model has learned"
        raise ConfigError("--window", f"must be at least 1{upper}", window)
    if not 1 <= stride <= window:
        raise ConfigError("--stride", f"must be between 1 and the window ({window})", stride)
    if carry:
        return score_sequence(model, tokens, first)
    text = torch.tensor(list(tokens), device=device_of(model))
    targets = len(text) - 1
    window = min(window, targets)
    ends = torch.tensor([*range(window, targets, stride), targets], device=text.device)
    fresh = torch.cat((ends[:1], ends.diff()))  # how many tokens a window is the first to reach
    span = torch.arange(window, device=text.device)
    share, found = _batch(model, window), []
    for end, new in zip(ends.split(share), fresh.split(share), strict=True):
        places = end.unsqueeze(1) - window + span
        with evaluating(model):
            nlls = _nlls(model(text[places])[0], text[places + 1])
        found.append(nlls[span >= window - new.unsqueeze(1)])  # row by row: in the order of the text
    return Score(torch.cat(found)[first - 1 :].cpu())


def _carried(model: LanguageModel, tokens_BS: Tensor) -> Tensor:
    """−log p of every token but the first, read in pieces with the state.   → (B, S − 1)"""
    batch, length = tokens_BS.shape
    piece = max(1, min(PIECE, _batch(model, 1) // batch))
    state, found = None, []
    for start in range(0, length - 1, piece):
        stop = min(start + piece, length - 1)
        with evaluating(model):
            logits, state = model(tokens_BS[:, start:stop], state)
            found.append(_nlls(logits, tokens_BS[:, start + 1 : stop + 1]))
    return torch.cat(found, dim=1)


def _nlls(logits_BSV: Tensor, targets_BS: Tensor) -> Tensor:
    """−log p of the targets, in float64.   → (B, S)"""
    return F.cross_entropy(finite(logits_BSV).double().transpose(1, 2), targets_BS, reduction="none")


def _batch(model: LanguageModel, length: int) -> int:
    """How many rows of this length to feed at once."""
    return max(1, min(TOKENS_AT_ONCE, SCORES_AT_ONCE // symbols(model)) // length)


def _check(model: LanguageModel, tokens: Sequence[int], first: int) -> None:
    if first < 1:
        raise ConfigError("first", "must be at least 1: the first token has nothing before it", first)
    if len(tokens) <= first:
        raise DataError(f"nothing to score: the text has {len(tokens)} tokens, and the first {first} are given.")
    check_tokens(model, [tokens])
