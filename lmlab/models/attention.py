"""Causal multi-head self-attention (Vaswani et al., 2017), with the keys and values of what came before.

    [q_1 … q_H] = x W_Q + b_Q, the same for k and v        A_i = softmax(q_i k_iᵀ / √d)        h_i = A_i v_i
    attention(x) = concat(h_1 … h_H) W_O + b_O

Head i takes columns i·d … (i+1)·d − 1: y[b, i, s, l] = x[b, s, head_size · i + l]. (Document 000 prints num_heads
in place of head_size; with that the two functions would not be inverse to each other.)
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn

from lmlab.models.layers import Linear
from lmlab.models.model import Place

KeysValues = tuple[Tensor, Tensor]
"""(B, H, S so far, d) each."""


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, S, H·d) → (B, H, S, d)"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, S, d) → (B, S, H·d), the inverse of split_heads"""
    return x.transpose(1, 2).flatten(2)


def attention_weights(q_BHSd: Tensor, k_BHTd: Tensor) -> Tensor:
    """softmax(q kᵀ / √d) where query s, the last S of T positions, sees keys up to its own.   → (B, H, S, T)"""
    scores = q_BHSd @ k_BHTd.transpose(-1, -2) / sqrt(q_BHSd.shape[-1])
    S, T = scores.shape[-2:]
    later = torch.ones(S, T, dtype=torch.bool, device=scores.device).triu(T - S + 1)
    return scores.masked_fill(later, float("-inf")).softmax(dim=-1)


class MultiHeadAttention(nn.Module):
    """x (B, S, D), keys and values of earlier positions → (B, S, D), keys and values up to now."""

    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.queries_keys_values = Linear(width, 3 * width, bias)
        self.output = Linear(width, width, bias)
        self.weights = Place()

    def forward(self, x: Tensor, past: KeysValues | None = None) -> tuple[Tensor, KeysValues]:
        q, k, v = (split_heads(part, self.heads) for part in self.queries_keys_values(x).chunk(3, dim=-1))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        weights = self.weights(attention_weights(q, k))
        return self.output(merge_heads(weights @ v)), (k, v)
