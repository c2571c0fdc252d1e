"""Causal multi-head self-attention (Vaswani et al., 2017), with the keys and values of what came before.

    [q_1 … q_H] = x W_Q + b_Q, the same for k and v        A_i = softmax(q_i k_iᵀ / √d)        h_i = A_i v_i
    attention(x) = concat(h_1 … h_H) W_O + b_O

Head i takes columns i·d … (i+1)·d − 1: y[b, i, s, l] = x[b, s, head_size · i + l]. (Document 000 prints num_heads
in place of head_size; with that the two functions would not be inverse to each other.)

Two paths give the same result: plain products, whose weights can be looked at, and PyTorch's
`scaled_dot_product_attention`, which does not store them.
"""

from __future__ import annotations

from math import sqrt
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.models.initial import Rule
from lmlab.models.layers import Linear
from lmlab.models.model import Place

KeysValues = tuple[Tensor, Tensor]
"""(B, H_kv, S so far, d) each."""

Path = Literal["auto", "products", "fused"]

FUSED_FROM = 256
"""Keys from which `auto` takes the fused path: below, plain products are as fast, and they also run under vmap."""


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, S, H·d) → (B, H, S, d)"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, S, d) → (B, S, H·d), the inverse of split_heads"""
    return x.transpose(1, 2).flatten(2)


def causal_mask(S: int, T: int, device: torch.device) -> Tensor:
    """True where query s, the last S of T positions, may see key t: t up to its own.   → (S, T)"""
    return torch.ones(S, T, dtype=torch.bool, device=device).tril(T - S)


def attention_weights(q_BHSd: Tensor, k_BHTd: Tensor) -> Tensor:
    """softmax(q kᵀ / √d), causal.   → (B, H, S, T)"""
    scores = q_BHSd @ k_BHTd.transpose(-1, -2) / sqrt(q_BHSd.shape[-1])
    S, T = scores.shape[-2:]
    return scores.masked_fill(~causal_mask(S, T, scores.device), float("-inf")).softmax(dim=-1)


def rotate(x_BHSd: Tensor, offset: int) -> Tensor:
    """Rotary positions (Su et al., 2021): the pair (x_k, x_{k+d/2}) is turned by pos / 10000^(2k/d).

    A score q·k then depends on the distance of the two positions only. The halves are paired as in Llama.
    """
    S, d = x_BHSd.shape[-2:]
    power = torch.arange(d // 2, dtype=torch.float64, device=x_BHSd.device) * 2 / d
    position = torch.arange(offset, offset + S, dtype=torch.float64, device=x_BHSd.device)
    angle = position.unsqueeze(1) / 10000**power
    cos, sin = angle.cos().to(x_BHSd.dtype), angle.sin().to(x_BHSd.dtype)
    first, second = x_BHSd.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class MultiHeadAttention(nn.Module):
    """x (B, S, D), keys and values of earlier positions → (B, S, D), keys and values up to now.

    With fewer key heads than query heads (grouped queries: Ainslie et al., 2023) each key head serves H / H_kv queries.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        bias: bool,
        *,
        key_heads: int | None = None,
        rotary: bool = False,
        rule: Rule | None = None,
    ) -> None:
        super().__init__()
        size, key_heads = width // heads, key_heads or heads
        self.heads, self.key_heads, self.rotary = heads, key_heads, rotary
        self.path: Path = "auto"
        self._parts = (heads * size, key_heads * size, key_heads * size)
        self.queries_keys_values = Linear(width, sum(self._parts), bias, rule)
        self.output = Linear(width, width, bias, rule)
        self.weights = Place()

    def forward(self, x: Tensor, past: KeysValues | None = None) -> tuple[Tensor, KeysValues]:
        q, k, v = self.queries_keys_values(x).split(self._parts, dim=-1)
        q, k, v = split_heads(q, self.heads), split_heads(k, self.key_heads), split_heads(v, self.key_heads)
        if self.rotary:
            offset = past[0].shape[2] if past is not None else 0
            q, k = rotate(q, offset), rotate(k, offset)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        return self.output(merge_heads(self._attend(q, self._shared(k), self._shared(v)))), (k, v)

    def _shared(self, x: Tensor) -> Tensor:
        """Each key head repeated for the queries it serves.   (B, H_kv, T, d) → (B, H, T, d)"""
        repeats = self.heads // self.key_heads
        return x if repeats == 1 else x.repeat_interleave(repeats, dim=1)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        fused = self.path == "fused" or (self.path == "auto" and k.shape[2] >= FUSED_FROM)
        if not fused or self.weights.is_watched:
            return self.weights(attention_weights(q, k)) @ v
        S, T = q.shape[2], k.shape[2]
        if S == T:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(S, T, q.device))
