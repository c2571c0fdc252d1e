"""Configuration as a user meets it, on a small section of its own."""

from typing import Annotated, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BeforeValidator, ValidationError

from lmlab.core.config import Config, as_tuple, nested, parse_assignment
from lmlab.core.errors import ConfigError, UnknownName


class Kite(Config):
    section: ClassVar[str] = "kite"
    derived: ClassVar = {"tail": lambda kite: 3 * kite.span}

    name: Literal["kite"] = "kite"
    span: int = 10
    tail: int = 30
    weight: float = 0.5
    colours: Annotated[tuple[int, ...], BeforeValidator(as_tuple)] = (1,)
    folds: bool = False


def test_a_derived_field_follows_unless_it_is_set():
    assert Kite(span=4).tail == 12
    assert Kite(span=4, tail=7).tail == 7


def test_a_derived_field_is_derived_anew_from_what_was_given():
    assert Kite(**{**Kite(span=4).given(), "span": 5}).tail == 15
    assert Kite(**{**Kite(span=4, tail=7).given(), "span": 5}).tail == 7


def test_json_gives_the_same_object_back():
    kite = Kite(span=4, colours=[3, 2], weight=1)
    assert Kite(**kite.to_json()) == kite
    assert kite.to_json() == {
        "name": "kite", "span": 4, "tail": 12, "weight": 1.0, "colours": [3, 2], "folds": False,
    }  # fmt: skip


def test_given_is_what_was_set_and_the_name():
    assert Kite(span=4, weight=0.5).given() == {"name": "kite", "span": 4, "weight": 0.5}


def test_identity_leaves_out_defaults_and_what_merely_follows():
    assert Kite().identity() == {"name": "kite"}
    assert Kite(span=4).identity() == {"name": "kite", "span": 4}
    assert Kite(span=4, tail=30).identity() == {"name": "kite", "span": 4, "tail": 30}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"span": 10}),
        ({"span": 4}, {"span": 4, "tail": 12}),
        ({"weight": 2}, {"weight": 2.0}),
        ({"colours": 3}, {"colours": [3]}),
        ({"colours": (1,)}, {}),
    ],
)
def test_two_ways_to_say_the_same_are_one_identity(one, other):
    assert Kite(**one).identity() == Kite(**other).identity()
    assert Kite(**one) == Kite(**other)
    assert len({Kite(**one), Kite(**other)}) == 1


def test_a_field_added_with_its_default_keeps_the_identity():
    class LaterKite(Kite):
        strings: int = 2

    assert LaterKite(span=4).identity() == Kite(span=4).identity()
    assert LaterKite(span=4, strings=3).identity() != Kite(span=4).identity()


def test_a_config_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        Kite().span = 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"span": True}, "kite.span must be a valid integer; got True."),
        ({"span": 4.0}, "kite.span must be a valid integer; got 4.0."),
        ({"span": "4"}, "kite.span must be a valid integer; got '4'."),
        ({"weight": "heavy"}, "kite.weight must be a valid number; got 'heavy'."),
        ({"weight": True}, "kite.weight must be a valid number; got True."),
        ({"folds": 1}, "kite.folds must be a valid boolean; got 1."),
        ({"name": "kit"}, "kite.name must be 'kite'; got 'kit'."),
        ({"colours": [1, True]}, "kite.colours.1 must be a valid integer; got True."),
    ],
)
def test_a_wrong_type_is_refused_in_the_words_of_the_user(fields, message):
    with pytest.raises(ConfigError) as caught:
        Kite(**fields)
    assert str(caught.value) == message


def test_an_unknown_field_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown field of kite 'spam'\. Did you mean span"):
        Kite(spam=3)


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("model.width=64", "model.width", 64),
        ("training.lr=1e-3", "training.lr", 1e-3),
        ("task.orders=[2,3]", "task.orders", [2, 3]),
        ("task.orders=[2, 3]", "task.orders", [2, 3]),
        ("model.bias=false", "model.bias", False),
        ("task.operator=/", "task.operator", "/"),
        ("task.operator=-", "task.operator", "-"),
        ('task.path="a b.txt"', "task.path", "a b.txt"),
        ("task.path=notes=old.txt", "task.path", "notes=old.txt"),
        ("model.width = 64", "model.width", 64),
        ("task.path=", "task.path", ""),
        ("training.lr=NaN", "training.lr", "NaN"),
        ("training.lr=Infinity", "training.lr", "Infinity"),
        ("training.lr=-Infinity", "training.lr", "-Infinity"),
        ("task.path=" + "[" * 100_000, "task.path", "[" * 100_000),
    ],
)
def test_an_assignment_is_read_as_typed(text, path, value):
    got = parse_assignment(text)
    assert got == (path, value)
    assert type(got[1]) is type(value)


@pytest.mark.parametrize("text", ["model.width", "", "=64", "  =64"])
def test_an_assignment_without_key_or_value_is_refused(text):
    with pytest.raises(ConfigError, match=r"^--set takes key\.path=value; got .* Example: --set model\.width=64$"):
        parse_assignment(text)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.lists(st.integers()))
def test_what_python_prints_as_json_is_read_back(value):
    text = str(value).lower() if isinstance(value, bool) else str(value)
    assert parse_assignment(f"a.b={text}") == ("a.b", value)


def test_dotted_names_nest():
    changes = {"model.width": 64, "training.lr": 0.1, "model.heads": 2}
    assert nested(changes) == {"model": {"width": 64, "heads": 2}, "training": {"lr": 0.1}}


@pytest.mark.parametrize("path", ["width", "model.", "model.width.x", ""])
def test_a_name_that_is_not_section_and_field_is_refused(path):
    with pytest.raises(ConfigError, match=r"must be a section and a field; got .* Example: model\.width"):
        nested({path: 1})
