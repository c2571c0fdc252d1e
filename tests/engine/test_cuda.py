"""What must hold on a GPU: a captured step is the eager step, and the same stack twice gives the same numbers."""

import pytest
import torch

from lmlab.engine.spec import RunSpec
from lmlab.engine.stack import Snapshot
from lmlab.engine.train import Evaluation, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def members(name: str, precision: str) -> list[RunSpec]:
    """Warm-up, dropout, a short last batch (577 examples in 512 and 65) beside full batches, all in one stack."""
    base = RunSpec(task={"name": "arithmetic"}, model={"name": name}).override(
        {
            "model.dropout": 0.1,
            "training.steps": 50,
            "training.warmup": 10,
            "training.schedule": "cosine",
            "training.eval_first": 5,
            "training.eval_period": 10,
            "training.precision": precision,
        }
    )
    return [
        base.override({"task.fraction": fraction, "training.lr": lr}).with_seed(seed)
        for fraction, lr, seed in ((0.6, 1e-3, 0), (0.1, 3e-3, 42), (0.5, 1e-3, 7))
    ]


def outcome(specs: list[RunSpec], **options) -> tuple[dict, dict]:
    numbers, weights = {}, {}
    for record in train(specs, device="cuda", **options):
        if isinstance(record, Evaluation):
            numbers |= {(row.run, row.step, row.split, row.metric): row.value for row in record.rows}
        elif isinstance(record, Snapshot):
            weights |= {(record.run, name): tensor for name, tensor in record.parameters.items()}
    return numbers, weights


@pytest.mark.parametrize("name", ["lstm", "gpt"])
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_captured_equals_eager_and_repeats(name: str, precision: str) -> None:
    specs = members(name, precision)
    captured, weights = outcome(specs)
    again, weights_again = outcome(specs)
    eager, eager_weights = outcome(specs, capture=False)
    assert captured == again
    assert all(torch.equal(weights[key], weights_again[key]) for key in weights)
    assert captured.keys() == eager.keys()
    assert captured == pytest.approx(eager, rel=1e-6, abs=1e-6)
    for key, tensor in weights.items():
        torch.testing.assert_close(tensor, eager_weights[key], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["lstm", "gpt"])
def test_a_stack_on_the_gpu_equals_each_run_alone(name: str) -> None:
    specs = [spec.override({"training.steps": 20}) for spec in members(name, "fp32")]
    stacked, weights = outcome(specs)
    for spec in specs:
        alone, alone_weights = outcome([spec])
        assert {key: stacked[key] for key in alone} == pytest.approx(alone, rel=1e-3, abs=1e-3)
        for key, tensor in alone_weights.items():
            torch.testing.assert_close(tensor, weights[key], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["lstm", "gpt"])
def test_the_gpu_agrees_with_the_cpu(name: str) -> None:
    spec = members(name, "fp32")[0].override({"training.steps": 10})
    on_gpu, _ = outcome([spec])
    on_cpu = {
        (row.run, row.step, row.split, row.metric): row.value
        for record in train([spec], device="cpu")
        if isinstance(record, Evaluation)
        for row in record.rows
    }
    assert on_gpu == pytest.approx(on_cpu, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_a_carried_state_is_captured_too(name: str) -> None:
    """Windows of a text read in sequence, with the state of the last batch, across the end of an epoch."""
    task = {"name": "text", "characters": 3000, "window": 8, "measured": 20}
    training = {"carry": True, "steps": 120, "batch_size": 4, "eval_first": 0, "eval_period": 40, "precision": "fp32"}
    base = RunSpec(task=task, model={"name": name, "width": 8, "layers": 2}, training=training)
    specs = [base.with_seed(seed) for seed in range(3)]
    captured, weights = outcome(specs)
    eager, eager_weights = outcome(specs, capture=False)
    assert captured == pytest.approx(eager, rel=1e-5, abs=1e-6)
    for key, tensor in weights.items():
        torch.testing.assert_close(tensor, eager_weights[key], rtol=1e-4, atol=1e-5)
    assert outcome(specs)[0] == captured
