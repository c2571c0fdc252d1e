from itertools import pairwise
from math import cos, pi

import pytest
import torch

from lmlab.engine.schedules import factor


def curve(schedule, warmup, total):
    return [factor(schedule, torch.tensor(k), warmup, total).item() for k in range(1, total + 1)]


def test_a_constant_rate_is_constant():
    assert curve("constant", 0, 5) == [1.0] * 5


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_warm_up_rises_in_a_straight_line_from_the_first_update(schedule):
    assert curve(schedule, 4, 40)[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert curve("constant", 4, 40)[4:] == [1.0] * 36


@pytest.mark.parametrize(("warmup", "total"), [(0, 10), (3, 10), (1, 100)])
def test_cosine_falls_from_one_after_the_warm_up(warmup, total):
    falling = curve("cosine", warmup, total)[warmup:]
    assert falling[0] == 1.0
    assert all(later < earlier for earlier, later in pairwise(falling))
    assert 0 < falling[-1] < 0.1
    middle = (total - warmup) / 2
    if middle.is_integer():
        assert falling[int(middle)] == pytest.approx(0.5)


def test_cosine_is_its_formula():
    expected = [min(1, k / 5) * (1 if k <= 5 else 0.5 * (1 + cos(pi * (k - 1 - 5) / 15))) for k in range(1, 21)]
    assert curve("cosine", 5, 20) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_a_warm_up_longer_than_the_run_never_stops_rising(schedule):
    assert curve(schedule, 100, 5) == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.05])
