"""What training yields: when, in which order, with which numbers; how it stops, goes on and fails."""

from math import cos, pi, sqrt

import pytest
import torch
from torch.nn import functional as F

from lmlab.core.device import cpu_survives_bf16
from lmlab.core.errors import ConfigError
from lmlab.engine.spec import RunSpec
from lmlab.engine.stack import Snapshot, Stack
from lmlab.engine.train import Ended, Evaluation, Tick, train

both_models = pytest.mark.parametrize("model", ["lstm", "gpt"])
both_strategies = pytest.mark.parametrize("strategy", ["loop", "stacked"])


def spec(model="lstm", **changes) -> RunSpec:
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    small = {
        "model.width": 8,
        "training.steps": 12,
        "training.eval_first": 3,
        "training.eval_period": 5,
        "training.checkpoint_period": 5,
    }
    return RunSpec(task={"name": "arithmetic", "p": 5}, model={"name": model}).override({**small, **changes})


def trio(model="lstm", **changes) -> list[RunSpec]:
    """Three runs of one stack: other seeds, other rates, several batches per epoch, dropout."""
    base = spec(model, model__dropout=0.2, training__batch_size=5, **changes)
    return [base, base.override({"training.lr": 0.01}).with_seed(1), base.override({"task.fraction": 0.3})]


def assert_identical(one: Snapshot, other: Snapshot) -> None:
    """Bit for bit."""
    assert (one.run, one.step) == (other.run, other.step)
    mine, yours = {"weights": one.parameters, **one.moments}, {"weights": other.parameters, **other.moments}
    assert mine.keys() == yours.keys()
    for part in mine:
        assert mine[part].keys() == yours[part].keys()
        assert all(torch.equal(mine[part][name], yours[part][name]) for name in mine[part])


# --- the records -----------------------------------------------------------------------------------------------------


@both_strategies
def test_steps_of_the_grid_are_evaluated_and_saved(strategy, trained):
    specs = trio()
    outcome = trained(specs, strategy=strategy)
    for one in specs:
        evaluated = sorted({step for run, step, *_ in outcome.metrics if run == one.run_id})
        assert evaluated == [0, 1, 2, 3, 5, 10, 12]
        assert sorted(step for run, step in outcome.snapshots if run == one.run_id) == [5, 10, 12]
        assert outcome.ended[one.run_id] == Ended(one.run_id, "finished", 12)


@both_strategies
def test_an_evaluation_comes_before_the_snapshot_and_that_before_the_end(strategy, trained):
    outcome = trained(trio(), strategy=strategy)
    for run in outcome.ended:
        kinds = []
        for record in outcome.records:
            if isinstance(record, Evaluation) and any(row.run == run for row in record.rows):
                assert all(row.step == record.step for row in record.rows)
                kinds.append(("evaluation", record.step))
            elif isinstance(record, Snapshot | Ended) and record.run == run:
                kinds.append((type(record).__name__.lower(), record.step))
        assert kinds == [
            *[("evaluation", step) for step in (0, 1, 2, 3, 5)], ("snapshot", 5),
            ("evaluation", 10), ("snapshot", 10),
            ("evaluation", 12), ("snapshot", 12), ("ended", 12),
        ]  # fmt: skip


def test_there_are_signs_of_life_between_evaluations(monkeypatch, trained):
    monkeypatch.setattr("lmlab.engine.train.TICK_SECONDS", 0.0)
    one = spec(training__eval_first=0, training__eval_period=100, training__steps=4)
    outcome = trained([one])
    assert outcome.of(Tick)[:3] == [Tick((one.run_id,), step, 4) for step in (1, 2, 3)]


def test_bf16_trains_weights_that_are_kept_in_fp32(trained):
    if not cpu_survives_bf16():
        pytest.skip("this CPU cannot")
    rough, fine = spec(training__precision="bf16"), spec(training__precision="fp32")
    outcome = trained([rough, fine])
    weights = outcome.snapshots[rough.run_id, 12].parameters
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    losses = [outcome.metrics[one.run_id, 12, "train", "all", "loss"] for one in (rough, fine)]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert losses[0] != losses[1]


def test_training_says_nothing(capsys, trained):
    trained([spec()])
    assert capsys.readouterr() == ("", "")


def test_training_leaves_the_global_generator_alone(trained):
    before = torch.get_rng_state()
    trained(trio())
    assert torch.equal(torch.get_rng_state(), before)


def slow_metrics(one: RunSpec, parameters, rows) -> tuple[float, float]:
    """Loss and accuracy of some rows, one equation at a time."""
    model = one.build_model()
    model.load_state_dict(parameters)
    model.eval()
    table, losses, rights = one.task.split(one.seeds.split).table, [], []
    with torch.no_grad():
        for row in rows.tolist():
            counted = table.weights[row] > 0
            logits = model(table.inputs[row : row + 1])[0][0][counted]
            targets = table.targets[row][counted]
            losses.append(F.cross_entropy(logits, targets).item())
            rights.append(bool((logits.argmax(1) == targets).all()))
    return sum(losses) / len(losses), sum(rights) / len(rights)


@both_models
@both_strategies
def test_metrics_are_those_of_the_weights_at_that_step(model, strategy, trained):
    """Without dropout, on the whole of both sides, whatever the batch."""
    specs = trio(model, training__lr=0.02)
    outcome = trained(specs, strategy=strategy)
    for one in specs:
        split = one.task.split(one.seeds.split)
        states = {step: outcome.snapshots[one.run_id, step].parameters for step in (5, 12)}
        states[0] = one.build_model().state_dict()
        for step, parameters in states.items():
            for side, rows in (("train", split.train_rows), ("val", split.val_rows)):
                loss, accuracy = slow_metrics(one, parameters, rows)
                assert outcome.metrics[one.run_id, step, side, "all", "loss"] == pytest.approx(loss, rel=1e-5)
                assert outcome.metrics[one.run_id, step, side, "all", "accuracy"] == pytest.approx(accuracy, abs=1e-6)
            norm = sqrt(sum(weight.double().square().sum().item() for weight in parameters.values()))
            assert outcome.metrics[one.run_id, step, "run", "all", "norm"] == pytest.approx(norm, rel=1e-6)


def test_numbers_of_the_last_update(trained):
    """With one full batch and no dropout, the loss of update k is the training loss after k − 1 updates."""
    one = spec(training__schedule="cosine", training__warmup=2, training__lr=0.01)
    metrics = trained([one]).metrics
    run = one.run_id
    for step in (1, 2, 3):
        before = metrics[run, step - 1, "train", "all", "loss"]
        assert metrics[run, step, "train", "all", "batch_loss"] == pytest.approx(before, rel=1e-5)
        assert metrics[run, step, "run", "all", "gradient_norm"] > 0
    rates = {step: metrics[run, step, "run", "all", "lr"] for step in (1, 2, 3, 5, 10, 12)}
    assert rates == pytest.approx(
        {1: 0.005, 2: 0.01, **{k: 0.005 * (1 + cos(pi * (k - 3) / 10)) for k in (3, 5, 10, 12)}}, rel=1e-5
    )
    assert not any(metric in ("batch_loss", "gradient_norm", "lr") for _, step, _, _, metric in metrics if step == 0)


def test_the_gradient_norm_is_the_one_before_clipping(trained):
    free = spec(training__clip=0.0, training__steps=1)
    tight = spec(training__clip=1e-3, training__steps=1)
    metrics = trained([free, tight]).metrics
    norms = [metrics[one.run_id, 1, "run", "all", "gradient_norm"] for one in (free, tight)]
    assert norms[0] == norms[1] > 1e-3


@both_models
@both_strategies
def test_groups_add_up_to_the_whole(model, strategy, trained):
    """Binary and ternary equations, each weighted by how many there are, give the overall loss and accuracy."""
    one = spec(model, task__orders=[2, 3], task__fraction=0.4, training__lr=0.01)
    metrics = trained([one, one.with_seed(1)], strategy=strategy).metrics
    counts = {"train": (10, 50), "val": (15, 75)}  # of 25 and 125
    for run in {run for run, *_ in metrics}:
        for step in (0, 5, 12):
            for side, (binary, ternary) in counts.items():
                for metric in ("loss", "accuracy"):
                    whole, two, three = (metrics[run, step, side, g, metric] for g in ("all", "binary", "ternary"))
                    assert whole == pytest.approx((binary * two + ternary * three) / (binary + ternary), rel=1e-9)
                    if metric == "loss":
                        assert two != three


@both_models
def test_a_small_task_is_learnt(model, trained):
    one = spec(model, model__width=32, task__fraction=0.8, training__steps=150, training__lr=0.01,
               training__weight_decay=0.01, training__eval_first=0, training__eval_period=150)  # fmt: skip
    metrics = trained([one]).metrics
    assert metrics[one.run_id, 0, "train", "all", "accuracy"] < 0.5
    assert metrics[one.run_id, 150, "train", "all", "accuracy"] == 1.0
    assert metrics[one.run_id, 150, "train", "all", "loss"] < 0.1


@pytest.mark.parametrize(
    "changes", [{"seeds__init": 1}, {"seeds__split": 1}, {"seeds__order": 1}, {"seeds__dropout": 1}]
)
def test_each_seed_matters_and_the_same_seeds_give_the_same_run(changes, trained):
    base = spec(training__batch_size=5, model__dropout=0.2, training__eval_first=0)
    other = base.override({name.replace("__", "."): value for name, value in changes.items()})
    first, again, different = (trained([one]) for one in (base, base, other))
    assert first.metrics == again.metrics
    assert_identical(first.snapshots[base.run_id, 12], again.snapshots[base.run_id, 12])
    assert (
        first.metrics[base.run_id, 12, "train", "all", "loss"]
        != (different.metrics[other.run_id, 12, "train", "all", "loss"])
    )


# --- going on --------------------------------------------------------------------------------------------------------


@both_strategies
@pytest.mark.parametrize(("model", "optimizer"), [("gpt", "adamw"), ("lstm", "momentum"), ("lstm", "sgd")])
def test_going_on_from_a_snapshot_is_bit_for_bit(model, strategy, optimizer, trained):
    """Batches are prepared 64 steps at a time: from inside the first block, from its end, from inside the second."""
    specs = trio(model, training__optimizer=optimizer, training__steps=100, training__checkpoint_period=32,
                 training__eval_first=0, training__eval_period=49, training__schedule="cosine")  # fmt: skip
    straight = trained(specs, strategy=strategy)
    for start in (32, 64, 96):
        resume = {one.run_id: straight.snapshots[one.run_id, start] for one in specs}
        resumed = trained(specs, strategy=strategy, resume=resume)
        later = {key: value for key, value in straight.metrics.items() if key[1] > start}
        assert resumed.metrics == later
        for key, snapshot in resumed.snapshots.items():
            assert_identical(snapshot, straight.snapshots[key])
        assert resumed.ended == straight.ended


def test_a_stack_may_hold_fresh_and_resumed_runs(trained):
    specs = trio()
    straight = trained(specs, strategy="stacked")
    first = specs[0].run_id
    mixed = trained(specs, strategy="stacked", resume={first: straight.snapshots[first, 5]})
    assert mixed.ended == straight.ended
    for one in specs:
        last = straight.snapshots[one.run_id, 12].parameters["classifier.weight"]
        torch.testing.assert_close(mixed.snapshots[one.run_id, 12].parameters["classifier.weight"], last)


def test_a_finished_run_has_nothing_left_to_do(trained):
    one = spec()
    done = trained([one]).snapshots[one.run_id, 12]
    assert trained([one], resume={one.run_id: done}).records == [Ended(one.run_id, "finished", 12)]


# --- stopping --------------------------------------------------------------------------------------------------------


@both_strategies
def test_stopping_saves_where_it_is_and_going_on_gives_the_same_run(strategy, trained):
    specs = trio(training__eval_first=0)
    straight = trained(specs, strategy=strategy)
    steps = iter(range(1000))
    stopped = trained(specs, strategy=strategy, stop=lambda: next(steps) >= 4)  # asked once before the first step
    for run, ended in stopped.ended.items():
        assert ended == Ended(run, "interrupted", 4)
        assert stopped.records.index(stopped.snapshots[run, 4]) < stopped.records.index(ended)
    assert len(stopped.ended) == (3 if strategy == "stacked" else 1)  # the others had not begun
    resume = {run: stopped.snapshots[run, 4] for run in stopped.ended}
    resumed = trained(specs, strategy=strategy, resume=resume)
    assert resumed.ended == straight.ended
    for one in specs:
        assert_identical(resumed.snapshots[one.run_id, 12], straight.snapshots[one.run_id, 12])
    assert {**straight.metrics, **stopped.metrics, **resumed.metrics} == straight.metrics


def test_runs_that_have_not_begun_are_left_alone(trained):
    specs = [spec(), spec(model__width=4)]
    asked = iter([False, True, True])
    outcome = trained(specs, stop=lambda: next(asked))
    assert list(outcome.ended) == [specs[0].run_id]
    assert {run for run, *_ in outcome.metrics} == {specs[0].run_id}
    assert trained(specs, stop=lambda: True).records == []


def test_a_stop_after_the_last_step_changes_nothing(trained):
    one = spec(training__steps=2)
    asked = iter([False, False, True, True])
    assert trained([one], stop=lambda: next(asked)).ended[one.run_id].status == "finished"


# --- divergence ------------------------------------------------------------------------------------------------------


@both_models
def test_a_diverged_run_ends_alone(model, trained):
    """It is marked with its step, and its neighbours are exactly as they are beside a healthy run."""
    first, wild, last = trio(model, training__eval_first=100)
    tame = wild
    wild = wild.override({"training.lr": 1e30})
    with_wild = trained([first, wild, last], strategy="stacked")
    with_tame = trained([first, tame, last], strategy="stacked")
    ended = with_wild.ended[wild.run_id]
    assert ended.status == "diverged"
    assert 1 <= ended.step <= 5
    assert ended == trained([wild], strategy="loop").ended[wild.run_id]
    for one in (first, last):
        assert with_wild.ended[one.run_id] == Ended(one.run_id, "finished", 12)
        mine = {key: value for key, value in with_wild.metrics.items() if key[0] == one.run_id}
        assert mine == {key: value for key, value in with_tame.metrics.items() if key[0] == one.run_id}
        for step in (5, 10, 12):
            assert_identical(with_wild.snapshots[one.run_id, step], with_tame.snapshots[one.run_id, step])


def test_a_diverged_run_keeps_its_last_finite_weights():
    wild, tame = spec("gpt", training__lr=1e30), spec("gpt", training__lr=1e-3)
    stack = Stack([wild, tame], [wild.task.split(0)] * 2, torch.device("cpu"), "fp32", vectorised=True)
    weights = [stack.theta.clone()]
    for _ in range(4):
        stack.update()
        weights.append(stack.theta.clone())
    at = stack.diverged_at.tolist()
    assert at == [2, 0]
    assert torch.isfinite(weights[4]).all()
    assert torch.equal(weights[4][0], weights[at[0] - 1][0])  # what the last good update left
    assert not torch.equal(weights[4][1], weights[3][1])


def test_a_diverged_run_is_recorded_up_to_its_last_finite_step(trained):
    wild = spec("gpt", training__lr=1e30, training__eval_first=100)
    outcome = trained([wild])
    end = outcome.ended[wild.run_id].step
    assert {step for _, step, *_ in outcome.metrics} == set(range(end))
    assert all(abs(value) < float("inf") for value in outcome.metrics.values())
    assert not outcome.snapshots
    assert isinstance(outcome.records[-1], Ended)  # no step is spent on a run that is over


def test_divergence_between_evaluations_is_noticed_at_the_next(trained):
    wild = spec(training__optimizer="sgd", training__clip=0.0, training__lr=1e30, training__eval_first=0,
                training__eval_period=7, training__checkpoint_period=100)  # fmt: skip
    outcome = trained([wild])
    assert outcome.ended[wild.run_id].status == "diverged"
    assert 1 <= outcome.ended[wild.run_id].step < 7
    assert {step for _, step, *_ in outcome.metrics} == {0}


def test_the_step_of_divergence_does_not_depend_on_when_one_looks(trained):
    wild = spec("gpt", training__lr=1e30, training__checkpoint_period=4)
    steps = {
        trained([wild.override({"training.eval_first": first, "training.eval_period": period})]).of(Ended)[0].step
        for first, period in ((100, 1), (0, 5), (0, 12))
    }
    assert len(steps) == 1


def test_a_run_that_failed_since_the_last_evaluation_is_neither_saved_nor_called_interrupted(trained):
    wild = spec("gpt", training__lr=1e30, training__eval_first=0, training__eval_period=12)
    saved = trained([wild])
    assert [ended.status for ended in saved.of(Ended)] == ["diverged"]
    assert not saved.snapshots
    calls = iter(range(100))
    stopped = trained([wild], stop=lambda: next(calls) >= 4)
    assert [ended.status for ended in stopped.of(Ended)] == ["diverged"]
    assert not stopped.snapshots


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task__fraction": 0.01}, r"^task\.fraction leaves nothing to train on"),
        ({"training__precision": "tf32"}, r"^training\.precision tf32 needs a CUDA device"),
        ({"training__drop_last": True}, r"^training\.batch_size must be at most the training set \(12\)"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_any_work(changes, message):
    records = train([spec(), spec(**changes)], device="cpu")
    with pytest.raises(ConfigError, match=message):
        next(records)


def test_an_unknown_device_is_refused_before_any_work():
    with pytest.raises(ConfigError, match=r"^--device must be auto, cpu or cuda"):
        next(train([spec()], device="tpu"))


def test_nothing_to_train_is_nothing_to_yield(trained):
    assert trained([]).records == []


# --- state carried from batch to batch -------------------------------------------------------------------------------


def reading(model="gru", **changes) -> RunSpec:
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    base = {
        "training.carry": True,
        "training.steps": 9,
        "training.batch_size": 3,
        "training.eval_first": 0,
        "training.eval_period": 9,
        "training.checkpoint_period": 4,
        "training.lr": 0.01,
    }
    task = {"name": "text", "characters": 3000, "window": 8, "validation": 0.0, "measured": 20}
    return RunSpec(task=task, model={"name": model, "width": 8, "layers": 2}).override({**base, **changes})


def test_a_carried_state_reads_the_text_as_one_sequence():
    """Truncated back-propagation by hand: three readers, each at his own place, detached between windows."""
    spec = reading(training__steps=4, training__optimizer="sgd", training__weight_decay=0.0, training__clip=0.0)
    split = spec.task.split(0)
    stack = Stack([spec], [split], torch.device("cpu"), "fp64", vectorised=False)
    model, state = spec.build_model(torch.float64), None
    per_epoch = len(split.train_rows) // 3
    for step in range(4):
        rows = torch.tensor([reader * per_epoch + step for reader in range(3)])
        batch = split.table.at(rows)
        logits, state = model(batch.inputs, state)
        state = [tuple(tensor.detach() for tensor in layer) for layer in state]
        loss = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
        stack.update()
    mine = stack.snapshot(0, 4).parameters
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(mine[name], parameter.detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("model", ["rnn", "gru", "lstm"])
@both_strategies
def test_a_carried_state_survives_a_stop(model, strategy, trained):
    specs = [reading(model), reading(model).with_seed(1)]
    whole = trained(specs, strategy=strategy)
    resume = {spec.run_id: whole.snapshots[spec.run_id, 4] for spec in specs}
    rest = trained(specs, strategy=strategy, resume=resume)
    for spec in specs:
        assert_identical(rest.snapshots[spec.run_id, 9], whole.snapshots[spec.run_id, 9])
        pairs = zip(rest.snapshots[spec.run_id, 9].carried, whole.snapshots[spec.run_id, 9].carried, strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)


def test_carrying_matters(trained):
    kept, fresh = reading(), reading(training__carry=False, training__drop_last=True)
    losses = [trained([one]).metrics[one.run_id, 9, "train", "all", "loss"] for one in (kept, fresh)]
    assert losses[0] != losses[1]


def test_attention_cannot_carry():
    with pytest.raises(ConfigError, match=r"^training\.carry needs a recurrent model"):
        reading("gpt")


def test_readers_of_texts_of_different_length_do_not_share_a_stack(trained):
    """Their epochs end at different steps, and with them what is remembered."""
    short, long = reading(task__validation=0.4), reading(task__validation=0.1)
    stacked = trained([short, long], strategy="stacked")
    for spec in (short, long):
        alone = trained([spec], strategy="loop").snapshots[spec.run_id, 9]
        mine = stacked.snapshots[spec.run_id, 9]
        for name, tensor in alone.parameters.items():
            torch.testing.assert_close(mine.parameters[name], tensor, rtol=1e-5, atol=1e-6)
