import pytest

from lmlab.reports.numbers import between, listed, series, written


@pytest.mark.parametrize(
    ("kind", "value", "spread", "text"),
    [
        ("loss", 1.234567, None, "1.23"),
        ("loss", 0.012345, 0.00456, "0.0123 ± 0.0046"),
        ("loss", 1.234e-4, 4.5e-5, "(1.23 ± 0.45) × 10⁻⁴"),
        ("loss", 9.999e-4, None, "1.00 × 10⁻³"),
        ("loss", 123.4, 5.6, "123 ± 6"),
        ("accuracy", 0.99812, 0.00121, "0.9981 ± 0.0012"),
        ("accuracy", 1.0, None, "1.0000"),
        ("step", 82.5, 5.5, "82.5 ± 5.5"),
        ("step", 300, 0, "300 ± 0"),
        ("step", 7850, 350, "7,850 ± 350"),
        ("step", 1337.5, 162.5, "1,338 ± 163"),
        ("step", -400, None, "−400"),
        ("step", float("nan"), None, "—"),
    ],
)
def test_digits_that_say_something(kind, value, spread, text):
    assert written(kind, value, spread) == text


def test_both_ends_of_an_interval_share_their_digits_unless_far_apart():
    assert between("loss", 6e-5, 1.3e-4) == "(0.60 to 1.30) × 10⁻⁴"
    assert between("loss", 4e-4, 5e-2) == "4.00 × 10⁻⁴ to 0.0500"
    assert between("step", 595.9, 1504.0) == "596 to 1,504"
    assert between("step", 1300, float("inf")) == "1,300 to not reached"


def test_single_values_share_the_digits_of_their_mean():
    assert series("loss", (4.3e-3, 4.26e-3), 4.28e-3) == "(4.30; 4.26) × 10⁻³"
    assert series("step", (225, 250), 237.5) == "225; 250"


def test_lists_read_like_sentences():
    assert [listed("a"), listed("ab"), listed("abc")] == ["a", "a and b", "a, b and c"]
