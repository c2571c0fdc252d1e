"""How the next token is chosen: the options, the filters in their order, the draw.

    scores → repetition penalty → forbidden symbols → ÷ temperature → top-k → top-p → draw

A draw is the inverse of the cumulative distribution at a 32-bit uniform number that is a function of (seed, the row's
own number, position): what a row becomes depends neither on its neighbours nor on what was drawn before it.
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Final, Self

import torch
from pydantic import BeforeValidator, model_validator
from torch import Tensor

from lmlab.core import randomness
from lmlab.core.config import Config, as_tuple
from lmlab.core.errors import ConfigError
from lmlab.models.continuation import PastWindow

EVERY: Final = 1_000_000
"""A top-k that leaves every symbol in: more than any vocabulary."""

Ids = Annotated[tuple[int, ...], BeforeValidator(as_tuple)]


class Sampling(Config):
    """What to generate and how."""

    max_tokens: int = 100
    """At most so many new tokens per prompt."""
    temperature: float = 1.0
    """Scores are divided by it; 0 always takes the most probable symbol (greedy)."""
    top_k: int = EVERY
    """Only the k most probable symbols; of equally probable ones those with the lower ids."""
    top_p: float = 1.0
    """Only the fewest symbols, most probable first, that have at least this probability together (Holtzman et al.,
    2020); after top-k, of what it left."""
    repetition_penalty: float = 1.0
    """Scores of symbols that the row already has are divided by it, or multiplied where negative (Keskar et al.,
    2019)."""
    forbidden: Ids = ()
    """Symbols that are never generated, such as document 003's <sos>, <eos> and <pad>."""
    stop: Ids = ()
    """Symbols that end a row; the symbol is the row's last token."""
    seed: int = 0
    """The same seed gives the same text."""
    beams: int = 1
    """More than 1: the most probable continuation is searched for with so many hypotheses, instead of drawn."""
    length_penalty: float = 0.0
    """Of a search: hypotheses are compared by log-probability / length^penalty; 0 is the log-probability itself, 1 that
    per token."""
    window: int = 0
    """How many tokens the model may see, the length it was trained on; 0 for no limit."""
    past_window: PastWindow = "slide"
    """What happens when a row outgrows the window: see `models.continuation`."""

    @classmethod
    def field(cls, name: str) -> str:
        return "--" + name.replace("_", "-")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, high in (("max_tokens", 1_000_000), ("top_k", EVERY), ("beams", 1000)):
            if not 1 <= getattr(self, name) <= high:
                raise ConfigError(self.field(name), f"must be between 1 and {high}", getattr(self, name))
        if not 0 <= self.temperature < inf:
            raise ConfigError(self.field("temperature"), "must be at least 0", self.temperature, "0 is greedy.")
        if not 0 < self.top_p <= 1:
            raise ConfigError(self.field("top_p"), "must be above 0 and at most 1", self.top_p, "1 keeps everything.")
        if not 0 < self.repetition_penalty < inf:
            raise ConfigError(
                self.field("repetition_penalty"), "must be above 0", self.repetition_penalty, "1 is no penalty."
            )
        if not 0 <= self.length_penalty < inf:
            raise ConfigError(self.field("length_penalty"), "must be at least 0", self.length_penalty)
        if self.window < 0:
            raise ConfigError(self.field("window"), "must be at least 0", self.window, "0 is no window.")
        if self.beams > 1:
            self._check_search()
        return self

    def _check_search(self) -> None:
        """A search draws nothing, so an option of the draw would be ignored: refuse it."""
        harmless = {"temperature": (0, 1), "top_k": (EVERY,), "top_p": (1,), "repetition_penalty": (1,)}
        for name, values in harmless.items():
            if getattr(self, name) not in values:
                rule = f"has no meaning with --beams {self.beams}, which searches and does not draw"
                raise ConfigError(self.field(name), rule, getattr(self, name), "Leave one of them out.")

    def allowed(self, vocabulary: int) -> Tensor:
        """Which symbols may be generated.   → (V,) bool"""
        for name in ("forbidden", "stop"):
            wrong = [token for token in getattr(self, name) if not 0 <= token < vocabulary]
            if wrong:
                rule = f"must be ids of the vocabulary (0 … {vocabulary - 1})"
                raise ConfigError(self.field(name), rule, wrong[0])
        mask = torch.ones(vocabulary, dtype=torch.bool)
        mask[list(self.forbidden)] = False
        if not mask.any():
            raise ConfigError(self.field("forbidden"), "must leave a symbol to generate", list(self.forbidden))
        return mask


def uniform_words(seed: int, numbers_B: Tensor, position: int) -> Tensor:
    """The 32-bit words that decide the tokens at a position of the rows with these numbers.   (B,) → (B,)"""
    key = torch.tensor(randomness.stream(seed, "generate"), device=numbers_B.device)
    return randomness.words(randomness.fold(key, numbers_B), torch.tensor(position, device=numbers_B.device))


def random_start(options: Sampling, vocabulary: int, number: int) -> int:
    """The first symbol of a row without a prompt (document 004): uniform over what is allowed and does not stop."""
    mask = options.allowed(vocabulary)
    mask[list(options.stop)] = False
    choices = mask.nonzero().flatten().tolist()
    if not choices:
        raise ConfigError("--prompt", "is needed where every symbol is forbidden or ends the text", "")
    word = int(uniform_words(options.seed, torch.tensor([number]), 0))
    return choices[word * len(choices) >> 32]


def penalised(logits_BV: Tensor, seen_BV: Tensor, penalty: float) -> Tensor:
    """Scores of symbols seen before, made smaller: divided where positive, multiplied where negative."""
    smaller = torch.where(logits_BV > 0, logits_BV / penalty, logits_BV * penalty)
    return torch.where(seen_BV, smaller, logits_BV)


def candidates(scores_BV: Tensor, options: Sampling) -> tuple[Tensor, Tensor]:
    """Temperature, top-k, top-p: the distribution that is drawn from, in descending order.

    scores (B, V), −inf where forbidden → probabilities (B, V) in float64, the ids they belong to (B, V).
    Of equal probabilities the lower id comes first. The temperature must be above 0.
    """
    scores = scores_BV.double()
    scaled = (scores - scores.amax(-1, keepdim=True)) / options.temperature  # ≤ 0: a tiny temperature cannot overflow
    ordered, ids = scaled.sort(dim=-1, descending=True, stable=True)
    ordered[:, options.top_k :] = -inf
    probabilities = ordered.softmax(dim=-1)
    if options.top_p < 1:
        before = probabilities.cumsum(-1) - probabilities
        probabilities = probabilities.masked_fill(before >= options.top_p, 0.0)
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    return probabilities, ids


def draw(probabilities_BV: Tensor, ids_BV: Tensor, words_B: Tensor) -> Tensor:
    """The id whose share of the cumulative distribution holds the point word / 2³².   → (B,)"""
    cumulative = probabilities_BV.cumsum(-1)
    point = words_B.double().div(2**32).unsqueeze(-1) * cumulative[:, -1:]
    rank = torch.searchsorted(cumulative, point, right=True)  # the first entry above the point: never one of zero
    return ids_BV.gather(-1, rank).squeeze(-1)


def choose(scores_BV: Tensor, options: Sampling, words_B: Tensor) -> Tensor:
    """The next token of every row from its penalised scores, −inf where forbidden.   → (B,)"""
    if options.temperature == 0:
        return scores_BV.argmax(-1)
    return draw(*candidates(scores_BV, options), words_B)
