import pickle

import pytest

from lmlab.core.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    LabError,
    LeaseLost,
    MissingExtra,
    StoreError,
    UnknownName,
)


def test_config_error_names_field_rule_value_and_remedy():
    error = ConfigError("model.width", "must be a multiple of model.heads (4)", 130, "Try 128 or 132.")
    assert str(error) == "model.width must be a multiple of model.heads (4); got 130. Try 128 or 132."
    assert (error.field, error.value, error.remedy) == ("model.width", 130, "Try 128 or 132.")


def test_config_error_without_remedy_ends_after_the_value():
    assert str(ConfigError("task.p", "must be above 1", "many")) == "task.p must be above 1; got 'many'."


@pytest.mark.parametrize("value", ["line\nbreak", "x" * 5000, ["deep"] * 900])
def test_any_value_gives_one_short_line(value):
    message = str(ConfigError("task.path", "must exist", value))
    assert "\n" not in message
    assert len(message) < 130


def test_unknown_name_suggests_the_nearest():
    error = UnknownName("recipe", "arithmetic-gtp", ["arithmetic-gpt", "shakespeare"])
    assert str(error) == "unknown recipe 'arithmetic-gtp'. Did you mean arithmetic-gpt?"


def test_unknown_name_lists_what_there_is_when_nothing_is_near():
    assert str(UnknownName("model", "zzzz", ["lstm", "gpt"])) == "unknown model 'zzzz'. Known: gpt, lstm."
    assert str(UnknownName("run", "zzzz", [])) == "unknown run 'zzzz'. Known: none."


def test_missing_extra_says_what_to_install():
    message = str(MissingExtra("typst", "report", "a PDF report"))
    assert message == "a PDF report needs typst. Install it with: pip install 'lmlab[report]'"


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("model.width", "must be positive", -1, "Try 1."),
        UnknownName("model", "gtp", ["gpt"]),
        MissingExtra("ray", "ray", "a cluster"),
        DataError("no text"),
        StoreError("no folder"),
        LeaseLost("gone"),
        CheckpointError("torn"),
    ],
)
def test_errors_come_home_from_worker_processes(error):
    home = pickle.loads(pickle.dumps(error))
    assert type(home) is type(error)
    assert str(home) == str(error)
    assert vars(home) == vars(error)
    assert isinstance(home, LabError)
