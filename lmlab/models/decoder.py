"""The decoder-only transformer: blocks of attention and feed-forward with skip connections.

    post-norm (document 000):        x ← norm(x + attention(x));   x ← norm(x + feedforward(x))
    pre-norm (002, 003, 004, today): x ← x + attention(norm(x));   x ← x + feedforward(norm(x));   a norm at the end

Its settings make it the GPT of 000, the TinyTransformer of 002, the decoder of 003, the transformer of 004, GPT-2 or
Llama: see `models/presets.py`.
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
from lmlab.models.initial import Rule, normal
from lmlab.models.layers import Linear, classifier
from lmlab.models.model import Dropout, Internals, LanguageModel, ModelConfig, Place, Reading, models
from lmlab.models.norms import NORMS

SMALL_STD = 0.02
"""Of `init="normal"`: weights and embeddings N(0, 0.02²), as GPT-2 has them."""


class FeedForward(nn.Module):
    """W_2 φ(W_1 x), then dropout.   x (B, S, D) → (B, S, D)

    SwiGLU (Shazeer, 2020) has a third matrix: W_2 (silu(W_g x) ⊙ W_1 x).
    """

    def __init__(self, config: DecoderConfig, site: int) -> None:
        super().__init__()
        D, F_, bias, rule = config.width, config.feedforward, config.feedforward_bias, config.linear_rule
        self.gate = Linear(D, F_, bias, rule) if config.activation == "swiglu" else None
        self.up = Linear(D, F_, bias, rule)
        self.down = Linear(F_, D, bias, rule)
        self.activation = config.activation
        self.dropout = Dropout(config.dropout, site)

    def forward(self, x: Tensor) -> Tensor:
        match self.activation:
            case "gelu":
                hidden = F.gelu(self.up(x))
            case "gelu-tanh":  # GPT-2's approximation
                hidden = F.gelu(self.up(x), approximate="tanh")
            case "relu":
                hidden = F.relu(self.up(x))
            case _:
                assert self.gate is not None
                hidden = F.silu(self.gate(x)) * self.up(x)
        return self.dropout(self.down(hidden))


class Block(nn.Module):
    """One layer.   x (B, S, D), keys and values so far → (B, S, D), keys and values"""

    def __init__(self, config: DecoderConfig, site: int) -> None:
        super().__init__()
        norm = NORMS[config.norm]
        self.norm_first = config.norm_first
        self.attention = MultiHeadAttention(
            config.width,
            config.heads,
            config.bias,
            key_heads=config.key_heads,
            rotary=config.positions == "rotary",
            rule=config.linear_rule,
        )
        self.attention_norm = norm(config.width, config.norm_eps)
        self.feedforward = FeedForward(config, site)
        self.feedforward_norm = norm(config.width, config.norm_eps)
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
        self.embedding = Embedding(
            vocabulary,
            config.width,
            length,
            padding,
            config.positions,
            config.exponent,
            SMALL_STD if config.init == "normal" else 1.0,
            config.embedding_dropout,
        )
        self.blocks = nn.ModuleList(Block(config, site) for site in range(config.layers))
        self.final_norm = NORMS[config.norm](config.width, config.norm_eps) if config.norm_first else nn.Identity()
        tied = self.embedding.tokens.weight if config.tie else None
        self.classifier = classifier(config.width, vocabulary, config.classifier_bias, tied, config.linear_rule)

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

    derived: ClassVar = {
        **ModelConfig.derived,
        "feedforward": lambda config: 4 * config.width,
        "key_heads": lambda config: config.heads,
    }

    name: Literal["gpt"] = "gpt"
    heads: int = 4
    """H, attention heads; each is width / heads wide."""
    key_heads: int = 4
    """H_kv, heads of keys and values (grouped queries); follows `heads` unless set."""
    feedforward: int = 512
    """Hidden units of the feed-forward; follows 4 × `width` unless set."""
    feedforward_bias: bool = False
    """Biases in the feed-forward."""
    norm: Literal["layer", "rms"] = "layer"
    """LayerNorm or RMSNorm."""
    norm_first: bool = False
    """Pre-norm (with a final norm) instead of post-norm."""
    norm_eps: float = 1e-5
    """ε of the norms."""
    positions: Positions = "sinusoidal"
    """How the order of tokens is told."""
    exponent: Exponent = "2k/d"
    """Of the sinusoids: 2k/d as in the paper, or k/d as document 000 prints it."""
    activation: Literal["gelu", "gelu-tanh", "relu", "swiglu"] = "gelu"
    """φ of the feed-forward."""
    init: Literal["pytorch", "normal"] = "pytorch"
    """PyTorch's default for linear layers with embeddings N(0, 1), or everything N(0, 0.02²)."""

    @property
    def linear_rule(self) -> Rule | None:
        """How linear weights are drawn; None: PyTorch's default."""
        return normal(SMALL_STD) if self.init == "normal" else None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 1 <= self.heads <= self.width:
            raise ConfigError(self.field("heads"), f"must be between 1 and model.width ({self.width})", self.heads)
        if self.width % self.heads:
            below = self.width - self.width % self.heads
            rule = f"must be a multiple of model.heads ({self.heads})"
            raise ConfigError(self.field("width"), rule, self.width, f"Try {below} or {below + self.heads}.")
        if not 1 <= self.key_heads <= self.heads or self.heads % self.key_heads:
            rule = f"must divide model.heads ({self.heads})"
            raise ConfigError(self.field("key_heads"), rule, self.key_heads, "Try 1 or the number of heads.")
        if self.positions == "rotary" and (self.width // self.heads) % 2:
            rule = f"must give heads of an even size for rotary positions ({self.heads} heads)"
            raise ConfigError(self.field("width"), rule, self.width, f"Try {2 * self.heads}.")
        if not 1 <= self.feedforward <= 1_000_000:
            raise ConfigError(self.field("feedforward"), "must be between 1 and 1000000", self.feedforward)
        if not 0 < self.norm_eps < 1:
            raise ConfigError(self.field("norm_eps"), "must be above 0 and below 1", self.norm_eps, "Try 0.00001.")
        return self

    def build(self, vocabulary: int, length: int, padding: int | None) -> Decoder:
        return Decoder(self, vocabulary, length, padding)
