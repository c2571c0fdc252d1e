"""The contract every model keeps, and `build()`.

    logits, state = model(tokens, state=None)     tokens (B, S) int64 → logits (B, S, V)

`state` is what the next call needs (hidden and cell tensors, or keys and values): feeding a sequence in any
pieces with the state equals feeding it whole. Logits at t never depend on tokens after t.

    model.look(tokens) → Internals                everything there is to see inside

A model is written for ONE run and knows nothing of stacks, devices, optimizers or tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from lmlab.core.config import Config
from lmlab.core.errors import ConfigError
from lmlab.core.randomness import fold, words
from lmlab.core.registry import Registry
from lmlab.models.initial import initialise

State = Any
"""Opaque to callers: pass back what the last call returned."""


@dataclass(frozen=True)
class Internals:
    """What `look()` saw. hidden_states (B, L, S, d); attentions (B, L, H, S, S) or gates {name: (B, L, S, d)}."""

    logits: Tensor
    hidden_states: Tensor
    attentions: Tensor | None = None
    gates: dict[str, Tensor] = field(default_factory=dict)


class LanguageModel(nn.Module):
    """Base of all models. Subclasses have `embedding.tokens` and `classifier` beside their body."""

    def forward(self, tokens: Tensor, state: State = None) -> tuple[Tensor, State]:
        raise NotImplementedError

    def look(self, tokens: Tensor) -> Internals:
        raise NotImplementedError


class ModelConfig(Config):
    """Base of all model configurations; `name` picks the class."""

    section: ClassVar[str] = "model"
    derived: ClassVar = {"classifier_bias": lambda config: config.bias}
    name: str
    layers: int = 2
    """L, the number of layers."""
    width: int = 128
    """D, the size of embeddings (and of hidden states unless `hidden` is set)."""
    dropout: float = 0.0
    """Probability of dropping a unit, at the places the model names."""
    embedding_dropout: float = 0.0
    """Probability of dropping a symbol wherever it occurs in a pass (word-level dropout)."""
    bias: bool = True
    """Biases in recurrent cells or attention."""
    classifier_bias: bool = True
    """A bias in the classifier; follows `bias` unless set."""
    tie: bool = False
    """The classifier uses the embedding's matrix."""

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        self.check_ranges(layers=(1, 1000), width=(1, 65536))
        for name in ("dropout", "embedding_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(self.field(name), "must be at least 0 and below 1", getattr(self, name))
        return self

    def build(self, vocabulary: int, length: int, padding: int | None) -> LanguageModel:
        """The module, uninitialised, for `vocabulary` symbols, trained on sequences of `length`."""
        raise NotImplementedError


models: Registry[type[ModelConfig]] = Registry("model")


class Keyed(nn.Module):
    """A module that draws: `key` is set by the engine for each run and step; its masks are hashes of it."""

    key: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("key", torch.zeros((), dtype=torch.int64), persistent=False)


class Dropout(Keyed):
    """Dropout whose mask is a hash of (key, site, index) instead of a draw from a global generator.

    x (…) → x · keep / (1 − p). A padded batch keeps the masks of its
    first rows, because an element's index counts from the start of the batch. Outside training it passes x on.
    """

    def __init__(self, p: float, site: int) -> None:
        super().__init__()
        self.p, self.site = p, site

    def forward(self, x: Tensor) -> Tensor:
        if self.p == 0 or not self.training:
            return x
        index = torch.arange(x.numel(), device=x.device).view(x.shape)
        keep = words(fold(self.key, self.site), index) >= round(self.p * 2**32)
        return torch.where(keep, x / (1 - self.p), torch.zeros((), dtype=x.dtype, device=x.device))

    def extra_repr(self) -> str:
        return f"p={self.p}, site={self.site}"


class Place(nn.Module):
    """A named activation: hands its input on, so that a forward hook can read or replace what passes here."""

    def forward(self, x: Tensor) -> Tensor:
        return x

    @property
    def is_watched(self) -> bool:
        """Somebody reads or edits what passes here, so it must really be computed."""
        return bool(self._forward_hooks)


class Reading:
    """Collects what passes the places of a model inside a `with` block; leaves no hook behind.

    >>> with Reading(model) as seen: model(tokens)
    >>> seen["blocks.0.attention.weights"]      # a list: one tensor per time the place was passed
    """

    def __init__(self, model: nn.Module) -> None:
        self.places = {name: module for name, module in model.named_modules() if isinstance(module, Place)}

    def __enter__(self) -> dict[str, list[Tensor]]:
        seen: dict[str, list[Tensor]] = {name: [] for name in self.places}

        def collect(name: str) -> Callable[..., None]:
            return lambda _module, _inputs, output: seen[name].append(output)

        self._handles = [place.register_forward_hook(collect(name)) for name, place in self.places.items()]
        return seen

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def build(
    config: ModelConfig,
    vocabulary: int,
    length: int,
    padding: int | None = None,
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> LanguageModel:
    """A model with its initial weights: the same seed gives the same weights on every machine."""
    model = config.build(vocabulary, length, padding)
    initialise(model, seed)
    return model.to(dtype)
