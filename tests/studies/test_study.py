"""Which runs a study has."""

from collections import Counter
from dataclasses import replace
from math import prod

import pytest

from lmlab.core.errors import ConfigError, LabError, UnknownName
from lmlab.engine.spec import Seeds
from lmlab.runs.extrema import extrema
from lmlab.studies.study import Study, parse_seeds, studies


def study(**changes) -> Study:
    return replace(Study(name="s", title="S", about="", recipes=("arithmetic-gpt",), seeds=(0, 1, 2)), **changes)


@pytest.mark.parametrize("name", list(studies))
def test_a_study_has_a_run_for_every_recipe_value_and_seed(name):
    one = studies[name]
    runs = one.runs()
    axes = prod(len(values) for values in one.axes.values())
    assert len({spec.run_id for _, spec in runs}) == len(runs) == len(one.recipes) * axes * len(one.seeds)
    assert Counter(label for label, _ in runs) == dict.fromkeys(one.recipes, axes * len(one.seeds))


@pytest.mark.parametrize("name", list(studies))
def test_the_miniature_has_as_many_runs_but_other_and_shorter_ones(name):
    full, quick = studies[name], studies[name].quick()
    assert [label for label, _ in quick.runs()] == [label for label, _ in full.runs()]
    ids = [{spec.run_id for _, spec in one.runs()} for one in (full, quick)]
    assert not ids[0] & ids[1]
    assert quick.name == f"{name}-quick"
    assert quick.bands == {}  # they hold for the full size only
    for (_, small), (_, large) in zip(quick.runs(), full.runs(), strict=True):
        assert large.training.epochs or small.training.steps < large.training.steps


@pytest.mark.parametrize("name", list(studies))
def test_bands_are_in_order_and_about_numbers_that_runs_have(name):
    known = {*extrema({}), "first_accuracy_val"}
    for recipe, bands in studies[name].bands.items():
        assert recipe in studies[name].recipes
        assert bands.keys() <= known
        for band in bands.values():
            assert band.low <= band.median <= band.high
            assert band.holds(band.median)


def test_the_sanity_check_is_the_experiment_of_the_document():
    for _, spec in studies["sanity"].runs():
        assert (spec.task.p, spec.task.fraction, spec.training.steps) == (31, 0.5, 10_001)
        assert (spec.model.layers, spec.model.width) == (2, 128)
    assert [spec.seed for _, spec in studies["sanity"].runs()] == [0, 42, 0, 42]


# --- axes ------------------------------------------------------------------------------------------------------------


def test_axes_change_the_spec_and_seeds_come_innermost():
    runs = study(axes={"model.width": (8, 16), "task.fraction": (0.3, 0.6, 0.9)}, base={"task.p": 7}).runs()
    assert [(spec.model.width, spec.task.fraction, spec.seed) for _, spec in runs] == [
        (width, fraction, seed) for width in (8, 16) for fraction in (0.3, 0.6, 0.9) for seed in (0, 1, 2)
    ]
    assert {spec.task.p for _, spec in runs} == {7}
    assert len({spec.run_id for _, spec in runs}) == 18


def test_what_follows_from_an_axis_follows():
    runs = study(recipes=("arithmetic-lstm", "arithmetic-gpt"), axes={"model.width": (8, 16)}, seeds=(0,)).runs()
    assert [spec.model.hidden for label, spec in runs if label == "arithmetic-lstm"] == [8, 16]
    assert [spec.model.feedforward for label, spec in runs if label == "arithmetic-gpt"] == [32, 64]


def test_an_axis_wins_over_the_base():
    runs = study(base={"training.lr": 0.1}, axes={"training.lr": (0.2, 0.3)}, seeds=(0,)).runs()
    assert [spec.training.lr for _, spec in runs] == [0.2, 0.3]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"axes": {"model.widht": (8,)}}, "Did you mean width"),
        ({"axes": {"width": (8,)}}, "must be a section and a field"),
        ({"base": {"modle.width": 8}}, "Did you mean model"),
        ({"axes": {"model.width": (8, 9)}}, r"model\.width must be a multiple"),
        ({"recipes": ("arithmetic-gtp",)}, "Did you mean arithmetic-gpt"),
    ],
)
def test_a_study_that_cannot_be_is_refused(changes, complaint):
    with pytest.raises(LabError, match=complaint):
        study(**changes).runs()


# --- seeds -----------------------------------------------------------------------------------------------------------


def test_a_seed_sets_all_four():
    assert [spec.seeds for _, spec in study().runs()] == [Seeds.all(seed) for seed in (0, 1, 2)]


def test_a_seed_that_the_base_sets_stays():
    runs = study(base={"seeds.split": 7, "seeds.order": 8}).runs()
    assert [spec.seeds for _, spec in runs] == [Seeds(split=7, init=n, order=8, dropout=n) for n in (0, 1, 2)]


def test_a_seed_can_be_an_axis():
    runs = study(axes={"seeds.split": (10, 11)}, seeds=(0, 1)).runs()
    assert [(spec.seeds.split, spec.seeds.init) for _, spec in runs] == [(10, 0), (10, 1), (11, 0), (11, 1)]


@pytest.mark.parametrize(("text", "seeds"), [("0", (0,)), ("0,42", (0, 42)), (" 3, 1 ", (3, 1))])
def test_seeds_are_read_from_text(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "1.5", "0,", "0 1", "1-3"])
def test_rubbish_seeds_are_refused(text):
    with pytest.raises(ConfigError, match="--seeds must be whole numbers separated by commas"):
        parse_seeds(text)


def test_a_seed_named_twice_is_refused():
    with pytest.raises(ConfigError, match="--seeds must not name a seed twice"):
        parse_seeds("1,2,1")


def test_an_unknown_study_names_its_neighbours():
    with pytest.raises(UnknownName, match=r"unknown study 'sanitiy'\. Did you mean sanity\?"):
        studies["sanitiy"]


def test_a_study_says_how_to_get_its_runs():
    demo = studies["demo"]
    assert demo.command == "lmlab study run demo"
    assert demo.quick().command == "lmlab study run demo --quick"
    assert replace(demo.quick(), seeds=(7, 9)).command == "lmlab study run demo --quick --seeds 7,9"
