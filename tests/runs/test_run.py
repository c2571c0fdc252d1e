"""A run as one looks at it afterwards: curves, best values, frame, and the model that made the numbers."""

import json

import pytest
import torch

from lmlab.core.errors import CheckpointError, UnknownName
from lmlab.engine.losses import loss_and_accuracy
from lmlab.runs.lab import Lab
from lmlab.runs.run import Run
from lmlab.runs.store import Metric

EVALUATED = [0, 1, 2, 6, 12, 18, 20]


@pytest.fixture(params=["lstm", "gpt"])
def run(trained: Lab, request: pytest.FixtureRequest) -> Run:
    return next(run for run in trained.runs() if run.row.label == request.param)


@pytest.fixture
def unvalidated(trained: Lab) -> Run:
    return next(run for run in trained.runs() if run.row.label == "all")


def measured(run: Run, split: str, step: int | None = None) -> tuple[float, float]:
    """Loss and accuracy of the stored model, computed anew from the examples."""
    examples = getattr(run.spec.task.split(run.spec.seeds.split), split)
    with torch.no_grad():
        logits, _ = run.model(step)(examples.inputs)
    loss, accuracy = loss_and_accuracy(logits, examples.targets, examples.weights, run.spec.task.family)
    return float(loss), float(accuracy)


def test_a_curve_has_every_evaluated_step(run):
    for metric in ("loss", "accuracy"):
        for split in ("train", "val"):
            assert run.curve(metric, split).steps.tolist() == EVALUATED
    assert run.curve("norm", "run").steps.tolist() == EVALUATED
    assert run.curve("lr", "run").steps.tolist() == EVALUATED[1:]  # step 0 had no update


def test_an_unknown_curve_names_those_there_are(run):
    with pytest.raises(UnknownName, match=r"unknown curve 'loss test all'\. Did you mean .*loss train all"):
        run.curve("loss", "test")


def test_the_final_numbers_are_those_of_the_last_step(run):
    final = run.final()
    assert {split: set(numbers) for split, numbers in final.items()} == {
        "train": {"loss", "accuracy"},
        "val": {"loss", "accuracy"},
    }
    last = {(row.split, row.metric): row.value for row in run.lab.store.metrics(run.id) if row.step == 20}
    assert {(split, metric): value for split, part in final.items() for metric, value in part.items()} == {
        key: value for key, value in last.items() if key[1] in ("loss", "accuracy")
    }


def test_the_best_values_are_those_of_the_curves(run):
    best = run.extrema()
    assert best["loss_val"] == run.curve("loss", "val").values.min()
    assert best["accuracy_train"] == run.curve("accuracy", "train").values.max()
    assert run.extrema(limit=0)["loss_train"] == run.curve("loss", "train").values[0]
    assert run.extrema(limit=0)["delay_loss"] == 0


@pytest.mark.parametrize("split", ["train", "val"])
def test_the_model_of_a_run_gives_the_numbers_that_were_kept(run, split):
    kept = run.final()[split]
    assert measured(run, split) == pytest.approx((kept["loss"], kept["accuracy"]), rel=1e-5)
    assert not run.model().training


def test_earlier_checkpoints_can_be_asked_for(run):
    assert [entry.step for entry in run.lab.checkpoints(run.id).entries()] == [8, 16, 20]
    assert measured(run, "val", step=8)[0] != measured(run, "val")[0]
    assert measured(run, "val", step=20) == measured(run, "val")
    with pytest.raises(CheckpointError, match="checkpoint 7"):
        run.model(step=7)


def test_tied_weights_are_tied_in_the_model(trained):
    model = next(run for run in trained.runs() if run.row.label == "gpt").model()
    assert model.classifier.weight is model.embedding.tokens.weight


def test_metrics_as_a_data_frame(run):
    frame = run.frame()
    assert list(frame.columns) == ["step", "split", "group", "metric", "value"]
    assert [Metric(*row) for row in frame.itertuples(index=False)] == run.lab.store.metrics(run.id)
    losses = frame[(frame.metric == "loss") & (frame.split == "val")]
    assert losses.value.tolist() == run.curve("loss", "val").values.tolist()


def test_training_on_everything_has_no_validation(unvalidated):
    assert set(unvalidated.final()) == {"train"}
    best = unvalidated.extrema()
    assert best["loss_train"] is not None
    assert best["loss_val"] is best["t_accuracy_val"] is best["delay_loss"] is None


def test_a_run_says_what_it_is(run):
    assert repr(run) == f"Run({run.id}, {run.row.label}, seed 0, finished, step 20/20)"


def test_the_spec_of_a_run_leads_back_to_its_id(run):
    assert run.spec.run_id == run.id
    assert json.loads(json.dumps(run.row.spec)) == run.spec.to_json()


def test_what_can_change_bits_is_written_down_with_the_run(run):
    assert run.row.machine["threads"] == torch.get_num_threads()
    assert {"device", "device_type", "torch", "precision", "strategy"} <= run.row.machine.keys()


def test_a_run_that_never_trained_has_no_model(run, tmp_path):
    lab = Lab(tmp_path / "fresh", create=True)
    lab.register([("lstm", run.spec)])
    waiting = lab.run("latest")
    assert (waiting.status, waiting.final()) == ("waiting", {})
    with pytest.raises(CheckpointError, match=f"has no checkpoint yet. Go on with: lmlab resume {run.id}"):
        waiting.model()
