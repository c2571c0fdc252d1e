import pytest

from lmlab.core.errors import UnknownName
from lmlab.core.registry import Registry


@pytest.fixture
def animals():
    registry = Registry("animal")
    for name in ("zebra", "ant", "antelope"):
        registry.register(name)(name.upper())
    return registry


def test_names_lead_to_entries_in_the_order_they_came(animals):
    assert animals["ant"] == "ANT"
    assert list(animals) == ["zebra", "ant", "antelope"]
    assert len(animals) == 3
    assert "zebra" in animals
    assert "cow" not in animals
    assert repr(animals) == "Registry(animal: zebra, ant, antelope)"


def test_register_hands_the_class_back():
    registry = Registry("thing")

    @registry.register("one")
    class Thing:
        pass

    assert registry["one"] is Thing


@pytest.mark.parametrize("name", ["zebar", "zebr", "Zebra"])
def test_a_misspelt_name_is_answered_with_a_suggestion(animals, name):
    with pytest.raises(UnknownName, match=rf"unknown animal '{name}'\. Did you mean zebra\?"):
        animals[name]


@pytest.mark.parametrize("name", [None, 3, ["ant"], {"ant": 1}])
def test_what_is_not_a_name_is_refused_the_same_way(animals, name):
    with pytest.raises(UnknownName, match="unknown animal"):
        animals[name]


def test_a_name_is_given_once(animals):
    with pytest.raises(ValueError, match="animal 'ant' is registered twice"):
        animals.register("ant")("another ant")
