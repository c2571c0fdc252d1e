"""Trains what is left of a list of runs and keeps it: claims, records, checkpoints, workers.

On a CPU the runs go one by one, and when there is enough to do, to one worker process per core; workers share the
work through claims in the store, exactly as two users on one lab would. On CUDA whole groups go as stacks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from lmlab.core.device import machine, resolve_device, resolve_precision
from lmlab.core.errors import LabError, LeaseLost
from lmlab.engine.spec import RunSpec
from lmlab.engine.stack import Snapshot
from lmlab.engine.strategies import Strategy, resolve_strategy
from lmlab.engine.train import Ended, Evaluation, Record, Tick, never, train
from lmlab.runs.lab import Lab
from lmlab.runs.run import Run
from lmlab.runs.store import LEASE_SECONDS, Claim, Metric
from lmlab.studies.plan import WORTH_A_WORKER, plan, work
from lmlab.studies.study import Labelled

HEARTBEAT_SECONDS = 1.0
WORTH_A_THREAD = 1e9
"""Floating-point operations of a step below which one thread is as fast as several, and leaves the others alone."""
POLL_SECONDS = 0.5

Watch = Callable[[Lab, Sequence[str]], AbstractContextManager[None]]


def unwatched(_lab: Lab, _runs: Sequence[str]) -> AbstractContextManager[None]:
    return nullcontext()


def check(runs: Sequence[Labelled], device: str = "auto") -> None:
    """Refuse what cannot be trained, before anything is written."""
    place = resolve_device(device)
    for _, spec in runs:
        resolve_precision(spec.training.precision, place)
        spec.batches_per_epoch(len(spec.task.split(spec.seeds.split).train_rows))


def execute(
    runs: Sequence[Labelled],
    lab: Lab,
    *,
    device: str = "auto",
    strategy: Strategy = "auto",
    workers: int = 0,
    stop: Callable[[], bool] = never,
    watch: Watch = unwatched,
) -> list[Run]:
    """Train every run that is not done, resuming what was begun; returns all of them, done before or now.

    workers: processes on a CPU; 0 chooses by the work there is. watch: what looks on meanwhile (a progress bar).
    """
    check(runs, device)
    place = resolve_device(device)
    lab.register(runs)
    left = [spec for group in plan(runs, lab, place, strategy).groups for spec in group]
    if not workers:
        workers = _useful_workers(left) if place.type == "cpu" and strategy == "auto" else 1
    session = time.time()
    with watch(lab, [spec.run_id for _, spec in runs]):
        if workers > 1:
            _delegate(runs, lab, workers, session, stop)
        else:
            train_claimed(runs, lab, device, strategy, session, stop)
    return lab.runs([spec.run_id for _, spec in runs])


def train_claimed(
    runs: Sequence[Labelled],
    lab: Lab,
    device: str,
    strategy: Strategy,
    session: float,
    stop: Callable[[], bool],
    parent: int = 0,
) -> None:
    """Claim and train group after group in this process until all runs are done, here or elsewhere."""
    place = resolve_device(device)
    failures: dict[str, str] = {}
    threads = torch.get_num_threads()
    while not stop():
        known = {row.run for row in lab.store.runs()} - failures.keys()  # a run may be deleted while others are trained
        planned = plan(runs, lab, place, strategy).groups
        groups = [own for group in planned if (own := [spec for spec in group if spec.run_id in known])]
        if not groups:
            break
        if not any(
            _train_group(group, lab, device, strategy, session, stop, failures, parent, threads) for group in groups
        ):
            time.sleep(POLL_SECONDS)  # the rest is held by other processes: wait for them, or for their leases
    torch.set_num_threads(threads)
    if failures:
        run, reason = next(iter(failures.items()))
        raise LabError(f"{len(failures)} of {len(runs)} runs failed; run {run}: {reason}")


def _train_group(
    specs: Sequence[RunSpec],
    lab: Lab,
    device: str,
    strategy: Strategy,
    session: float,
    stop: Callable[[], bool],
    failures: dict[str, str],
    parent: int,
    threads: int,
) -> bool:
    """Train what can be claimed of a group with at most so many threads; False when that is nothing."""
    if stop():
        return True
    place = resolve_device(device)
    rows = {row.run: row for row in lab.store.runs([spec.run_id for spec in specs])}
    # Checkpoints of a run that the store has never seen begin are somebody else's leftovers: its metrics are gone.
    begun_runs = [run for run, row in rows.items() if row.started]
    snapshots = {run: lab.checkpoints(run).newest() for run in begun_runs}
    resume = {run: snapshot for run, snapshot in snapshots.items() if snapshot is not None}
    begun = rows[specs[0].run_id].machine if specs[0].run_id in resume else {}
    if place.type == "cpu":
        torch.set_num_threads(_useful_threads(specs[0], threads))
        if begun.get("device_type") == "cpu":
            # What changes bits is taken over from the first part of the run, so that its second part fits.
            torch.set_num_threads(begun["threads"])
            strategy = begun["strategy"]
    facts = {**machine(place), "strategy": resolve_strategy(strategy, place)}
    facts["precision"] = resolve_precision(specs[0].training.precision, place)
    claims = lab.store.claim(
        {spec.run_id: resume[spec.run_id].step if spec.run_id in resume else 0 for spec in specs},
        session=session,
        machine=facts,
    )
    if not claims:
        return False
    mine = {claim.run: claim for claim in claims}
    for run in mine:
        lab.checkpoints(run).sweep(resume[run].step if run in resume else 0)
    own = [spec for spec in specs if spec.run_id in mine]
    recorder = Recorder(lab, {spec.run_id: spec for spec in own}, mine)
    with Heartbeat(lab, recorder, parent):
        try:
            for record in train(own, device=device, strategy=strategy, resume=resume, stop=stop):
                recorder.take(record)
        except LeaseLost:
            return True  # whoever took the runs over goes on with them
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            for run in list(recorder.open):
                recorder.close(run, "failed", recorder.steps.get(run, 0), reason)
                failures[run] = reason
            if isinstance(error, LabError):
                raise
    return True


class Recorder:
    """Keeps the records of a training: metrics first, then the checkpoint that builds on them."""

    def __init__(self, lab: Lab, specs: Mapping[str, RunSpec], claims: Mapping[str, Claim]) -> None:
        self.lab, self.specs = lab, specs
        self.open = dict(claims)
        self.steps: dict[str, int] = {}
        self.counted = time.monotonic()
        """Up to when the seconds of the open runs are in the store."""
        self._val_loss: dict[str, tuple[int, float]] = {}

    def take(self, record: Record) -> None:
        match record:
            case Evaluation(step=step, rows=rows):
                own = {row.run: self.open[row.run] for row in rows}
                self.lab.store.append(
                    own,
                    step,
                    ((row.run, Metric(row.step, row.split, row.group, row.metric, row.value)) for row in rows),
                )
                for row in rows:
                    self.steps[row.run] = step
                    if (row.metric, row.group) == ("loss", "all"):  # val comes after train and replaces it
                        self._val_loss[row.run] = (step, row.value)
            case Snapshot(run=run, step=step):
                self.lab.store.append({run: self.open[run]}, step, ())  # refused when the run was taken over
                at, loss = self._val_loss.get(run, (-1, 0.0))
                self.lab.checkpoints(run).save(record, loss if at == step else None, self.specs[run].training)
            case Ended(run=run, status=status, step=step):
                self.close(run, status, step, f"not finite at step {step}" if status == "diverged" else "")
            case Tick(runs=names, step=step):
                self.steps.update(dict.fromkeys(names, step))

    def close(self, run: str, status: str, step: int, note: str) -> None:
        self.lab.store.end(self.open.pop(run), status, step, time.monotonic() - self.counted, note)


class Heartbeat:
    """Renews the leases of the runs a recorder still holds; a thread of its own, so that a long step loses none."""

    def __init__(self, lab: Lab, recorder: Recorder, parent: int) -> None:
        self.lab, self.recorder, self.parent = lab, recorder, parent
        self._quit = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._quit.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._quit.wait(HEARTBEAT_SECONDS):
            if self.parent and os.getppid() != self.parent:
                os._exit(1)  # the command that started this worker is gone; its leases will run out
            now = time.monotonic()
            try:
                seconds = now - self.recorder.counted
                self.lab.store.renew(list(self.recorder.open.values()), dict(self.recorder.steps), seconds)
            except LabError:
                continue  # a run ended or was taken over in between; the next write of the trainer will tell
            self.recorder.counted = now


assert HEARTBEAT_SECONDS * 10 < LEASE_SECONDS


def _useful_threads(spec: RunSpec, most: int) -> int:
    """Small steps are slower with several threads, which then mostly wait for each other."""
    steps = spec.total_steps(len(spec.task.split(spec.seeds.split).train_rows))
    return most if work(spec) / steps > WORTH_A_THREAD else 1


def _useful_workers(specs: Sequence[RunSpec]) -> int:
    """As many as there are cores and runs, if each has enough to do."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = min(cores, len(specs))
    if wanted < 2:
        return 1
    return wanted if sum(work(spec) for spec in specs) / wanted > WORTH_A_WORKER else 1


def _delegate(runs: Sequence[Labelled], lab: Lab, workers: int, session: float, stop: Callable[[], bool]) -> None:
    """Let worker processes claim and train the runs; wait for them."""
    cores = os.cpu_count() or 1
    job = json.dumps(
        {
            "lab": str(lab.path),
            "runs": [[label, spec.to_json()] for label, spec in runs],
            "threads": max(1, cores // workers),
            "session": session,
            "parent": os.getpid(),
        }
    ).encode()
    command = [sys.executable, "-m", "lmlab.studies.worker"]
    says = [tempfile.TemporaryFile() for _ in range(workers)]  # noqa: SIM115  (closed below, when read)
    crew = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said) for said in says]
    for process in crew:
        assert process.stdin is not None
        process.stdin.write(job)
        process.stdin.close()
    told = False
    while any(process.poll() is None for process in crew):
        if stop() and not told:
            told = True
            for process in crew:
                process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    for process, file in zip(crew, says, strict=True):
        with file:
            file.seek(0)
            said = file.read().decode(errors="replace").strip()
        if process.returncode == 2 and said:
            raise LabError(said.splitlines()[-1])
        if process.returncode != 0 and not (told and process.returncode == -signal.SIGTERM):
            last = said.splitlines()[-1] if said else "it said nothing"
            raise LabError(f"a worker process ended with status {process.returncode} ({last}). Start again to go on.")


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Inside this block Ctrl-C (or SIGTERM) asks training to stop at the next step; a second Ctrl-C stops at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(number: int, _frame: object) -> None:
        if asked.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
