"""`lmlab runs …`"""

import csv
import io
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from lmlab.runs.lab import Lab

EXTREMA = {
    "loss_train", "loss_val", "accuracy_train", "accuracy_val",
    "t_loss_train", "t_loss_val", "t_accuracy_train", "t_accuracy_val",
    "delay_loss", "delay_accuracy",
}  # fmt: skip


@pytest.fixture
def ids(trained) -> list[str]:
    return [run.id for run in Lab(trained).runs()]


def test_list(lmlab, trained, ids):
    runs = lmlab("runs", "list", "--lab", trained, "--json").json["runs"]
    assert [run["run"] for run in runs] == ids
    assert [(run["label"], run["seed"], run["status"], run["steps"]) for run in runs] == [
        ("arithmetic-lstm", 0, "finished", 12),
        ("arithmetic-lstm", 42, "finished", 12),
        ("arithmetic-gpt", 0, "finished", 12),
    ]
    shown = lmlab("runs", "list", "--lab", trained)
    assert (shown.status, shown.err) == (0, "")
    assert all(run in shown.out for run in ids)


def test_list_without_a_lab_is_empty_and_makes_none(lmlab, here):
    assert lmlab("runs", "list", "--json").json == {"runs": []}
    assert "No runs yet. Start with: lmlab train" in lmlab("runs", "list").out
    assert list(here.iterdir()) == []


def test_show(lmlab, trained, ids):
    shown = lmlab("runs", "show", ids[1][:7], "--lab", trained, "--json").json
    run = Lab(trained).run(ids[1])
    assert (shown["run"], shown["status"], shown["steps"]) == (ids[1], "finished", 12)
    assert shown["spec"] == run.spec.to_json()
    assert shown["extrema"].keys() == EXTREMA
    assert shown["extrema"] == run.extrema()
    assert shown["extrema"]["delay_loss"] == shown["extrema"]["t_loss_val"] - shown["extrema"]["t_loss_train"]


def test_show_up_to_a_step(lmlab, trained, ids):
    limited = lmlab("runs", "show", ids[0], "--limit=2", "--lab", trained, "--json").json["extrema"]
    assert limited == Lab(trained).run(ids[0]).extrema(2)
    assert max(value for name, value in limited.items() if name.startswith("t_")) <= 2


def test_latest_is_the_run_started_last_and_of_several_seeds_the_first(lmlab, small, trained, ids):
    assert lmlab("runs", "show", "latest", "--lab", trained, "--json").json["run"] == ids[2]
    seeds = [run["run"] for run in small("arithmetic-lstm", "--seeds=5,3,4", "--json").json["runs"]]
    assert lmlab("runs", "show", "latest", "--json").json["run"] == seeds[0]


def test_metrics(lmlab, trained, ids):
    rows = lmlab("runs", "metrics", ids[0], "--lab", trained, "--json").json["rows"]
    assert all(row.keys() == {"step", "split", "group", "metric", "value"} for row in rows)
    assert [tuple(row.values()) for row in rows] == [
        tuple(vars(row).values()) for row in Lab(trained).store.metrics(ids[0])
    ]
    assert sorted({row["step"] for row in rows}) == [0, 1, 2, 5, 10, 12]


def test_metrics_for_a_spreadsheet(lmlab, trained, ids):
    rows = lmlab("runs", "metrics", ids[0], "--lab", trained, "--json").json["rows"]
    table = list(csv.DictReader(io.StringIO(lmlab("runs", "metrics", ids[0], "--lab", trained).out)))
    assert [{**row, "step": int(row["step"]), "value": float(row["value"])} for row in table] == rows


def test_compare(lmlab, trained, ids):
    seeds = lmlab("runs", "compare", *ids[:2], "--lab", trained, "--json").json["runs"]
    assert [run["run"] for run in seeds] == ids[:2]
    names = {f"seeds.{name}" for name in ("split", "init", "order", "dropout")}
    assert [run["differs"] for run in seeds] == [dict.fromkeys(names, 0), dict.fromkeys(names, 42)]
    assert [run["extrema"] for run in seeds] == [Lab(trained).run(run).extrema() for run in ids[:2]]
    models = lmlab("runs", "compare", ids[0], "latest", "--lab", trained, "--json").json["runs"]
    assert [run["differs"]["model.name"] for run in models] == ["lstm", "gpt"]
    assert [run["differs"]["task.fraction"] for run in models] == [0.5, 1]
    shown = lmlab("runs", "compare", *ids, "--lab", trained)
    assert (shown.status, shown.err) == (0, "")
    assert "model.name" in shown.out


def test_comparing_a_run_with_itself_is_refused(lmlab, trained, ids):
    for names in ([ids[0]], [ids[0], ids[0][:9]]):
        outcome = lmlab("runs", "compare", *names, "--lab", trained)
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err.startswith("error: RUN must be at least two different runs")


def test_delete(lmlab, small, here):
    first, second = (run["run"] for run in small("arithmetic-gpt", "--seeds=0,1", "--json").json["runs"])
    assert lmlab("runs", "delete", first[:10], "--json").json == {"deleted": first}
    assert [run["run"] for run in lmlab("runs", "list", "--json").json["runs"]] == [second]
    assert [path.name for path in (here / "lab" / "checkpoints").iterdir()] == [second]
    # Trained anew, it is there again.
    assert [run["status"] for run in small("arithmetic-gpt", "--seeds=0", "--json").json["runs"]] == ["finished"]
    assert len(lmlab("runs", "list", "--json").json["runs"]) == 2


def test_a_run_that_is_being_trained_is_not_deleted(lmlab, small, here):
    run = small("arithmetic-lstm", "--json").json["runs"][0]["run"]
    with closing(sqlite3.connect(here / "lab" / "lab.sqlite")) as connection, connection:
        connection.execute("update runs set status = 'running', lease = ?, owner = 'desk:7'", [time.time() + 60])
    assert lmlab("runs", "list", "--json").json["runs"][0]["status"] == "running"
    outcome = lmlab("runs", "delete", run)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == f"error: run {run} is being trained by desk:7. Stop it before deleting it.\n"
    assert (here / "lab" / "checkpoints" / run).is_dir()


def test_a_run_whose_process_died_is_listed_as_interrupted(lmlab, small, here):
    small("arithmetic-lstm")
    with closing(sqlite3.connect(here / "lab" / "lab.sqlite")) as connection, connection:
        connection.execute("update runs set status = 'running', lease = 1")
    assert lmlab("runs", "list", "--json").json["runs"][0]["status"] == "interrupted"


def test_a_reader_that_has_seen_enough_hears_no_complaint(trained):
    """`lmlab runs metrics RUN | head -0`"""
    command = [sys.executable, "-m", "lmlab", "runs", "metrics", "latest", "--lab", str(trained)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ})
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(60)
