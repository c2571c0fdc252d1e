"""How numbers are written for people: as many digits as say something, the same everywhere.

loss      0.0123 ± 0.0045, or (1.23 ± 0.45) × 10⁻⁴ when small       3 significant digits
accuracy  0.9981 ± 0.0012                                           4 decimals
step      7,850 ± 350, 82.5 ± 5.5                                   thousands separated
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, isfinite, log10
from typing import Literal

Kind = Literal["loss", "accuracy", "step"]

SMALL = 0.01
"""Losses below this are written with a power of ten."""

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def written(kind: Kind, value: float, spread: float | None = None) -> str:
    """`value`, or `value ± spread` with the same digits."""
    return _written(kind, (value,) if spread is None else (value, spread), " ± ", value)


def series(kind: Kind, values: Sequence[float], like: float) -> str:
    """`(4.30; 4.26) × 10⁻³`: single values with the digits of their mean."""
    return _written(kind, values, "; ", like)


def between(kind: Kind, low: float, high: float) -> str:
    """`75.2 to 90.0`, `(0.60 to 1.30) × 10⁻⁴`: both with the digits of the larger one, unless they lie far apart."""
    if not isfinite(high):
        return f"{written(kind, low)} to not reached"
    if kind == "loss" and 0 < low < high / 10:
        return f"{written(kind, low)} to {written(kind, high)}"
    return _written(kind, (low, high), " to ", max(low, high, key=abs))


def listed(parts: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`"""
    *front, last = parts
    return f"{', '.join(front)} and {last}" if front else last


def _written(kind: Kind, numbers: Sequence[float], separator: str, like: float) -> str:
    if not isfinite(like):
        return "—"
    decimals, power = 4, 0
    if kind == "step":
        decimals = 0 if abs(like) >= 1000 or all(float(number).is_integer() for number in numbers) else 1
    elif kind == "loss" and like:
        if abs(like) < SMALL:
            power = int(f"{like:.2e}".partition("e")[2])  # of the rounded number: 9.999e-4 is 1.00 × 10⁻³
        decimals = 2 if power else max(0, 2 - floor(log10(abs(like))))
    text = separator.join(_plain(number / 10.0**power, decimals) for number in numbers)
    if not power:
        return text
    return f"{text if len(numbers) == 1 else f'({text})'} × 10{str(power).translate(_SUPERSCRIPT)}"


def _plain(number: float, decimals: int) -> str:
    if decimals == 0:
        number = floor(number + 0.5)  # halves are common in means of two steps, and all go up
    # A typographic minus, because a hyphen next to a digit is easily read over.
    return f"{number:,.{decimals}f}".replace("-", "−")
