import numpy as np
import pytest

from lmlab.reports.axes import frame_loss, frame_steps
from lmlab.reports.style import Picture, figure_style


@pytest.fixture
def axes():
    with figure_style():
        yield Picture().add_subplot()


def ticks(axes) -> list[str]:
    axes.figure.draw_without_rendering()
    low, high = axes.get_xlim()
    return [tick.label1.get_text() for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]


def test_step_0_has_its_place_on_a_logarithmic_axis(axes):
    frame_steps(axes, np.array([0, 1, 10, 2500]), log_steps=True)
    assert ticks(axes) == ["0", "1", "10", "100", "1,000"]
    places = axes.transData.transform([(step, 0.5) for step in (0, 1, 10, 100, 1000)])[:, 0]
    assert np.diff(places)[1:] == pytest.approx(np.diff(places)[1])  # a decade is a decade
    assert 0 < places[1] - places[0] < places[2] - places[1]


def test_no_decade_is_wasted_before_the_first_evaluated_step(axes):
    frame_steps(axes, np.array([0, 100, 200, 10_000]), log_steps=True)
    assert ticks(axes) == ["0", "100", "1,000", "10,000"]


def test_an_untrained_model_alone_can_be_drawn(axes):
    frame_steps(axes, np.array([0]), log_steps=True)
    assert ticks(axes) == ["0", "1"]


def test_losses_within_a_decade_get_plain_numbers(axes):
    frame_loss(axes, 1.1, 2.8)
    axes.figure.draw_without_rendering()
    labels = [tick.label1.get_text() for tick in axes.yaxis.get_major_ticks()]
    assert len(labels) >= 3
    assert all(float(label) > 0 for label in labels)
