"""A run that is killed or stopped at any moment, and then gone on with, equals one that never was: bit for bit."""

import json
import random
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lmlab.apps.cli import main
from lmlab.core.config import parse_assignment
from lmlab.runs.lab import Lab
from lmlab.runs.run import Run
from lmlab.studies.session import train

STEPS = 400
SETTINGS = {
    "task.p": 7,
    "task.fraction": 0.6,
    "model.width": 16,
    "model.dropout": 0.2,
    "training.batch_size": 8,  # of 29: four batches an epoch, the last one short
    "training.schedule": '"cosine"',
    "training.warmup": 30,
    "training.eval_first": 3,
    "training.eval_period": 7,
    "training.checkpoint_period": 20,
}
OPTIONS = [f"--set={key}={value}" for key, value in SETTINGS.items()] + [f"--steps={STEPS}", "--device=cpu"]


@pytest.fixture(scope="module", params=["arithmetic-lstm", "arithmetic-gpt"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run as it should be, trained without interruption."""
    overrides = dict(parse_assignment(f"{key}={value}") for key, value in SETTINGS.items())
    lab = tmp_path_factory.mktemp("whole")
    (run,) = train(request.param, overrides=overrides, steps=STEPS, lab=lab, device="cpu")
    return run


def tensors(run: Run) -> dict[str, torch.Tensor]:
    """Weights and moments after the last step, read from the disk."""
    return load_file(run.lab.path / "checkpoints" / run.id / f"{STEPS:08d}.safetensors")


def assert_equal(one: Run, other: Run) -> None:
    assert one.id == other.id
    assert one.status == other.status == "finished"
    assert one.row.step == other.row.step == STEPS
    ours, theirs = tensors(one), tensors(other)
    assert ours.keys() == theirs.keys()
    assert {key.split("/")[1] for key in ours if key.startswith("moments/")} == {"first", "second"}
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name
    metrics = one.lab.store.metrics(one.id)
    assert metrics == other.lab.store.metrics(other.id)
    assert {row.step for row in metrics} == {*range(4), *range(0, STEPS, 7), STEPS}


def newest(lab: Path) -> int:
    """The step of the newest checkpoint on the disk; 0 while there is none."""
    return max((int(path.stem) for path in lab.glob("checkpoints/*/*.json")), default=0)


def test_a_run_killed_twice_goes_on_bit_for_bit(whole, tmp_path, start, wait_for, raw):
    lab = tmp_path / "killed"
    command = ["train", whole.row.label, *OPTIONS]
    for _ in range(2):
        process = start(*command, "--lab", lab)
        target = newest(lab) + random.randint(1, 120)
        wait_for(lambda at=target: newest(lab) >= at)
        time.sleep(random.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        ((status, step),) = raw(lab, "select status, step from runs")
        assert (status, target <= step < STEPS) == ("running", True), f"at step {step}, to be killed from {target} on"
        assert raw(lab, "pragma integrity_check") == [("ok",)]
        raw(lab, "update runs set lease = 0")  # as if a minute had passed
        assert Lab(lab).run("latest").status == "interrupted"
        command = ["resume", whole.id[:6], "--json"]

    process = start(*command, "--lab", lab)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    (told,) = json.loads(out)["runs"]
    assert (told["run"], told["status"], told["steps"]) == (whole.id, "finished", STEPS)
    assert_equal(Lab(lab).run(whole.id), whole)
    assert raw(lab, "pragma integrity_check") == [("ok",)]
    assert raw(lab, "select fence from runs") == [(3,)]
    assert list(lab.rglob("*.tmp")) == []


def test_a_run_stopped_with_control_c_goes_on_bit_for_bit(whole, tmp_path, start, wait_for, monkeypatch, capsys):
    lab = tmp_path / "stopped"
    process = start("train", whole.row.label, *OPTIONS, "--lab", lab, "--json")
    wait_for(lambda: newest(lab) > 0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    (told,) = json.loads(out)["runs"]
    assert told["status"] == "interrupted"
    assert 20 <= told["steps"] < STEPS
    assert err == f"Stopped at step {told['steps']}. Go on with: lmlab resume {whole.id}\n"

    stopped = Lab(lab).run("latest")
    assert (stopped.status, stopped.row.step) == ("interrupted", told["steps"])
    assert newest(lab) == told["steps"]  # saved where it stopped

    monkeypatch.setattr(sys, "argv", [*err.split("with: ")[1].split(), "--lab", str(lab)])  # as the line says
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "finished" in capsys.readouterr().out
    assert_equal(Lab(lab).run("latest"), whole)
    assert list(lab.rglob("*.tmp")) == []
