"""Best values, first steps, delays, thresholds and statistics, on curves made by hand."""

import math

import numpy as np
import pytest

from lmlab.runs.extrema import Reached, Summary, extrema, first_reaching, t_quantile
from lmlab.runs.store import Curve


def curve(points: dict[int, float]) -> Curve:
    return Curve(np.array(list(points)), np.array(list(points.values())))


CURVES = {
    ("loss", "train"): curve({0: 3.0, 1: 1.0, 2: 0.5, 100: 0.5, 200: 0.7}),
    ("loss", "val"): curve({0: 3.0, 1: 2.0, 2: 2.5, 100: 0.25, 200: 0.5}),
    ("accuracy", "train"): curve({0: 0.0, 1: 0.5, 2: 1.0, 100: 1.0, 200: 1.0}),
    ("accuracy", "val"): curve({0: 0.1, 1: 0.1, 2: 0.0, 100: 0.9, 200: 0.95}),
    ("norm", "run"): curve({0: 9.0, 1: 8.0, 2: 7.0, 100: 6.0, 200: 5.0}),
}


def test_best_values_and_the_first_step_that_attains_them():
    assert extrema(CURVES) == {
        "loss_train": 0.5,
        "t_loss_train": 2,
        "loss_val": 0.25,
        "t_loss_val": 100,
        "accuracy_train": 1.0,
        "t_accuracy_train": 2,
        "accuracy_val": 0.95,
        "t_accuracy_val": 200,
        "delay_loss": 98,
        "delay_accuracy": 198,
    }


def test_with_a_limit_only_steps_up_to_it_count():
    found = extrema(CURVES, limit=2)
    assert (found["loss_val"], found["t_loss_val"], found["delay_loss"]) == (2.0, 1, -1)
    assert (found["accuracy_val"], found["t_accuracy_val"], found["delay_accuracy"]) == (0.1, 0, -2)
    assert extrema(CURVES, limit=100)["t_loss_val"] == 100
    assert extrema(CURVES, limit=99)["t_loss_val"] == 1


def test_without_a_validation_curve_its_numbers_are_missing_and_the_others_stay():
    found = extrema({key: value for key, value in CURVES.items() if key[1] != "val"})
    assert (found["loss_train"], found["t_accuracy_train"]) == (0.5, 2)
    missing = ("loss_val", "t_loss_val", "accuracy_val", "t_accuracy_val", "delay_loss", "delay_accuracy")
    assert {name: found[name] for name in missing} == dict.fromkeys(missing)


def test_nothing_evaluated_within_the_limit_is_missing_too():
    assert set(extrema(CURVES, limit=-1).values()) == {None}


@pytest.mark.parametrize(
    ("threshold", "limit", "step"),
    [(0.9, None, 100), (0.91, None, 200), (0.96, None, None), (0.95, 199, None), (0.9, 100, 100), (0.05, None, 0)],
)
def test_a_threshold_is_reached_at_the_first_step_at_or_above_it(threshold, limit, step):
    assert first_reaching(CURVES["accuracy", "val"], threshold, limit) == step


# --- runs that never get there ---------------------------------------------------------------------------------------


def test_a_run_that_never_gets_there_is_counted_and_placed_after_every_number():
    reached = Reached((500, None, 100, 300, None), 10_001)
    assert reached.missing == 2
    assert [reached.quantile(q) for q in (0.1, 0.2, 0.5, 0.6, 0.61, 0.9)] == [100, 100, 500, 500, None, None]
    assert str(reached) == "500 (2 of 5 not reached in 10,001)"


def test_step_zero_is_a_step_and_not_a_missing_one():
    assert Reached((0, None, 7), 10).quantile(0.1) == 0
    assert Reached((0, None, 7), 10).missing == 1


def test_what_the_runs_did_is_said_in_words():
    assert str(Reached((None, None), 10_001)) == "not reached in 10,001 steps"
    assert str(Reached((6700, 8400), 10_001)) == "6,700"
    assert str(Reached((100, None, None), 10_001)) == "not reached in 10,001 (2 of 3 not reached in 10,001)"


# --- statistics ------------------------------------------------------------------------------------------------------


def test_mean_and_population_standard_deviation():
    summary = Summary.of([2, 4.0, 4, 4, 5, 5, 7, 9])
    assert (len(summary), summary.mean, summary.std) == (8, 5.0, 2.0)  # with ddof = 1 it would be 2.138


def test_missing_numbers_are_left_out_of_the_mean():
    assert Summary.of([1.0, None, 3.0]).values == (1.0, 3.0)
    assert math.isnan(Summary.of([None]).mean)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0]])
def test_no_interval_below_three_values(values):
    assert Summary.of(values).interval is None


def test_from_three_values_on_a_t_interval():
    # mean 2, s = 1, t(0.975; 2) = 4.30265: 2 ± 4.30265/√3
    assert Summary.of([1, 2, 3]).interval == pytest.approx((2 - 2.484136, 2 + 2.484136), abs=2e-6)
    # mean 3, s² = 2.5, t(0.975; 4) = 2.77645: 3 ± 2.77645 · √(2.5/5)
    assert Summary.of([1, 2, 3, 4, 5]).interval == pytest.approx((3 - 1.963247, 3 + 1.963247), abs=4e-6)


def test_equal_values_have_an_interval_of_no_width():
    assert Summary.of([300, 300, 300]).interval == (300.0, 300.0)


@pytest.mark.parametrize(
    ("probability", "degrees", "printed"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.30265), (0.975, 4, 2.77645), (0.975, 9, 2.26216), (0.975, 30, 2.04227),
     (0.975, 63, 1.99834), (0.95, 5, 2.01505), (0.995, 10, 3.16927)],
)  # fmt: skip
def test_t_quantiles_agree_with_a_printed_table(probability, degrees, printed):
    assert t_quantile(probability, degrees) == pytest.approx(printed, abs=6e-6 * printed)
