"""SGD, momentum, Adam and AdamW for a whole stack: parameters are one matrix (R, P), a row per run.

Hyper-parameters are columns (R, 1), so every run has its own. Formulas and defaults follow torch.optim (a test
compares them). `propose` returns new tensors and changes nothing: the caller decides, row by row, what to keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

OptimizerName = Literal["sgd", "momentum", "adam", "adamw"]
EPS = 1e-8
"""Added to the root of the second moment; torch's default."""

MOMENTS: dict[OptimizerName, tuple[str, ...]] = {
    "sgd": (),
    "momentum": ("velocity",),
    "adam": ("first", "second"),
    "adamw": ("first", "second"),
}


@dataclass(frozen=True)
class Hyper:
    """Per-run numbers, each (R, 1)."""

    lr: Tensor
    beta1: Tensor
    beta2: Tensor
    momentum: Tensor
    weight_decay: Tensor
    clip: Tensor


def clipped(grad: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    """Scale each run's gradient to a norm of at most `limit` (torch's clip_grad_norm_).   → gradient, norm (R, 1)"""
    norm = grad.norm(dim=1, keepdim=True)
    return grad * (limit / (norm + 1e-6)).clamp(max=1), norm


def propose(
    name: OptimizerName,
    theta: Tensor,
    grad: Tensor,
    moments: dict[str, Tensor],
    hyper: Hyper,
    lr: Tensor,
    update: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    """θ, its gradient and moments (R, P); lr (R, 1) of this update, update k from 1 → new θ, new moments.

    sgd        θ − lr (g + λθ)
    momentum   u ← μu + g + λθ;   θ − lr u
    adam       with g + λθ for g:   m ← β₁m + (1−β₁)g;   v ← β₂v + (1−β₂)g²;   θ − lr m̂ / (√v̂ + ε)
    adamw      the same with g alone, after θ ← (1 − lr λ)θ   (Loshchilov and Hutter, 2019)
    """
    if name != "adamw":
        grad = grad + hyper.weight_decay * theta
    if name == "sgd":
        return theta - lr * grad, {}
    if name == "momentum":
        velocity = hyper.momentum * moments["velocity"] + grad
        return theta - lr * velocity, {"velocity": velocity}
    first = torch.lerp(grad, moments["first"], hyper.beta1)
    second = torch.lerp(grad * grad, moments["second"], hyper.beta2)
    k = update.to(theta.dtype)
    root = (second / (1 - hyper.beta2**k)).sqrt_().add_(EPS)
    change = (lr / (1 - hyper.beta1**k)) * first / root
    if name == "adamw":
        theta = theta * (1 - lr * hyper.weight_decay)
    return theta - change, {"first": first, "second": second}
