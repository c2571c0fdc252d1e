"""The decoder-only transformer: blocks of attention and feed-forward with skip connections.

post-norm (document 000):   x ← norm(x + attention(x));   x ← norm(x + feedforward(x))
pre-norm:                   x ← x + attention(norm(x));   x ← x + feedforward(norm(x));   a norm at the end
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.core.errors import ConfigError
from lmlab.models.attention import KeysValues, MultiHeadAttention
from lmlab.models.embedding import Embedding, Exponent, Positions
from lmlab.models.layers import Linear, classifier
from lmlab.models.model import Dropout, Internals, LanguageModel, ModelConfig, Place, Reading, models
from lmlab.models.norms import NORMS

ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu}


class FeedForward(nn.Module):
    """W_2 φ(W_1 x), without biases, then dropout.   x (B, S, D) → (B, S, D)"""

    def __init__(self, config: DecoderConfig, site: int) -> None:
        super().__init__()
        self.up = Linear(config.width, config.feedforward, bias=False)
        self.down = Linear(config.feedforward, config.width, bias=False)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.dropout, site)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(self.activation(self.up(x))))


class Block(nn.Module):
    """One layer.   x (B, S, D), keys and values so far → (B, S, D), keys and values"""

    def __init__(self, config: DecoderConfig, site: int) -> None:
        super().__init__()
        norm = NORMS[config.norm]
        self.norm_first = config.norm_first
        self.attention = MultiHeadAttention(config.width, config.heads, config.bias)
        self.attention_norm = norm(config.width)
        self.feedforward = FeedForward(config, site)
        self.feedforward_norm = norm(config.width)
        self.output = Place()

    def forward(self, x: Tensor, past: KeysValues | None) -> tuple[Tensor, KeysValues]:
        if self.norm_first:
            attended, present = self.attention(self.attention_norm(x), past)
            x = x + attended
            x = x + self.feedforward(self.feedforward_norm(x))
        else:
            attended, present = self.attention(x, past)
            x = self.attention_norm(x + attended)
            x = self.feedforward_norm(x + self.feedforward(x))
        return self.output(x), present


class Decoder(LanguageModel):
    """Embedding with positions → blocks → classifier."""

    def __init__(self, config: DecoderConfig, vocabulary: int, length: int, padding: int | None) -> None:
        super().__init__()
        self.embedding = Embedding(vocabulary, config.width, length, padding, config.positions, config.exponent)
        self.blocks = nn.ModuleList(Block(config, site) for site in range(config.layers))
        self.final_norm = NORMS[config.norm](config.width) if config.norm_first else nn.Identity()
        tied = self.embedding.tokens.weight if config.tie else None
        self.classifier = classifier(config.width, vocabulary, config.bias, tied)

    def forward(self, tokens: Tensor, state: list[KeysValues] | None = None) -> tuple[Tensor, list[KeysValues]]:
        past: list[Any] = list(state) if state else [None] * len(self.blocks)
        x = self.embedding(tokens, offset=past[0][0].shape[2] if state else 0)
        for layer, block in enumerate(self.blocks):
            x, past[layer] = block(x, past[layer])
        return self.classifier(self.final_norm(x)), past

    def look(self, tokens: Tensor) -> Internals:
        with Reading(self) as seen:
            logits, _ = self(tokens)
        layers = range(len(self.blocks))
        return Internals(
            logits,
            hidden_states=torch.stack([seen[f"blocks.{layer}.output"][0] for layer in layers], dim=1),
            attentions=torch.stack([seen[f"blocks.{layer}.attention.weights"][0] for layer in layers], dim=1),
        )


@models.register("gpt")
class DecoderConfig(ModelConfig):
    """The decoder; its defaults are the GPT of document 000: two post-norm layers of 128 with 4 heads."""

    derived: ClassVar = {"feedforward": lambda config: 4 * config.width}

    name: Literal["gpt"] = "gpt"
    heads: int = 4
    """H, attention heads; each is width / heads wide."""
    feedforward: int = 512
    """Hidden units of the feed-forward; follows 4 × `width` unless set."""
    norm: Literal["layer", "rms"] = "layer"
    """LayerNorm or RMSNorm."""
    norm_first: bool = False
    """Pre-norm (with a final norm) instead of post-norm."""
    positions: Positions = "sinusoidal"
    """How the order of tokens is told."""
    exponent: Exponent = "2k/d"
    """Of the sinusoids: 2k/d as in the paper, or k/d as document 000 prints it."""
    activation: Literal["gelu", "relu"] = "gelu"
    """φ of the feed-forward."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 1 <= self.heads <= self.width:
            raise ConfigError(self.field("heads"), f"must be between 1 and model.width ({self.width})", self.heads)
        if self.width % self.heads:
            below = self.width - self.width % self.heads
            raise ConfigError(
                self.field("width"),
                f"must be a multiple of model.heads ({self.heads})",
                self.width,
                f"Try {below} or {below + self.heads}.",
            )
        if not 1 <= self.feedforward <= 1_000_000:
            raise ConfigError(self.field("feedforward"), "must be between 1 and 1000000", self.feedforward)
        return self

    def build(self, vocabulary: int, length: int, padding: int | None) -> Decoder:
        return Decoder(self, vocabulary, length, padding)
