"""Learning-rate schedules as a factor of the run's own rate, computed on the device from the step.

With `warmup` w and T updates, update k = 1 … T uses   min(1, k/w) · (1, or ½(1 + cos π(k − 1 − w)/(T − w)) after w).
"""

from __future__ import annotations

from math import pi
from typing import Literal

import torch
from torch import Tensor

Schedule = Literal["constant", "cosine"]


def factor(schedule: Schedule, update: Tensor, warmup: int, total: int) -> Tensor:
    """update (scalar tensor, from 1) → what the learning rate is multiplied by; float64."""
    k = update.to(torch.float64)
    rise = (k / warmup).clamp(max=1) if warmup else torch.ones_like(k)
    if schedule == "constant":
        return rise
    progress = ((k - 1 - warmup) / max(1, total - warmup)).clamp(0, 1)
    return rise * 0.5 * (1 + torch.cos(pi * progress))
