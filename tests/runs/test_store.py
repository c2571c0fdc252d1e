"""The database of a lab: one transaction per write, one trainer per run, readers never in the way."""

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from lmlab.core.errors import LeaseLost, StoreError, UnknownName
from lmlab.runs.store import Claim, Metric, Store

A, B, C = "a" * 16, "ab" + "c" * 14, "f" * 16


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lab.sqlite"


@pytest.fixture
def store(path: Path):
    store = Store(path, create=True)
    yield store
    store.close()


@pytest.fixture
def other(store: Store):
    """The same database opened a second time, as by another process."""
    other = Store(store.path, create=False)
    yield other
    other.close()


def register(store: Store, *runs: str) -> None:
    store.register({"run": run, "label": "recipe", "seed": 0, "spec": {"of": run}, "total": 100} for run in runs)


def claim(store: Store, run: str, step: int = 0, session: float = 1.0) -> Claim:
    (claim,) = store.claim({run: step}, session=session, machine={"threads": 1})
    return claim


def row(step: int, value: float = 0.5, metric: str = "loss", split: str = "val", group: str = "all") -> Metric:
    return Metric(step, split, group, metric, value)


def expire(raw, path: Path, run: str) -> None:
    """As if the trainer of the run had died a while ago."""
    raw(path, "update runs set lease = ? where run = ?", time.time() - 1, run)


# --- the file --------------------------------------------------------------------------------------------------------


def test_write_ahead_log_synced_at_every_commit(store, path, raw):
    assert raw(path, "pragma journal_mode") == [("wal",)]
    for block in (store._reading, store._writing):  # a setting of each connection, so asked of the store's own
        with block() as connection:
            assert connection.exec_driver_sql("pragma synchronous").scalar_one() == 2  # FULL


def test_a_store_of_a_newer_version_is_refused_in_one_line(store, path, raw):
    store.close()
    raw(path, "update lab set value = '99' where key = 'schema'")
    for create in (True, False):
        with pytest.raises(StoreError, match=r"^the lab at .* was made by a newer lmlab \(store version 99.*Upgrade"):
            Store(path, create=create)


@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path, create):
    path.write_bytes(b"Dear diary, today I trained nothing.\n" * 200)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"lab\.sqlite cannot be used: file is not a database") as caught:
        Store(path, create=create)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_refused(path, raw):
    raw(path, "create table recipes (cake text)")
    with pytest.raises(StoreError, match="is not the database of a lab"):
        Store(path, create=False)


def test_a_missing_database_is_not_made_by_reading(path):
    with pytest.raises(StoreError, match="there is no lab at"):
        Store(path, create=False)
    assert not path.exists()


# --- registering -----------------------------------------------------------------------------------------------------


def test_registering_twice_keeps_the_first_row(store, path, raw):
    register(store, A, B)
    first = claim(store, A)
    store.append({A: first}, 3, [(A, row(3))])
    store.register([{"run": A, "label": "renamed", "seed": 7, "spec": {}, "total": 5}])
    assert raw(path, "select count(*) from runs") == [(2,)]
    (kept,) = store.runs([A])
    assert (kept.label, kept.seed, kept.total, kept.step, kept.status) == ("recipe", 0, 100, 3, "running")
    assert kept.spec == {"of": A}


def test_runs_come_in_the_order_asked_for(store):
    register(store, A, B, C)
    assert [found.run for found in store.runs()] == [A, B, C]
    assert [found.run for found in store.runs([C, "nobody", A])] == [C, A]


# --- claims ----------------------------------------------------------------------------------------------------------


def test_nobody_else_gets_a_run_while_its_lease_is_alive(store, other):
    register(store, A, B)
    claim(store, A)
    assert [won.run for won in other.claim({A: 0, B: 0}, session=2.0, machine={})] == [B]


def test_of_many_claimants_at_once_one_wins(store, path):
    register(store, A)
    won: list[Claim] = []
    start = threading.Barrier(8)

    def try_it() -> None:
        with closing(Store(path, create=False)) as mine:
            start.wait()
            won.extend(mine.claim({A: 0}, session=1.0, machine={}))

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_an_expired_claim_passes_on_and_its_first_holder_can_write_nothing(store, other, path, raw):
    register(store, A)
    first = claim(store, A)
    store.append({A: first}, 1, [(A, row(1))])
    expire(raw, path, A)
    second = claim(other, A, step=1)
    assert second.fence > first.fence
    before = raw(path, "select * from runs"), raw(path, "select * from metrics")
    for write in (
        lambda: store.append({A: first}, 2, [(A, row(2))]),
        lambda: store.renew([first], {A: 2}, 1.0),
        lambda: store.end(first, "finished", 100, 1.0),
    ):
        with pytest.raises(LeaseLost, match=f"run {A} was taken over"):
            write()
    assert (raw(path, "select * from runs"), raw(path, "select * from metrics")) == before
    other.append({A: second}, 2, [(A, row(2))])
    other.end(second, "finished", 100, 1.0)
    assert [found.step for found in store.metrics(A)] == [1, 2]


def test_one_lost_run_of_a_stack_keeps_the_whole_evaluation_out(store, other, path, raw):
    register(store, A, B)
    mine = {run: claim(store, run) for run in (A, B)}
    expire(raw, path, B)
    claim(other, B)
    with pytest.raises(LeaseLost):
        store.append(mine, 1, [(A, row(1)), (B, row(1))])
    assert store.metrics(A) == store.metrics(B) == []
    assert store.runs([A])[0].step == 0


def test_a_renewed_lease_lives_on_and_tells_how_far_the_run_is(store, other, path, raw):
    register(store, A)
    mine = claim(store, A)
    raw(path, "update runs set lease = ?", time.time() + 0.2)
    store.renew([mine], {A: 17}, 2.5)
    time.sleep(0.3)
    assert other.claim({A: 0}, session=2.0, machine={}) == []
    (seen,) = other.runs([A])
    assert (seen.step, seen.seconds, seen.state) == (17, 2.5, "running")


@pytest.mark.parametrize(("status", "again"), [("finished", 0), ("diverged", 0), ("interrupted", 1), ("failed", 1)])
def test_what_is_done_is_never_claimed_again_and_the_rest_at_once(store, status, again):
    register(store, A)
    store.end(claim(store, A), status, 40, 1.0, "a note")
    assert (store.runs([A])[0].status, store.runs([A])[0].note) == (status, "a note")
    assert len(store.claim({A: 0}, session=2.0, machine={})) == again


def test_an_ended_run_takes_no_more_rows(store):
    register(store, A)
    mine = claim(store, A)
    store.end(mine, "finished", 40, 1.0)
    with pytest.raises(LeaseLost):
        store.append({A: mine}, 41, [(A, row(41))])
    assert store.metrics(A) == []


# --- resuming --------------------------------------------------------------------------------------------------------


def test_claiming_from_step_k_removes_the_rows_after_k_and_no_others(store):
    register(store, A, B)
    for run in (A, B):
        mine = claim(store, run)
        for step in range(6):
            store.append({run: mine}, step, [(run, row(step)), (run, row(step, split="train"))])
        store.end(mine, "interrupted", 5, 2.0)
    claim(store, A, step=3)
    assert [found.step for found in store.metrics(A)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(store.metrics(B)) == 12
    (resumed,) = store.runs([A])
    assert (resumed.step, resumed.seconds) == (3, 2.0)


def test_claiming_from_the_start_removes_every_row_and_the_time_spent(store):
    register(store, A)
    mine = claim(store, A)
    store.append({A: mine}, 0, [(A, row(0))])
    store.end(mine, "interrupted", 0, 2.0)
    claim(store, A)
    assert store.metrics(A) == []
    assert store.runs([A])[0].seconds == 0


def test_rows_go_at_the_same_moment_as_the_run_is_claimed(store, path, raw):
    """A claim that cannot remove the rows takes nothing."""
    register(store, A)
    mine = claim(store, A)
    store.append({A: mine}, 5, [(A, row(5))])
    store.end(mine, "interrupted", 5, 0.0)
    raw(path, "create trigger no_deleting before delete on metrics begin select raise(abort, 'disk trouble'); end")
    with pytest.raises(StoreError, match="disk trouble"):
        claim(store, A, step=2)
    assert (store.runs([A])[0].status, store.runs([A])[0].step) == ("interrupted", 5)
    assert [found.step for found in store.metrics(A)] == [5]


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_a_number_cannot_be_kept_twice(store):
    register(store, A)
    mine = claim(store, A)
    store.append({A: mine}, 1, [(A, row(1, 0.25))])
    with pytest.raises(StoreError, match="UNIQUE"):
        store.append({A: mine}, 2, [(A, row(2, 0.5)), (A, row(1, 0.75))])
    assert store.metrics(A) == [row(1, 0.25)]
    assert store.runs([A])[0].step == 1


def test_an_evaluation_with_one_bad_number_leaves_none(store):
    register(store, A, B)
    mine = {run: claim(store, run) for run in (A, B)}
    with pytest.raises(StoreError, match="NOT NULL"):
        store.append(mine, 1, [(A, row(1)), (B, row(1)), (B, row(1, float("nan"), metric="accuracy"))])
    assert store.metrics(A) == store.metrics(B) == []


def test_metrics_curves_and_latest_give_back_what_was_written(store):
    register(store, A, B)
    written = {
        A: [
            row(step, value, metric, split, group)
            for step in (0, 1, 10)
            for metric, split, group, value in [
                ("accuracy", "train", "all", 0.1 * step),
                ("accuracy", "train", "binary", 1 / 3),
                ("accuracy", "val", "all", 0.01 * step),
                ("loss", "val", "all", 1e-300),
                ("norm", "run", "all", 12345.678901234567),
            ]
        ],
        B: [row(2, 0.5, "accuracy")],
    }
    for run, rows in written.items():
        mine = claim(store, run)
        for step in (10, 1, 0, 2):  # in any order
            store.append({run: mine}, step, [(run, one) for one in rows if one.step == step])
        assert sorted(store.metrics(run), key=str) == sorted(rows, key=str)
    assert [one.step for one in store.metrics(A)] == sorted(one.step for one in written[A])

    curves = store.curves([A])
    assert set(curves) == {(A, one.metric, one.split, one.group) for one in written[A]}
    assert curves[A, "accuracy", "train", "all"].steps.tolist() == [0, 1, 10]
    assert curves[A, "accuracy", "train", "all"].values.tolist() == [0.0, 0.1, 1.0]
    assert curves[A, "norm", "run", "all"].values.tolist() == [12345.678901234567] * 3
    assert set(store.curves([A, B], ["accuracy"])) == {key for key in curves if key[1] == "accuracy"} | {
        (B, "accuracy", "val", "all")
    }

    assert store.latest([A, B], "accuracy") == {(A, "train"): 1.0, (A, "val"): 0.1, (B, "val"): 0.5}
    assert store.latest([B], "norm") == {}


# --- readers and writers ---------------------------------------------------------------------------------------------


def test_a_reader_does_not_wait_for_an_open_write(store, path):
    register(store, A)
    mine = claim(store, A)
    store.append({A: mine}, 1, [(A, row(1))])
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("begin immediate")
        writer.execute("update runs set step = 99")
        writer.execute("delete from metrics")
        begun = time.monotonic()
        assert (store.runs([A])[0].step, store.metrics(A)) == (1, [row(1)])
        assert time.monotonic() - begun < 5
        writer.execute("commit")
    assert (store.runs([A])[0].step, store.metrics(A)) == (99, [])


def test_a_writer_does_not_wait_for_an_open_reader(store, path):
    register(store, A)
    mine = claim(store, A)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        assert reader.execute("select count(*) from metrics").fetchone() == (0,)
        store.append({A: mine}, 1, [(A, row(1))])
        assert reader.execute("select count(*) from metrics").fetchone() == (0,)  # its own moment in time
        reader.execute("commit")
        assert reader.execute("select count(*) from metrics").fetchone() == (1,)


def test_a_write_waits_for_another_write(store, path):
    register(store, A)
    mine = claim(store, A)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as writer:
        writer.execute("begin immediate")
        threading.Timer(0.3, writer.execute, ["commit"]).start()
        store.append({A: mine}, 1, [(A, row(1))])
    assert store.metrics(A) == [row(1)]


# --- names -----------------------------------------------------------------------------------------------------------


def test_a_run_is_found_by_id_and_by_a_unique_prefix(store):
    register(store, A, B, C)
    assert [store.resolve(name).run for name in (A, "aa", B, "ab", "f")] == [A, A, B, B, C]


def test_an_ambiguous_prefix_names_the_runs_it_could_be(store):
    register(store, A, B, C)
    with pytest.raises(StoreError, match=f"run 'a' is ambiguous: {A}, {B}. Type more of it."):
        store.resolve("a")


@pytest.mark.parametrize("name", ["b", "", A + "0"])
def test_an_unknown_run_is_refused(store, name):
    register(store, A, C)
    with pytest.raises(UnknownName, match="unknown run"):
        store.resolve(name)


def test_an_empty_lab_says_how_to_start(store):
    for name in ("latest", A):
        with pytest.raises(StoreError, match=r"has no runs yet\. Start with: lmlab train"):
            store.resolve(name)


def test_latest_is_the_run_started_last_and_of_several_seeds_the_first(store):
    register(store, A, B, C)
    first = claim(store, A, session=1.0)
    store.claim({B: 0, C: 0}, session=2.0, machine={})
    assert store.resolve("latest").run == B
    store.end(first, "interrupted", 5, 0.0)
    claim(store, A, session=3.0)  # gone on with, after the others were started
    assert store.resolve("latest").run == A


# --- the state a user sees -------------------------------------------------------------------------------------------


def test_a_run_whose_process_died_shows_as_interrupted(store, path, raw):
    register(store, A)
    assert store.runs()[0].state == "waiting"
    claim(store, A)
    assert store.runs()[0].state == "running"
    expire(raw, path, A)
    assert store.runs()[0].state == "interrupted"


def test_a_run_being_trained_is_not_deleted(store, other, path, raw):
    register(store, A, B)
    for run in (A, B):
        store.append({run: claim(store, run)}, 1, [(run, row(1))])
    with pytest.raises(StoreError, match=f"run {A} is being trained by"):
        other.delete(A)
    assert store.metrics(A) == [row(1)]
    expire(raw, path, A)
    other.delete(A)
    assert [found.run for found in store.runs()] == [B]
    assert raw(path, "select count(*) from metrics") == [(1,)]  # the other run's
