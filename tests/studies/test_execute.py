"""Runs trained and kept: once each, whatever happens to their neighbours, their files or their process."""

import os
import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lmlab.core.errors import LabError, LeaseLost
from lmlab.engine.stack import Snapshot
from lmlab.engine.train import Evaluation, train
from lmlab.runs.lab import Lab
from lmlab.runs.run import Run
from lmlab.studies.execute import Heartbeat, Recorder, execute
from lmlab.studies.session import specs_of
from lmlab.studies.study import studies

SMALL = {
    "task.p": 5,
    "model.width": 8,
    "training.steps": 12,
    "training.batch_size": 5,
    "training.eval_first": 2,
    "training.eval_period": 5,
    "training.checkpoint_period": 4,
}
EVALUATED = [0, 1, 2, 5, 10, 12]


def small(recipe: str = "arithmetic-lstm", seeds: tuple[int, ...] = (0,), **changes):
    return specs_of(recipe, seeds, {**SMALL, **{key.replace("__", "."): value for key, value in changes.items()}})


def stopping_after(calls: int):
    """A stop that is asked for at the given time of asking: after every step, and twice before the first."""
    count = iter(range(10**9))
    return lambda: next(count) >= calls


def weights(run: Run) -> dict[str, torch.Tensor]:
    return load_file(run.lab.path / "checkpoints" / run.id / f"{run.row.step:08d}.safetensors")


def assert_same(one: Run, other: Run) -> None:
    assert one.lab.store.metrics(one.id) == other.lab.store.metrics(other.id)
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


# --- once ------------------------------------------------------------------------------------------------------------


def test_a_whole_study_is_trained_and_a_second_time_nothing(lab, raw):
    study = replace(studies["demo"], base=SMALL, quick_base={})
    runs = execute(study.runs(), lab, device="cpu")
    assert [(run.row.label, run.seed, run.status, run.row.step) for run in runs] == [
        (recipe, seed, "finished", 12) for recipe in ("arithmetic-lstm", "arithmetic-gpt") for seed in (0, 42)
    ]
    for run in runs:
        assert run.curve("loss", "val").steps.tolist() == EVALUATED
        assert [path.name for path in sorted(lab.checkpoints(run.id).folder.iterdir())] == [
            "00000012.json",
            "00000012.safetensors",
        ]
    before = raw(lab.path, "select * from runs"), raw(lab.path, "select * from metrics")
    again = execute(study.runs(), lab, device="cpu")
    assert [run.id for run in again] == [run.id for run in runs]
    assert (raw(lab.path, "select * from runs"), raw(lab.path, "select * from metrics")) == before


def test_two_studies_share_the_run_they_have_in_common(lab, raw):
    (label, spec), *_ = small(seeds=(0, 1))
    execute([(label, spec)], lab, device="cpu")
    execute(small(seeds=(0, 1)), lab, device="cpu")
    assert raw(lab.path, "select fence from runs") == [(1,), (1,)]


def test_a_stacked_group_gives_the_same_numbers_as_one_by_one(lab, tmp_path):
    runs = small("arithmetic-gpt", seeds=(0, 1), model__dropout=0.1) + small("arithmetic-gpt", training__lr=0.01)
    alone = execute(runs, lab, device="cpu")
    stacked = execute(runs, Lab(tmp_path / "stacked", create=True), device="cpu", strategy="stacked")
    for one, other in zip(alone, stacked, strict=True):
        assert (one.row.machine["strategy"], other.row.machine["strategy"]) == ("loop", "stacked")
        expected = [row.value for row in one.lab.store.metrics(one.id)]
        assert [row.value for row in other.lab.store.metrics(other.id)] == pytest.approx(expected, rel=1e-3, abs=1e-5)


# --- runs that go wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "stacked"])
def test_a_diverged_run_says_where_and_its_neighbours_finish(lab, strategy):
    runs = small() + small(training__lr=1e30) + small(training__lr=0.01)
    before, diverged, after = execute(runs, lab, device="cpu", strategy=strategy)
    assert (before.status, after.status) == ("finished", "finished")
    assert diverged.status == "diverged"
    assert 0 < diverged.row.step < 12
    assert diverged.row.note == f"not finite at step {diverged.row.step}"
    assert diverged.curve("loss", "train").steps.max() < diverged.row.step
    # It is done: another time it is not tried again.
    assert execute(runs, lab, device="cpu")[1].row == diverged.row


def test_a_failed_run_keeps_its_reason_lets_the_others_finish_and_can_be_tried_again(lab):
    runs = small(seeds=(0, 1))
    broken = lab.path / "checkpoints" / runs[0][1].run_id
    broken.parent.mkdir()
    broken.write_text("in the way of the folder")
    with pytest.raises(LabError, match=f"1 of 2 runs failed; run {broken.name}: FileExistsError") as caught:
        execute(runs, lab, device="cpu")
    assert "\n" not in str(caught.value)
    failed, other = lab.runs()
    assert (failed.status, other.status) == ("failed", "finished")
    assert "FileExistsError" in failed.row.note
    broken.unlink()
    assert [(run.status, run.row.note) for run in execute(runs, lab, device="cpu")] == [("finished", "")] * 2


# --- stopping and going on -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", ["arithmetic-lstm", "arithmetic-gpt"])
@pytest.mark.parametrize("strategy", ["loop", "stacked"])
def test_stopped_anywhere_and_gone_on_with_equals_uninterrupted(recipe, strategy, lab, tmp_path):
    runs = small(recipe, seeds=(0, 1), model__dropout=0.3, training__warmup=3)
    whole = execute(runs, Lab(tmp_path / "whole", create=True), device="cpu", strategy=strategy)
    seen = set()
    for _ in range(30):
        stopped = execute(runs, lab, device="cpu", strategy=strategy, stop=stopping_after(5))
        seen |= {(run.status, run.row.step) for run in stopped}
        if all(run.status == "finished" for run in stopped):
            break
    assert len(seen) > 3  # it was stopped at several steps on the way
    for one, other in zip(stopped, whole, strict=True):
        assert_same(one, other)


def test_a_run_that_died_before_its_first_checkpoint_starts_over(lab, tmp_path, raw):
    runs = small()
    lab.register(runs)
    (claim,) = lab.store.claim({runs[0][1].run_id: 0}, session=1.0, machine={})
    recorder = Recorder(lab, {runs[0][1].run_id: runs[0][1]}, {claim.run: claim})
    for record in train([runs[0][1]], device="cpu"):
        if isinstance(record, Snapshot):
            break
        if isinstance(record, Evaluation):
            recorder.take(record)
    assert len(lab.store.metrics(claim.run)) > 0
    raw(lab.path, "update runs set lease = 0")
    (again,) = execute(runs, lab, device="cpu")
    assert_same(again, execute(runs, Lab(tmp_path / "whole", create=True), device="cpu")[0])


def test_a_damaged_newest_checkpoint_costs_only_the_way_from_the_one_before(lab, tmp_path):
    runs = small("arithmetic-gpt", training__keep_last=2)
    (stopped,) = execute(runs, lab, device="cpu", stop=stopping_after(12))
    newest = max(lab.checkpoints(stopped.id).folder.glob("*.safetensors"))
    assert stopped.status == "interrupted"
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    (run,) = execute(runs, lab, device="cpu")
    assert_same(run, execute(runs, Lab(tmp_path / "whole", create=True), device="cpu")[0])


def test_threads_of_the_first_part_are_used_for_the_second(lab, raw):
    runs = small()
    execute(runs, lab, device="cpu", stop=stopping_after(8))
    raw(lab.path, "update runs set machine = json_set(machine, '$.threads', 2)")
    try:
        (run,) = execute(runs, lab, device="cpu")
        assert run.status == "finished"
        assert run.row.machine["threads"] == 2
    finally:
        torch.set_num_threads(1)


def test_the_strategy_of_the_first_part_is_used_for_the_second(lab, tmp_path):
    runs = small("arithmetic-gpt")
    execute(runs, lab, device="cpu", strategy="stacked", stop=stopping_after(8))
    (run,) = execute(runs, lab, device="cpu")
    assert (run.status, run.row.machine["strategy"]) == ("finished", "stacked")
    assert_same(run, execute(runs, Lab(tmp_path / "whole", create=True), device="cpu", strategy="stacked")[0])


def test_what_an_interrupted_write_left_is_cleared_away(lab):
    runs = small()
    (stopped,) = execute(runs, lab, device="cpu", stop=stopping_after(8))
    folder = lab.checkpoints(stopped.id).folder
    (folder / "00000009.safetensors.tmp").write_bytes(b"half a checkpo")
    (folder / "00000009.safetensors").write_bytes(b"without its JSON")
    execute(runs, lab, device="cpu")
    assert [path.name for path in sorted(folder.iterdir())] == ["00000012.json", "00000012.safetensors"]


def test_the_checkpoint_with_the_lowest_validation_loss_can_be_kept(lab):
    """This one memorises and gets worse at what it has not seen."""
    changes = {"task__p": 7, "model__width": 16, "training__batch_size": 64, "training__steps": 160}
    periods = {"training__checkpoint_period": 20, "training__eval_period": 20, "training__keep_best": True}
    (run,) = execute(small("arithmetic-gpt", training__lr=0.003, **changes, **periods), lab, device="cpu")
    curve = run.curve("loss", "val")
    saved = {int(step): value for step, value in zip(curve.steps, curve.values, strict=True) if step and step % 20 == 0}
    best = min(saved, key=saved.__getitem__)
    assert best < 160
    assert [entry.step for entry in lab.checkpoints(run.id).entries()] == [best, 160]
    assert run.model(best) is not None


# --- leases ----------------------------------------------------------------------------------------------------------


def test_a_heartbeat_keeps_the_lease_while_a_step_takes_long(lab, raw):
    runs = small()
    lab.register(runs)
    claims = lab.store.claim({runs[0][1].run_id: 0}, session=1.0, machine={})
    recorder = Recorder(lab, {runs[0][1].run_id: runs[0][1]}, {claims[0].run: claims[0]})
    raw(lab.path, "update runs set lease = ?", time.time() + 5)
    with Heartbeat(lab, recorder, parent=0):
        time.sleep(1.3)  # a compilation, say
    ((lease, seconds),) = raw(lab.path, "select lease, seconds from runs")
    assert lease > time.time() + 30
    assert 0.9 < seconds < 1.4


def test_who_lost_a_run_leaves_no_checkpoint_of_it(lab, raw):
    """Its step may be further than the metrics of who trains the run now."""
    ((_, spec),) = runs = small()
    lab.register(runs)
    (lost,) = lab.store.claim({spec.run_id: 0}, session=1.0, machine={})
    raw(lab.path, "update runs set lease = 0")
    lab.store.claim({spec.run_id: 0}, session=2.0, machine={})
    recorder = Recorder(lab, {spec.run_id: spec}, {spec.run_id: lost})
    with pytest.raises(LeaseLost):
        recorder.take(Snapshot(spec.run_id, 7, {"w": torch.zeros(1)}, {}))
    assert lab.checkpoints(spec.run_id).entries() == []


def test_a_run_taken_over_is_left_to_its_new_owner(lab, tmp_path, raw):
    """The first process wakes up after its lease has gone, drops the run, and waits for the other to finish it."""
    ((_, spec),) = runs = small(training__steps=60)
    asleep, taken = threading.Event(), threading.Event()

    def sleepy() -> bool:
        """Asked after every step: falls asleep after a few, like a laptop with its lid closed."""
        if lab.runs() and lab.runs()[0].row.step >= 2 and not taken.is_set():
            asleep.set()
            taken.wait(30)
        return False

    first = threading.Thread(target=execute, args=(runs, lab), kwargs={"device": "cpu", "stop": sleepy}, daemon=True)
    first.start()
    assert asleep.wait(30)
    other, claims = Lab(lab.path), []
    while not claims:  # its heart still beats, once a second
        raw(lab.path, "update runs set lease = 0")
        claims = other.store.claim({spec.run_id: 0}, session=5.0, machine={})
    taken.set()
    time.sleep(0.2)
    assert other.store.metrics(spec.run_id) == []  # nothing of the first has come through
    other.store.end(claims[0], "interrupted", 0, 0.0)
    first.join(60)
    (run,) = lab.runs()
    assert run.status == "finished"
    assert_same(run, execute(runs, Lab(tmp_path / "whole", create=True), device="cpu")[0])


# --- several processes -----------------------------------------------------------------------------------------------


def trainers(lab: Path) -> set[int]:
    """The processes that trained, or train, the runs of a lab."""
    with closing(sqlite3.connect(lab / "lab.sqlite")) as connection:
        owners = connection.execute("select owner from runs where owner != ''").fetchall()
    return {int(owner.split(":")[1]) for (owner,) in owners}


TRAIN = """
import sys
from lmlab.studies.session import specs_of, train_runs
seeds, overrides, lab = range(int(sys.argv[1])), eval(sys.argv[2]), sys.argv[3]
runs = specs_of("arithmetic-lstm", seeds, overrides)
print("ready", flush=True)
sys.stdin.readline()
print([run.status for run in train_runs(runs, lab, "cpu")])
"""


def test_two_processes_share_a_study_and_train_no_run_twice(tmp_path, start, raw):
    lab, settings = tmp_path / "lab", {**SMALL, "training.steps": 60, "training.eval_period": 2}
    crew = [start(8, settings, lab, program=("-c", TRAIN), stdin=-1) for _ in range(2)]
    assert [process.stdout.readline() for process in crew] == ["ready\n"] * 2
    for process in crew:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in crew:
        out, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
        assert eval(out) == ["finished"] * 8  # who had no more to do waited for the other
    assert raw(lab, "select fence, count(*) from runs group by fence") == [(1, 8)]
    assert trainers(lab) == {process.pid for process in crew}
    (alone,) = execute(
        small(training__steps=60, training__eval_period=2), Lab(tmp_path / "alone", create=True), device="cpu"
    )
    expected = [(row.step, row.split, row.metric) for row in alone.lab.store.metrics(alone.id)]
    for run in Lab(lab).runs():
        assert [(row.step, row.split, row.metric) for row in run.lab.store.metrics(run.id)] == expected
    assert Lab(lab).store.metrics(alone.id) == alone.lab.store.metrics(alone.id)


def test_worker_processes_train_all_runs(lab, raw):
    runs = execute(small(seeds=(0, 1, 2)), lab, device="cpu", workers=2)
    assert [(run.status, run.row.step) for run in runs] == [("finished", 12)] * 3
    assert [run.curve("loss", "val").steps.tolist() for run in runs] == [EVALUATED] * 3
    assert os.getpid() not in trainers(lab.path)
    assert raw(lab.path, "select distinct fence from runs") == [(1,)]
    assert lab.run("latest").id == runs[0].id


def test_a_failure_in_a_worker_is_told_in_one_line(lab):
    runs = small(seeds=(0, 1))
    broken = lab.path / "checkpoints" / runs[0][1].run_id
    broken.parent.mkdir()
    broken.write_text("in the way of the folder")
    with pytest.raises(LabError, match=f"^1 of 2 runs failed; run {broken.name}: FileExistsError"):
        execute(runs, lab, device="cpu", workers=2)
    assert [run.status for run in lab.runs()] == ["failed", "finished"]


DELEGATE = """
import sys
from lmlab.runs.lab import Lab
from lmlab.studies.execute import execute
from lmlab.studies.session import specs_of
execute(specs_of("arithmetic-lstm", (0, 1), eval(sys.argv[1])), Lab(sys.argv[2], create=True), workers=2)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_workers_do_not_outlive_a_killed_command(tmp_path, start, wait_for):
    settings = {**SMALL, "training.steps": 10**6, "training.eval_period": 1000}
    lab = tmp_path / "lab"
    command = start(settings, lab, program=("-c", DELEGATE))
    wait_for(lambda: len(list(lab.glob("checkpoints/*"))) == 2)  # both are at work
    workers = trainers(lab)
    assert all(map(alive, workers))
    command.send_signal(signal.SIGKILL)
    command.wait()
    try:
        wait_for(lambda: not any(map(alive, workers)), seconds=20)
    finally:
        for pid in filter(alive, workers):
            os.kill(pid, signal.SIGKILL)


# --- leftovers and the dead ------------------------------------------------------------------------------------------


def test_checkpoints_whose_metrics_are_gone_are_not_gone_on_from(lab, tmp_path):
    """A row was deleted and its checkpoints were not, as by a crash in between: the run starts over."""
    runs = small()
    (stopped,) = execute(runs, lab, device="cpu", stop=stopping_after(9))
    assert stopped.status == "interrupted"
    lab.store.delete(stopped.id)
    (again,) = execute(runs, lab, device="cpu")
    assert_same(again, execute(runs, Lab(tmp_path / "whole", create=True), device="cpu")[0])


def test_a_run_deleted_while_others_train_is_left_out(lab):
    first, second = small(seeds=(0, 1))
    deleted = threading.Event()

    def delete_the_second() -> bool:
        if not deleted.is_set():
            lab.delete(second[1].run_id)
            deleted.set()
        return False

    done = execute([first, second], lab, device="cpu", stop=delete_the_second)
    assert [run.id for run in done] == [first[1].run_id]
    assert done[0].status == "finished"


def test_the_runs_of_a_dead_process_are_taken_over_at_once(lab, start):
    """No need to wait for the lease of a process that is known to be gone."""
    options = [f"--set={key}={value}" for key, value in SMALL.items() if key != "training.steps"]
    process = start("train", "arithmetic-lstm", "--steps=100000", *options, "--device=cpu", "--lab", lab.path)
    while not (lab.runs() and lab.runs()[0].row.step > 4):
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    (left,) = lab.runs()
    assert left.row.status == "running"
    assert left.row.lease > time.time()
    (run,) = execute([(left.row.label, left.spec)], lab, device="cpu", stop=stopping_after(3))
    assert run.status == "interrupted"
