"""Normalisation over the last dimension, from the formulas."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lmlab.models.initial import Rule, ones, zeros


class LayerNorm(nn.Module):
    """Layer normalisation (Ba et al., 2016).   y = (x − E[x]) / √(Var[x] + ε) · weight + bias

    Mean and (biased) variance are over the last dimension.   x (…, D) → (…, D)
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.empty(width))
        self.eps = eps
        self.initial: dict[str, Rule] = {"weight": ones, "bias": zeros}

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias


class RMSNorm(nn.Module):
    """Root-mean-square normalisation (Zhang and Sennrich, 2019).   y = x / √(E[x²] + ε) · weight

    x (…, D) → (…, D)
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps = eps
        self.initial: dict[str, Rule] = {"weight": ones}

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


NORMS: dict[str, type[LayerNorm] | type[RMSNorm]] = {"layer": LayerNorm, "rms": RMSNorm}
