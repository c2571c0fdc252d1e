"""The description of a run: what it refuses, what follows from what, and its identity."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmlab.core.errors import ConfigError, LabError, UnknownName
from lmlab.data.arithmetic import Arithmetic
from lmlab.engine.spec import RunSpec, Seeds, Training
from lmlab.models.decoder import DecoderConfig
from lmlab.models.recurrent import LSTMConfig

LSTM = RunSpec(task={"name": "arithmetic"}, model={"name": "lstm"})
GPT = RunSpec(task={"name": "arithmetic"}, model={"name": "gpt"})


# --- identity --------------------------------------------------------------------------------------------------------


def test_run_ids_of_the_two_defaults_never_change():
    """Every lab there is finds its finished runs by these."""
    assert LSTM.run_id == "58789c19a349e335"
    assert GPT.run_id == "d377d5d6a3e358f8"


@pytest.mark.parametrize(
    "changes",
    [
        {"model.hidden": 128},
        {"task.q": 31},
        {"task.orders": 2},
        {"task.orders": [2]},
        {"training.lr": 0.001},
        {"training.weight_decay": 1},
        {"training.betas": [0.9, 0.999]},
        {"training.epochs": 0},
        {"seeds.init": 0},
        {"model.name": "lstm"},
    ],
)
def test_saying_the_default_is_the_same_run(changes):
    assert LSTM.override(changes).run_id == LSTM.run_id


@pytest.mark.parametrize(
    "changes",
    [
        {"model.hidden": 64},
        {"model.bias": False},
        {"model.name": "gpt"},
        {"task.q": 30},
        {"task.p": 29},
        {"task.fraction": 0.4},
        {"training.lr": 0.002},
        {"training.precision": "fp32"},
        {"training.steps": 10_000},
        {"training.checkpoint_period": 10},
        {"seeds.init": 1},
        {"seeds.dropout": 1},
    ],
)
def test_any_change_is_another_run(changes):
    assert LSTM.override(changes).run_id != LSTM.run_id


def test_an_explicit_value_equal_to_the_derived_one_is_the_same_run():
    small = LSTM.override({"model.width": 32})
    assert small.override({"model.hidden": 32}).run_id == small.run_id
    assert GPT.override({"model.width": 32, "model.feedforward": 128}).run_id == (
        GPT.override({"model.width": 32}).run_id
    )


@pytest.mark.parametrize("spec", [LSTM, GPT, GPT.override({"task.orders": [2, 3], "task.p": 11}).with_seed(42)])
def test_json_gives_the_same_run_back(spec):
    back = RunSpec(**spec.to_json())
    assert back == spec
    assert back.run_id == spec.run_id


def test_objects_and_names_describe_the_same_run():
    assert RunSpec(task=Arithmetic(), model=LSTMConfig()).run_id == LSTM.run_id
    changed = RunSpec(task=Arithmetic(), model=DecoderConfig()).override({"model.width": 64, "task.p": 7})
    assert changed.run_id == GPT.override({"model.width": 64, "task.p": 7}).run_id


# --- overrides -------------------------------------------------------------------------------------------------------


def test_what_follows_is_derived_anew():
    assert LSTM.override({"model.width": 64}).model.hidden == 64
    assert LSTM.override({"model.width": 64}).override({"model.width": 32}).model.hidden == 32
    assert GPT.override({"model.width": 64}).model.feedforward == 256
    assert LSTM.override({"task.p": 7}).task.q == 7


def test_what_was_set_stays():
    assert LSTM.override({"model.hidden": 64}).override({"model.width": 32}).model.hidden == 64
    assert LSTM.override({"task.q": 5}).override({"task.p": 7}).task.q == 5


def test_an_override_leaves_the_original_alone():
    LSTM.override({"model.width": 64, "training.lr": 1.0})
    assert (LSTM.model.width, LSTM.training.lr) == (128, 1e-3)


def test_another_model_starts_from_its_own_defaults():
    spec = LSTM.override({"model.width": 64, "model.init": "pytorch", "training.lr": 0.1})
    other = spec.override({"model.name": "gpt"})
    assert other.model == DecoderConfig()
    assert other.training.lr == 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"modle.width": 3}, "unknown section 'modle'. Did you mean model?"),
        ({"model.widht": 3}, "unknown field of model 'widht'. Did you mean width?"),
        ({"model.heads": 3}, "unknown field of model 'heads'. Known: "),
        ({"model.name": "gtp"}, "unknown model 'gtp'. Did you mean gpt?"),
        ({"task.name": "arithmetics"}, "unknown task 'arithmetics'. Did you mean arithmetic?"),
        ({"model.name": None}, "unknown model None. Known: gpt, gru, lstm, rnn"),
        ({"width": 3}, "width must be a section and a field; got 'width'."),
        ({"model.width": True}, "model.width must be a valid integer; got True."),
        ({"model.width": 64.0}, "model.width must be a valid integer; got 64.0."),
        ({"model.width": -1}, "model.width must be between 1 and 65536; got -1."),
        ({"model.dropout": nan}, "model.dropout must be at least 0 and below 1; got nan."),
        ({"task.fraction": inf}, "task.fraction must be above 0 and at most 1; got inf."),
        ({"training.steps": 0}, "training.steps must be between 1 and 10⁹; got 0."),
        ({"training.steps": True}, "training.steps must be a valid integer; got True."),
        ({"training.batch_size": 0}, "training.batch_size must be between 1 and 10⁹; got 0."),
        ({"training.warmup": -1}, "training.warmup must be between 0 and 10⁹; got -1."),
        ({"training.eval_first": -1}, "training.eval_first must be between 0 and 10⁹; got -1."),
        ({"training.eval_period": -1}, "training.eval_period must be between 0 and 10⁹; got -1."),
        ({"training.checkpoint_period": -1}, "training.checkpoint_period must be between 0 and 10⁹; got -1."),
        ({"training.keep_last": 0}, "training.keep_last must be between 1 and 10⁹; got 0."),
        ({"training.lr": 0.0}, "training.lr must be above 0; got 0.0. Try 0.001."),
        ({"training.lr": nan}, "training.lr must be a finite number, 0 or more; got nan."),
        ({"training.lr": inf}, "training.lr must be a finite number, 0 or more; got inf."),
        ({"training.lr": "fast"}, "training.lr must be a valid number; got 'fast'."),
        ({"training.lr": True}, "training.lr must be a valid number; got True."),
        ({"training.weight_decay": -0.1}, "training.weight_decay must be a finite number, 0 or more; got -0.1."),
        ({"training.clip": -1.0}, "training.clip must be a finite number, 0 or more; got -1.0."),
        ({"training.epochs": inf}, "training.epochs must be a finite number, 0 or more; got inf."),
        ({"training.momentum": 1.0}, "training.momentum must be below 1; got 1.0. Try 0.9."),
        ({"training.betas": [0.9]}, "training.betas must be two numbers from 0 to below 1; got [0.9]."),
        ({"training.betas": 0.9}, "training.betas must be two numbers from 0 to below 1; got [0.9]."),
        ({"training.betas": [0.9, 1.0]}, "training.betas must be two numbers from 0 to below 1; got [0.9, 1.0]."),
        ({"training.betas": [nan, 0.9]}, "training.betas must be two numbers from 0 to below 1; got [nan, 0.9]."),
        ({"training.optimizer": "adamx"}, "training.optimizer must be 'sgd', 'momentum', 'adam' or 'adamw'; "),
        ({"training.schedule": "linear"}, "training.schedule must be 'constant' or 'cosine'; got 'linear'."),
        ({"training.precision": "fp16"}, "training.precision must be "),
        ({"seeds.init": -1}, "seeds.init must be between 0 and 2⁶³ − 1; got -1."),
        ({"seeds.init": 2**63}, "seeds.init must be between 0 and 2⁶³ − 1; got 9223372036854775808."),
        ({"seeds.init": 1.5}, "seeds.init must be a valid integer; got 1.5."),
    ],
)  # fmt: skip
def test_a_broken_rule_is_one_line(changes, message):
    with pytest.raises(LabError) as caught:
        LSTM.override(changes)
    assert isinstance(caught.value, ConfigError | UnknownName)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"task": {"name": "arithmetic"}},
        {"task": {}, "model": {"name": "lstm"}},
        {"task": "arithmetic", "model": {"name": "lstm"}},
        {"task": [1], "model": {"name": "lstm"}},
        {"task": {"name": "arithmetic"}, "model": {"name": "lstm"}, "training": 5},
        {"task": {"name": "arithmetic"}, "model": {"name": "lstm"}, "seed": 5},
    ],
)
def test_a_spec_of_the_wrong_shape_is_one_line(sections):
    with pytest.raises(LabError) as caught:
        RunSpec(**sections)
    assert "\n" not in str(caught.value)


# --- steps and epochs ------------------------------------------------------------------------------------------------


def steps(changes, train_size):
    return GPT.override(changes).total_steps(train_size)


def test_steps_count_unless_epochs_are_given():
    assert steps({}, 480) == 10_001
    assert steps({"training.steps": 7}, 480) == 7
    assert steps({"training.epochs": 3, "training.batch_size": 100}, 480) == 15
    assert steps({"training.epochs": 0.5, "training.batch_size": 100}, 480) == 3  # half of five, rounded up
    assert steps({"training.epochs": 1}, 480) == 1
    assert steps({"training.epochs": 1e-9}, 480) == 1


def test_the_last_word_on_steps_or_epochs_wins():
    by_epochs = GPT.override({"training.steps": 50}).override({"training.epochs": 2})
    assert by_epochs.total_steps(480) == 2
    assert by_epochs.override({"training.steps": 9}).total_steps(480) == 9
    assert by_epochs.override({"training.steps": 9}).run_id == GPT.override({"training.steps": 9}).run_id


@given(st.integers(1, 2000), st.integers(1, 600))
def test_batches_per_epoch_hold_every_example(size, batch_size):
    spec = GPT.override({"training.batch_size": batch_size})
    batches = spec.batches_per_epoch(size)
    assert (batches - 1) * batch_size < size <= batches * batch_size
    dropping = spec.override({"training.drop_last": True})
    if size < batch_size:
        with pytest.raises(ConfigError, match=r"training\.batch_size must be at most the training set"):
            dropping.batches_per_epoch(size)
    else:
        whole = dropping.batches_per_epoch(size)
        assert whole * batch_size <= size < (whole + 1) * batch_size


# --- the grid --------------------------------------------------------------------------------------------------------


def test_document_000s_grid():
    """Steps 0 to 100, every hundredth, and the last, of 10,001."""
    training = Training()
    evaluated = [step for step in range(10_002) if training.is_evaluated(step, 10_001, per_epoch=1)]
    assert evaluated == [*range(101), *range(200, 10_001, 100), 10_001]
    saved = [step for step in range(10_002) if training.is_saved(step, 10_001, per_epoch=1)]
    assert saved == [*range(1000, 10_001, 1000), 10_001]


@pytest.mark.parametrize(
    ("first", "period", "total", "evaluated"),
    [(0, 4, 10, [0, 4, 8, 10]), (2, 4, 8, [0, 1, 2, 4, 8]), (0, 100, 3, [0, 3]), (50, 1, 2, [0, 1, 2])],
)
def test_a_grid_has_both_ends(first, period, total, evaluated):
    training = Training(eval_first=first, eval_period=period)
    assert [step for step in range(total + 1) if training.is_evaluated(step, total, per_epoch=7)] == evaluated


# --- seeds -----------------------------------------------------------------------------------------------------------


def test_one_seed_sets_all_four():
    assert Seeds.all(42) == Seeds(split=42, init=42, order=42, dropout=42)
    assert LSTM.with_seed(42).seeds == Seeds.all(42)
    assert LSTM.with_seed(42).seed == 42


def test_seeds_can_be_kept_apart():
    spec = LSTM.override({"seeds.split": 7}).with_seed(3, keep=frozenset({"split"}))
    assert spec.seeds == Seeds(split=7, init=3, order=3, dropout=3)
    assert (
        spec.run_id == LSTM.override({"seeds.split": 7, "seeds.init": 3, "seeds.order": 3, "seeds.dropout": 3}).run_id
    )


def test_a_seed_out_of_range_is_refused():
    with pytest.raises(ConfigError, match=r"^seeds\.split must be between 0 and 2⁶³ − 1; got -1\.$"):
        LSTM.with_seed(-1)


def test_another_seed_keeps_what_follows_from_the_width():
    spec = LSTM.override({"model.width": 64}).with_seed(3)
    assert spec.override({"model.width": 32}).model.hidden == 32


# --- the model of a run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spec", "parameters"), [(LSTM, 272_420), (GPT, 404_516)])
def test_the_models_of_the_defaults_have_their_size(spec, parameters):
    assert sum(p.numel() for p in spec.build_model().parameters()) == parameters


def test_the_init_seed_alone_decides_the_weights():
    def first(spec):
        return next(spec.build_model().parameters())

    small = LSTM.override({"model.width": 8})
    assert first(small).equal(first(small.override({"seeds.split": 3, "seeds.order": 4, "seeds.dropout": 5})))
    assert not first(small).equal(first(small.override({"seeds.init": 1})))


def test_a_period_of_zero_is_an_epoch():
    training = Training(eval_first=0, eval_period=0, checkpoint_period=0)
    assert [step for step in range(12) if training.is_evaluated(step, 11, per_epoch=4)] == [0, 4, 8, 11]
    assert [step for step in range(12) if training.is_saved(step, 11, per_epoch=4)] == [4, 8, 11]
