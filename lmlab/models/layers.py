"""The two layers every model shares: a linear map and the classifier on top."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.models.initial import Rule, linear


class Linear(nn.Module):
    """y = x Wᵀ + b.   x (…, D_in) → (…, D_out); W (D_out, D_in)"""

    def __init__(self, inputs: int, outputs: int, bias: bool = True, rule: Rule | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None
        self.initial: dict[str, Rule] = {"weight": rule or linear(inputs), "bias": linear(inputs)}

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"{inputs} → {outputs}, bias={self.bias is not None}"


def classifier(width: int, vocabulary: int, bias: bool, tied: nn.Parameter | None, rule: Rule | None = None) -> Linear:
    """Hidden state → logits, with its own matrix or the embedding's."""
    layer = Linear(width, vocabulary, bias, rule)
    if tied is not None:
        layer.weight = tied
    return layer
