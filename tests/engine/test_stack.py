"""A run is a row of a stack: in company it must come out as it does alone, and as a plain PyTorch loop has it."""

from dataclasses import dataclass

import pytest
import torch
from torch.nn import functional as F

from lmlab.core.randomness import fold, stream
from lmlab.engine.order import BatchOrder
from lmlab.engine.spec import RunSpec
from lmlab.engine.stack import Layout, Stack, shape_of
from lmlab.models.decoder import DecoderConfig
from lmlab.models.model import Dropout, build
from lmlab.models.recurrent import LSTMConfig

CPU = torch.device("cpu")


def spec(model="lstm", **changes) -> RunSpec:
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    small = {"model.width": 8, "training.steps": 20, "training.eval_first": 0, "training.eval_period": 10}
    return RunSpec(task={"name": "arithmetic", "p": 5}, model={"name": model}).override({**small, **changes})


# --- the layout of a row ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [LSTMConfig(width=5), DecoderConfig(width=8, tie=True)], ids=["lstm", "tied-gpt"])
def test_weights_come_out_of_a_row_as_they_went_in(config):
    model = build(config, 11, 6, 10, seed=1)
    layout, named = Layout(model), dict(model.named_parameters())
    row = layout.pack(named)
    assert row.shape == (layout.size,)
    back = layout.unpack(row)
    assert list(back) == list(named)
    assert all(torch.equal(back[name], named[name]) for name in named)
    row.zero_()
    assert all(torch.equal(back[name], named[name]) for name in named)  # copies, not views


def test_a_tied_matrix_has_one_place():
    tied, free = (Layout(build(LSTMConfig(width=8, tie=tie), 11, 6)) for tie in (True, False))
    assert free.size - tied.size == 11 * 8


# --- which runs share a stack ----------------------------------------------------------------------------------------


@dataclass
class Spy:
    """How many members each stack had."""

    sizes: list[int]


@pytest.fixture
def stacks(monkeypatch):
    spy, original = Spy([]), Stack.__init__

    def watched(self, specs, *rest, **more):
        spy.sizes.append(len(specs))
        original(self, specs, *rest, **more)

    monkeypatch.setattr(Stack, "__init__", watched)
    return spy


def shape(one: RunSpec) -> str:
    return shape_of(one, one.task.split(one.seeds.split))


@pytest.mark.parametrize(
    "changes",
    [
        {"training__lr": 0.1},
        {"training__betas": [0.5, 0.9]},
        {"training__weight_decay": 0.0},
        {"training__clip": 0.0},
        {"training__momentum": 0.1},
        {"task__fraction": 0.2},
        {"seeds__init": 9, "seeds__split": 8, "seeds__order": 7, "seeds__dropout": 6},
    ],
)
def test_numbers_seeds_and_fractions_may_differ_in_a_stack(changes):
    assert shape(spec(**changes)) == shape(spec())


@pytest.mark.parametrize(
    "changes",
    [
        {"model__width": 12},
        {"model__layers": 1},
        {"model__dropout": 0.1},
        {"task__p": 7},
        {"task__operator": "*"},
        {"training__batch_size": 4},
        {"training__steps": 21},
        {"training__optimizer": "sgd"},
        {"training__schedule": "cosine"},
        {"training__warmup": 3},
        {"training__drop_last": True, "training__batch_size": 4},
        {"training__eval_first": 2},
        {"training__checkpoint_period": 2},
        {"training__eval_period": 5},
        {"training__precision": "fp64"},
    ],
)
def test_whatever_changes_the_program_does_not(changes):
    assert shape(spec(**changes)) != shape(spec())


def test_runs_counted_in_epochs_share_a_stack_if_they_take_as_many_steps():
    epochs = {"training__epochs": 2, "training__batch_size": 4}
    assert shape(spec(task__fraction=0.5, **epochs)) == shape(spec(task__fraction=0.46, **epochs))
    assert shape(spec(task__fraction=0.5, **epochs)) != shape(spec(task__fraction=0.9, **epochs))


def test_a_study_is_sorted_into_stacks(stacks, trained):
    specs = [spec(training__lr=lr, model__width=width).with_seed(seed)
             for width in (4, 8) for lr in (1e-3, 1e-2) for seed in (0, 1)]  # fmt: skip
    outcome = trained([*specs, specs[0]], strategy="stacked")
    assert stacks.sizes == [4, 4]
    assert set(outcome.ended) == {one.run_id for one in specs}


def test_on_a_cpu_runs_go_one_after_another_unless_asked(stacks, trained):
    trained([spec(training__steps=1).with_seed(seed) for seed in range(3)])
    assert stacks.sizes == [1, 1, 1]


def test_a_run_without_validation_does_not_take_it_from_others(stacks, trained):
    specs = [spec(training__steps=2, task__fraction=fraction) for fraction in (0.5, 1.0)]
    outcome = trained(specs, strategy="stacked")
    assert stacks.sizes == [1, 1]
    assert (specs[0].run_id, 2, "val", "all", "loss") in outcome.metrics
    assert {split for run, _, split, _, _ in outcome.metrics if run == specs[1].run_id} == {"train", "run"}


# --- in company as alone ---------------------------------------------------------------------------------------------


def comparable(name, tensor):
    """Without the biases of attention's keys: a shift of all keys changes no attention weight, so their gradient is
    rounding error, which Adam blows up to the size of a step."""
    if not name.endswith("queries_keys_values.bias"):
        return tensor
    queries, _, values = tensor.chunk(3)
    return torch.cat((queries, values))


def assert_same(one, other, tolerance):
    """Metrics, weights and moments of two outcomes."""
    assert one.metrics.keys() == other.metrics.keys()
    for key, value in one.metrics.items():
        assert value == pytest.approx(other.metrics[key], abs=tolerance, rel=tolerance), key
    assert one.snapshots.keys() == other.snapshots.keys()
    for key, snapshot in one.snapshots.items():
        parts = {"weights": snapshot.parameters, **snapshot.moments}
        others = {"weights": other.snapshots[key].parameters, **other.snapshots[key].moments}
        assert parts.keys() == others.keys()
        for part, tensors in parts.items():
            for name, tensor in tensors.items():
                torch.testing.assert_close(
                    comparable(name, tensor),
                    comparable(name, others[part][name]),
                    rtol=tolerance,
                    atol=tolerance,
                    msg=lambda text, where=(key, part, name): f"{where}: {text}",
                )
    assert one.ended == other.ended


@pytest.mark.parametrize("model", ["lstm", "gpt"])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("fp64", 1e-10)])
def test_a_mixed_stack_equals_its_members_alone(model, precision, tolerance, stacks, trained):
    """577 examples in batches of 512 and 65 beside full batches of 96 and 480, with dropout, each run with its own
    seeds and numbers."""
    base = spec(model, task__p=31, model__width=16, model__dropout=0.1, training__precision=precision)
    specs = [
        base.override({"task.fraction": 0.6}),
        base.override({"task.fraction": 0.1, "training.lr": 3e-3, "training.weight_decay": 0.1}).with_seed(1),
        base.override({"task.fraction": 0.5, "training.betas": [0.8, 0.95], "training.clip": 0.3}).with_seed(2),
        base.override({"task.fraction": 0.6, "training.clip": 0.0, "seeds.dropout": 5, "seeds.order": 6}),
    ]
    together = trained(specs, strategy="stacked")
    alone = trained(specs, strategy="loop")
    assert stacks.sizes == [4, 1, 1, 1, 1]
    assert {ended.status for ended in together.ended.values()} == {"finished"}
    assert len(together.snapshots) == 4
    assert_same(together, alone, tolerance)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
@pytest.mark.parametrize("options", [{}, {"model__tie": True}, {"task__orders": [2, 3], "task__p": 3}])
@pytest.mark.parametrize("model", ["lstm", "gpt"])
def test_every_optimizer_stacked_equals_alone(model, options, optimizer, stacks, trained):
    base = spec(
        model,
        training__optimizer=optimizer,
        training__precision="fp64",
        training__batch_size=5,
        training__schedule="cosine",
        training__warmup=4,
        training__steps=12,
        **options,
    )
    specs = [
        base.override({"training.lr": 0.05}),
        base.override({"training.lr": 0.01, "training.momentum": 0.5, "training.weight_decay": 0.0}).with_seed(3),
    ]
    together, alone = trained(specs, strategy="stacked"), trained(specs, strategy="loop")
    assert stacks.sizes == [2, 1, 1]
    assert_same(together, alone, 1e-10)


def test_a_stack_of_one_equals_a_loop(trained):
    one = spec("gpt", training__precision="fp64", model__dropout=0.2)
    assert_same(trained([one], strategy="stacked"), trained([one], strategy="loop"), 1e-10)


# --- against a plain loop --------------------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": lambda p, t: torch.optim.SGD(p, lr=t.lr, weight_decay=t.weight_decay),
    "momentum": lambda p, t: torch.optim.SGD(p, lr=t.lr, momentum=t.momentum, weight_decay=t.weight_decay),
    "adam": lambda p, t: torch.optim.Adam(p, lr=t.lr, betas=t.betas, weight_decay=t.weight_decay),
    "adamw": lambda p, t: torch.optim.AdamW(p, lr=t.lr, betas=t.betas, weight_decay=t.weight_decay),
}


def plain_loop(one: RunSpec) -> dict[str, torch.Tensor]:
    """The training that a notebook would have: one model, torch.optim, a loop."""
    training, split = one.training, one.task.split(one.seeds.split)
    model = one.build_model(torch.float64).train()
    optimizer = OPTIMIZERS[training.optimizer](model.parameters(), training)
    size = len(split.train_rows)
    order = BatchOrder([split.train_rows], training.batch_size, [one.batches_per_epoch(size)], [one.seeds.order], CPU)
    for step in range(training.steps):
        block = order.block(step - step % order.block_steps)
        rows = block[step % order.block_steps, 0]
        batch = split.table.at(rows[rows >= 0])
        for module in model.modules():
            if isinstance(module, Dropout):
                module.key.copy_(fold(torch.tensor(stream(one.seeds.dropout, "dropout")), step + 1))
        logits, _ = model(batch.inputs)
        surprise = F.cross_entropy(logits.transpose(1, 2), batch.targets, reduction="none")
        loss = ((surprise * batch.weights).sum(1) / batch.weights.sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        if training.clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip)
        optimizer.param_groups[0]["lr"] = training.lr * min(1, (step + 1) / max(1, training.warmup))
        optimizer.step()
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", ["lstm", "gpt"])
def test_training_is_what_a_plain_loop_does(model, optimizer, trained):
    one = spec(
        model,
        task__orders=[2, 3],
        model__dropout=0.2,
        training__optimizer=optimizer,
        training__batch_size=32,
        training__precision="fp64",
        training__lr=0.02,
        training__warmup=3,
        training__clip=0.5 if model == "lstm" else 0.0,
        training__steps=10,
    )
    weights = trained([one]).snapshots[one.run_id, 10].parameters
    for name, expected in plain_loop(one).items():
        torch.testing.assert_close(weights[name], expected, rtol=1e-9, atol=1e-10, msg=lambda t, n=name: f"{n}: {t}")


@pytest.mark.parametrize("strategy", ["loop", "stacked"])
def test_the_padding_symbol_stays_zero(strategy, trained):
    one = spec("gpt", task__orders=[2, 3], task__p=3, training__lr=0.1)
    outcome = trained([one, one.with_seed(1)], strategy=strategy)
    for snapshot in outcome.snapshots.values():
        table = snapshot.parameters["embedding.tokens.weight"]
        assert torch.count_nonzero(table[one.task.padding]) == 0
        assert torch.count_nonzero(table[:-1]) == table[:-1].numel()
