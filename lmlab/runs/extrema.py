"""Best values, the step they were first reached, delays, thresholds, and statistics over seeds.

    L_train, L_val   minimum loss and   A_train, A_val   maximum accuracy over evaluated steps
    t_f(X)           the first evaluated step that attains that best value
    Δt(L) = t_f(L_val) − t_f(L_train), the same for A

With a step limit only steps ≤ the limit count. A threshold ("first step with A_val ≥ 0.9") is another thing: a
run that never gets there is censored, kept in the count, and placed after every number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, lgamma, log, pi, sqrt

import numpy as np

from lmlab.runs.store import Curve

EXTREMA = ("loss_train", "loss_val", "accuracy_train", "accuracy_val")


def extrema(curves: Mapping[tuple[str, str], Curve], limit: int | None = None) -> dict[str, float | int | None]:
    """{(metric, split): curve} → loss_train, t_loss_train, …, delay_loss, delay_accuracy. None: no such curve."""
    found: dict[str, float | int | None] = {}
    for name in EXTREMA:
        metric, split = name.split("_")
        curve = curves.get((metric, split))
        if curve is not None and limit is not None:
            curve = curve.until(limit)
        if curve is None or len(curve) == 0:
            found[name] = found[f"t_{name}"] = None
            continue
        best = int(np.argmin(curve.values) if metric == "loss" else np.argmax(curve.values))
        found[name], found[f"t_{name}"] = float(curve.values[best]), int(curve.steps[best])
    for metric in ("loss", "accuracy"):
        late, early = found[f"t_{metric}_val"], found[f"t_{metric}_train"]
        found[f"delay_{metric}"] = None if late is None or early is None else late - early
    return found


def first_reaching(curve: Curve, threshold: float, limit: int | None = None) -> int | None:
    """The first evaluated step with a value of at least `threshold`, or None when it is never reached."""
    if limit is not None:
        curve = curve.until(limit)
    reached = np.flatnonzero(curve.values >= threshold)
    return int(curve.steps[reached[0]]) if len(reached) else None


@dataclass(frozen=True)
class Summary:
    """A number over seeds: mean ± population standard deviation, and from 3 seeds on a 95 % t-interval."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float | int | None]) -> Summary:
        return cls(tuple(float(value) for value in values if value is not None))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def std(self) -> float:
        return float(np.std(self.values)) if self.values else float("nan")

    @property
    def interval(self) -> tuple[float, float] | None:
        """mean ± t · s/√n with n − 1 degrees of freedom; None below 3 values."""
        n = len(self.values)
        if n < 3:
            return None
        half = t_quantile(0.975, n - 1) * float(np.std(self.values, ddof=1)) / sqrt(n)
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class Reached:
    """When runs first reached a threshold; None is a run that did not within `limit` steps."""

    steps: tuple[int | None, ...]
    limit: int

    @property
    def missing(self) -> int:
        return sum(step is None for step in self.steps)

    def quantile(self, q: float) -> int | None:
        """The smallest step by which a share q of the runs had got there (None: not within the limit)."""
        ordered = sorted(self.steps, key=lambda step: (step is None, step or 0))
        return ordered[max(0, ceil(q * len(ordered)) - 1)]

    def __str__(self) -> str:
        if self.missing == len(self.steps):
            return f"not reached in {self.limit:,} steps"
        median = self.quantile(0.5)
        shown = f"{median:,}" if median is not None else f"not reached in {self.limit:,}"
        return shown + (f" ({self.missing} of {len(self.steps)} not reached in {self.limit:,})" if self.missing else "")


def t_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t for probability > ½, by bisection on the integral of its density (to 1e-9)."""
    scale = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2) - 0.5 * log(degrees * pi))

    def below(t: float) -> float:
        # Simpson's rule on x = tan(u), which makes heavy tails finite.
        u = np.linspace(0.0, np.arctan(t), 2001)
        x = np.tan(u)
        density = scale * (1 + x * x / degrees) ** (-(degrees + 1) / 2) * (1 + x * x)
        weights = np.ones_like(u)
        weights[1:-1:2], weights[2:-1:2] = 4, 2
        return 0.5 + float((density * weights).sum() * (u[1] - u[0]) / 3)

    low, high = 0.0, 1e6
    while high - low > 1e-9 * max(1.0, low):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < probability else (low, middle)
    return (low + high) / 2
