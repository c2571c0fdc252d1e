"""Loss and accuracy, per example and reduced.

Both families are weighted means over examples; they differ in the weight and in when an example is right:

    family "example" (arithmetic)   ℓ_i = mean −log p over the counted tokens of i, weight 1;   right if all are right
    family "token" (text)           the same ℓ_i, weight = number of counted tokens;            share of tokens right

so that the "token" mean is total −log p over total counted tokens. Shapes: logits (B, S, V), targets and
weights (B, S) → (B,). An example without a counted token (padding of a batch) has weight 0.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from lmlab.data.task import Family

Reduction = Literal["mean", "sum", "none"]


def example_losses(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """ℓ_i: mean −log p of the counted targets of each example.   → (B,)"""
    surprise = logits.logsumexp(-1) - logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return (surprise * weights).sum(-1) / weights.sum(-1).clamp(min=1)


def example_accuracies(logits: Tensor, targets: Tensor, weights: Tensor, family: Family) -> Tensor:
    """1 if every counted target is the most probable token ("example"), or the share that is ("token").   → (B,)"""
    right = (logits.argmax(-1) == targets).to(weights.dtype)
    if family == "example":
        return torch.where(weights > 0, right, 1.0).amin(-1)
    return (right * weights).sum(-1) / weights.sum(-1).clamp(min=1)


def example_weights(weights: Tensor, family: Family) -> Tensor:
    """How much each example counts in a mean.   → (B,)"""
    counted = weights.sum(-1)
    return (counted > 0).to(weights.dtype) if family == "example" else counted


def reduce(values: Tensor, weights: Tensor, reduction: Reduction) -> Tensor:
    """values, weights (B,) → a number ("mean", "sum"), or the values ("none")."""
    match reduction:
        case "none":
            return values
        case "sum":
            return (values * weights).sum(-1)
        case "mean":
            return (values * weights).sum(-1) / weights.sum(-1).clamp(min=1)
    raise ValueError(f"reduction must be mean, sum or none; got {reduction!r}")


def loss_and_accuracy(
    logits: Tensor, targets: Tensor, weights: Tensor, family: Family = "example", reduction: Reduction = "mean"
) -> tuple[Tensor, Tensor]:
    """Document 000's `get_loss_and_accuracy`, with `weights` in place of equality positions and mask."""
    each = example_weights(weights, family)
    return (
        reduce(example_losses(logits, targets, weights), each, reduction),
        reduce(example_accuracies(logits, targets, weights, family), each, reduction),
    )
