"""Whatever is wrong with the input: one line that says so, exit status 2, and nothing written."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
import torch

from lmlab import __version__
from lmlab.runs.lab import Lab

TRAIN = ("train", "arithmetic-gpt", "--device=cpu")
no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")


def complaint(outcome) -> str:
    """The one line of a refused command, without its `error: `."""
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert outcome.err.endswith("\n")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    return outcome.err.removeprefix("error: ").strip()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        # names
        (["train", "arithmetic-gtp"], "unknown recipe 'arithmetic-gtp'. Did you mean arithmetic-gpt"),
        (["cost", "lstm"], "unknown recipe 'lstm'. Known: arithmetic-gpt, arithmetic-lstm"),
        (["study", "run", "sanitty"], "unknown study 'sanitty'. Did you mean sanity?"),
        (["study", "show", "x"], "unknown study 'x'. Known: "),
        (["study", "status", "dem"], "Did you mean demo?"),
        (["study", "report", "demos"], "Did you mean demo?"),
        ([*TRAIN, "--set=model.widht=8"], "unknown field of model 'widht'. Did you mean width?"),
        ([*TRAIN, "--set=modle.width=8"], "unknown section 'modle'. Did you mean model?"),
        ([*TRAIN, "--set=model.name=gtp"], "Did you mean gpt"),
        (["bogus"], "No such command 'bogus'"),
        (["runs", "lits"], "No such command 'lits'"),
        ([*TRAIN, "--bogus"], "No such option: --bogus"),
        (["train"], "Missing argument 'RECIPE'"),
        (["train", "arithmetic-gpt", "arithmetic-lstm"], "unexpected extra argument"),
        # types
        ([*TRAIN, "--set=model.width"], "--set takes key.path=value; got 'model.width'. Example: --set model.width=64"),
        ([*TRAIN, "--set==8"], "--set takes key.path=value"),
        ([*TRAIN, "--set=width=8"], "width must be a section and a field"),
        ([*TRAIN, "--set=model.width=wide"], "model.width must be a valid integer; got 'wide'."),
        ([*TRAIN, "--set=model.width=8.5"], "model.width must be"),
        ([*TRAIN, "--set=model.bias=maybe"], "model.bias must be a valid boolean; got 'maybe'."),
        ([*TRAIN, "--set=training.lr=NaN"], "training.lr must be"),
        ([*TRAIN, "--set=training.lr=[1]"], "training.lr must be a valid number; got [1]."),
        ([*TRAIN, "--set=task.operator=%"], "task.operator must be"),
        ([*TRAIN, "--set=training.optimizer=adams"], "training.optimizer must be"),
        ([*TRAIN, "--steps=many"], "Invalid value for '--steps'"),
        ([*TRAIN, "--precision=fp8"], "training.precision must be"),
        # ranges
        ([*TRAIN, "--set=task.p=1"], "task.p must be between 2 and 1000; got 1."),
        ([*TRAIN, "--set=task.p=-3"], "task.p must be between 2 and 1000; got -3."),
        ([*TRAIN, "--set=task.fraction=0"], "task.fraction must be above 0 and at most 1; got 0"),
        ([*TRAIN, "--set=task.fraction=1.01"], "task.fraction must be above 0 and at most 1; got 1.01."),
        ([*TRAIN, "--set=task.fraction=-0.5"], "task.fraction must be above 0 and at most 1; got -0.5."),
        ([*TRAIN, "--set=task.p=3", "--set=task.fraction=0.05"], "task.fraction leaves nothing to train on: 0 of 9"),
        ([*TRAIN, "--set=task.p=3", "--set=task.fraction=0.95"], "task.fraction leaves nothing to validate on: 9 of 9"),
        (
            [*TRAIN, "--set=model.width=130"],
            "model.width must be a multiple of model.heads (4); got 130. Try 128 or 132",
        ),
        ([*TRAIN, "--set=model.heads=0"], "model.heads must be between 1 and"),
        ([*TRAIN, "--set=model.layers=0"], "model.layers must be between 1 and"),
        ([*TRAIN, "--set=model.dropout=1"], "model.dropout must be"),
        ([*TRAIN, "--steps=0"], "training.steps must be between 1 and"),
        ([*TRAIN, "--steps=-5"], "training.steps must be between 1 and"),
        ([*TRAIN, "--set=training.lr=-1"], "training.lr must be"),
        ([*TRAIN, "--set=training.drop_last=true"], "training.batch_size must be at most the training set"),
        (["cost", "arithmetic-gpt", "--tokens=0"], "--tokens must be between 1 and"),
        # seeds
        (
            [*TRAIN, "--seeds=zero"],
            "--seeds must be whole numbers separated by commas; got 'zero'. Example: --seeds 0,42",
        ),
        ([*TRAIN, "--seeds="], "--seeds must be whole numbers"),
        ([*TRAIN, "--seeds=1;2"], "--seeds must be whole numbers"),
        ([*TRAIN, "--seeds=1,1"], "--seeds must not name a seed twice"),
        ([*TRAIN, "--seeds=-1"], "must be between 0 and 2⁶³ − 1; got -1."),
        ([*TRAIN, "--seeds=9223372036854775808"], "must be between 0 and 2⁶³ − 1"),
        (["study", "run", "demo", "--quick", "--seeds=a"], "--seeds must be whole numbers"),
        # devices
        (["train", "arithmetic-gpt", "--device=tpu"], "--device must be auto, cpu or cuda; got 'tpu'."),
        (["study", "run", "demo", "--quick", "--device=tpu"], "--device must be auto, cpu or cuda; got 'tpu'."),
        pytest.param(["train", "arithmetic-gpt", "--device=cuda"], "--device needs a CUDA device", marks=no_gpu),
        ([*TRAIN, "--precision=tf32"], "training.precision tf32 needs a CUDA device; got 'tf32'. Use fp32 on a CPU."),
        # labs that are not there
        (["resume", "latest"], "there is no lab at lab. Train something first, or give another with --lab."),
        (["runs", "show", "latest"], "there is no lab at lab."),
        (["runs", "metrics", "abc"], "there is no lab at lab."),
        (["runs", "compare", "a", "b"], "there is no lab at lab."),
        (["runs", "delete", "latest"], "there is no lab at lab."),
        (["study", "report", "demo", "--quick"], "there is no lab at lab."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_refused_in_one_line_and_leaves_nothing_behind(lmlab, here, arguments, said):
    assert said in complaint(lmlab(*arguments))
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [TRAIN, ("resume", "latest"), ("runs", "list"), ("runs", "show", "latest"), ("study", "run", "demo", "--quick"),
     ("study", "status", "demo"), ("study", "show", "demo"), ("study", "report", "demo")],
)  # fmt: skip
def test_a_lab_that_is_a_file(lmlab, here, arguments):
    (here / "notes").write_text("mine")
    assert "the lab must be a folder; notes is a file." in complaint(lmlab(*arguments, "--lab", "notes"))
    assert (here / "notes").read_text() == "mine"


@pytest.mark.parametrize("arguments", [TRAIN, ("runs", "list"), ("study", "status", "demo"), ("resume", "latest")])
def test_a_lab_of_a_newer_version(lmlab, here, arguments):
    Lab(here / "lab", create=True).store.close()
    with closing(sqlite3.connect(here / "lab" / "lab.sqlite")) as connection, connection:
        connection.execute("update lab set value = '2'")
    said = complaint(lmlab(*arguments))
    assert said.startswith("the lab at lab was made by a newer lmlab (store version 2")
    assert "Upgrade lmlab or use another --lab." in said
    with closing(sqlite3.connect(here / "lab" / "lab.sqlite")) as connection:
        assert connection.execute("select count(*) from runs").fetchone() == (0,)


@pytest.mark.parametrize("arguments", [TRAIN, ("runs", "list"), ("resume", "latest")])
def test_a_database_that_is_none(lmlab, here, arguments):
    (here / "lab").mkdir()
    (here / "lab" / "lab.sqlite").write_text("no database at all\n" * 100)
    assert "cannot be used: file is not a database" in complaint(lmlab(*arguments))
    assert (here / "lab" / "lab.sqlite").read_text() == "no database at all\n" * 100


@pytest.mark.parametrize("command", [["resume"], ["runs", "show"], ["runs", "metrics"], ["runs", "delete"]])
def test_runs_that_are_unknown_or_ambiguous(lmlab, here, command):
    lab = Lab(here / "lab", create=True)
    names = ["abcd0000" * 2, "abce1111" * 2]
    lab.store.register({"run": name, "label": "x", "seed": 0, "spec": {}, "total": 1} for name in names)
    said = complaint(lmlab(*command, "abc"))
    assert said == f"run 'abc' is ambiguous: {names[0]}, {names[1]}. Type more of it."
    assert complaint(lmlab(*command, "abcd0001")).startswith(f"unknown run 'abcd0001'. Did you mean {names[0]}")
    assert complaint(lmlab(*command, "zzz")).startswith("unknown run 'zzz'. Known: ")
    assert [row.run for row in lab.store.runs()] == names


def test_a_real_process_says_one_line_too(here):
    command = [sys.executable, "-m", "lmlab", "train", "arithmetic-gpt", "--set", "task.p=1"]
    done = subprocess.run(command, cwd=here, env={**os.environ}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: task.p must be between 2 and 1000; got 1. Try 31.\n"
    assert list(here.iterdir()) == []


# --- asking for help is not an error ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], ["study"], ["runs"]])
def test_without_a_command_the_commands_are_listed(lmlab, command):
    outcome = lmlab(*command)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"Usage: {' '.join(['lmlab', *command])} ")
    assert outcome.err == lmlab(*command, "--help").out


@pytest.mark.parametrize("command", [[], ["train"], ["study", "run"], ["runs", "compare"]])
def test_help(lmlab, command):
    outcome = lmlab(*command, "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert f"Usage: {' '.join(['lmlab', *command])}" in outcome.out


def test_version(lmlab):
    assert lmlab("--version").out == f"{__version__}\n"
