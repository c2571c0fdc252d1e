"""`lmlab train` and `lmlab resume`."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest
import torch

from lmlab.runs.lab import Lab
from lmlab.studies.execute import execute
from lmlab.studies.session import specs_of


def test_train_tells_what_became_of_every_run(small, here):
    told = small("arithmetic-lstm", "--seeds=0,42", "--json").json
    assert [(run["seed"], run["status"], run["steps"]) for run in told["runs"]] == [
        (0, "finished", 12),
        (42, "finished", 12),
    ]
    for run in told["runs"]:
        assert len(run["run"]) == 16
        assert run["final"].keys() == {"train", "val"}
        for split in ("train", "val"):
            assert run["final"][split].keys() == {"loss", "accuracy"}
            assert run["final"][split]["loss"] > 0
            assert 0 <= run["final"][split]["accuracy"] <= 1
        assert run["final"] == Lab(here / "lab").run(run["run"]).final()


def test_what_is_finished_is_not_trained_again(small, here):
    first = small("arithmetic-gpt", "--json").json
    before = Lab(here / "lab").run("latest").row
    assert small("arithmetic-gpt", "--json").json == first
    assert Lab(here / "lab").run("latest").row == before


def test_for_people_there_is_a_table_and_nothing_on_standard_error(small):
    outcome = small("arithmetic-lstm")
    assert (outcome.status, outcome.err) == (0, "")
    run = Lab("lab").run("latest")
    line = next(line for line in outcome.out.splitlines() if run.id in line)
    assert "arithmetic-lstm" in line
    assert "finished" in line
    assert f"{run.final()['val']['loss']:.4f}" in line


def test_steps_set_and_seeds_reach_the_run(small, here):
    told = small(
        "arithmetic-gpt",
        "--steps=3",
        "--seeds=7",
        "--set=training.lr=0.01",
        "--set=task.operator=*",
        "--set=training.betas=[0.8,0.9]",
        "--set=model.bias=false",
        "--set=seeds.split=5",
        "--precision=fp64",
        "--json",
    ).json
    spec = Lab(here / "lab").run(told["runs"][0]["run"]).spec
    assert (spec.training.steps, spec.training.lr, spec.training.betas) == (3, 0.01, (0.8, 0.9))
    assert (spec.task.operator, spec.model.bias, spec.training.precision) == ("*", False, "fp64")
    assert (spec.seeds.split, spec.seeds.init, spec.seeds.order, spec.seeds.dropout) == (5, 7, 7, 7)
    assert told["runs"][0]["steps"] == 3


def test_the_lab_is_the_one_named_or_that_of_the_environment_or_here(small, here, monkeypatch):
    small("arithmetic-lstm")
    monkeypatch.setenv("LMLAB_HOME", str(here / "home"))
    small("arithmetic-lstm")
    small("arithmetic-lstm", "--lab", here / "named")
    assert sorted(path.name for path in here.iterdir()) == ["home", "lab", "named"]
    assert {Lab(here / name).run("latest").status for name in ("home", "lab", "named")} == {"finished"}


def test_training_on_everything_has_no_validation(lmlab, trained):
    show = lmlab("runs", "show", "latest", "--lab", trained, "--json").json
    assert show["status"] == "finished"
    assert show["extrema"]["loss_train"] > 0
    for name in ("loss_val", "t_loss_val", "accuracy_val", "t_accuracy_val", "delay_loss", "delay_accuracy"):
        assert show["extrema"][name] is None
    rows = lmlab("runs", "metrics", "latest", "--lab", trained, "--json").json["rows"]
    assert {row["split"] for row in rows} == {"train", "run"}
    told = lmlab("resume", "latest", "--lab", trained, "--json").json
    assert told["runs"][0]["final"].keys() == {"train"}
    assert lmlab("runs", "show", "latest", "--lab", trained).status == 0  # for people, too


def test_a_diverged_run_is_told_as_such(small):
    outcome = small("arithmetic-lstm", "--set=training.lr=1e30", "--json").json
    (run,) = outcome["runs"]
    assert run["status"] == "diverged"
    assert 0 < run["steps"] < 12
    assert f"diverged (not finite at step {run['steps']})" in small("arithmetic-lstm", "--set=training.lr=1e30").out


def test_resuming_a_finished_run_tells_its_outcome(lmlab, trained):
    told = lmlab("resume", "latest", "--lab", trained, "--device=cpu", "--json").json
    (run,) = told["runs"]
    assert run.keys() >= {"run", "seed", "status", "steps", "final"}
    assert (run["status"], run["steps"]) == ("finished", 12)


@pytest.mark.parametrize("name", ["latest", "prefix"])
def test_resuming_goes_on_where_a_run_was_left(name, lmlab, here):
    lab = Lab(here / "lab", create=True)
    runs = specs_of("arithmetic-lstm", (0,), {"task.p": 5, "model.width": 8, "training.steps": 12})
    asked = iter([False] * 6 + [True] * 100)
    (left,) = execute(runs, lab, device="cpu", stop=lambda: next(asked))
    assert left.status == "interrupted"
    told = lmlab("resume", left.id[:5] if name == "prefix" else name, "--json").json
    assert [(run["run"], run["status"], run["steps"]) for run in told["runs"]] == [(left.id, "finished", 12)]
    assert lab.run("latest").curve("loss", "val").steps.tolist() == list(range(13))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_auto_is_the_cpu_where_there_is_no_cuda(small):
    run = small("arithmetic-lstm", "--device=auto", "--json").json["runs"][0]["run"]
    assert Lab("lab").run(run).row.machine["device_type"] == "cpu"


def test_progress_is_shown_on_a_terminal_and_leaves_the_document_alone(here):
    """Standard error is a terminal, standard output is not: the bar goes to the one, tables to the other."""
    command = [sys.executable, "-m", "lmlab", "train", "arithmetic-lstm", "--steps=500", "--set=task.p=5"]
    command += ["--set=model.width=8", "--device=cpu"]
    primary, secondary = pty.openpty()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, cwd=here, env=environment, stdout=subprocess.PIPE, stderr=secondary)
    os.close(secondary)
    seen = b""
    try:
        while part := os.read(primary, 4096):
            seen += part
    except OSError:  # how Linux says that the other end has been closed
        pass
    out = process.stdout.read().decode()
    process.stdout.close()
    assert process.wait(60) == 0
    os.close(primary)
    assert "arithmetic-lstm" in seen.decode()
    assert re.search(r"[1-9]\d*/500 steps", seen.decode())
    assert "/500 steps" not in out
    assert "finished" in out


def test_a_real_process_is_silent_on_success_and_prints_one_document(here):
    command = [sys.executable, "-m", "lmlab", "train", "arithmetic-gpt", "--steps=2", "--set=task.p=5"]
    command += ["--set=model.width=8", "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["runs"][0]["status"] == "finished"
