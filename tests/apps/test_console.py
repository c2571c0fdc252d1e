"""Numbers and documents as they are printed."""

import json

import pytest

from lmlab.apps.console import duration, finite, number, show


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (10_001, "10,001"),
        (12_345_678, "12,345,678"),  # steps and counts in full, however many
        (1.0, "1"),
        (0.0, "0"),
        (0.998, "0.9980"),
        (0.00016, "1.600e-04"),
        (-0.5, "-0.5000"),
        (1234.5, "1234.5000"),
        (3.2e30, "3.200e+30"),  # a loss on its way out of the numbers
        (float("nan"), "nan"),
    ],
)
def test_a_number_to_read(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (48, "48 s"), (720, "12 min"), (12_000, "3 h 20 min"), (7200, "2 h 0 min")],
)
def test_a_duration_to_read(seconds, text):
    assert duration(seconds) == text


def test_a_document_has_only_what_json_has(capsys):
    document = {"a": [1, 2.5, float("nan")], "b": {"c": float("inf"), "d": None}, "e": (True, "Δ")}
    show(document, True, lambda: pytest.fail("not for people"))
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"a": [1, 2.5, None], "b": {"c": None, "d": None}, "e": [True, "Δ"]}
    assert "Δ" in printed  # readable where it is printed
    assert finite(3) == 3
