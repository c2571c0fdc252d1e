"""The database of a lab: runs, their state, and metrics in long form.

SQLite in WAL mode, so that readers watch a live run without blocking it. Every write of a trainer is one
transaction and carries the fencing number of its claim: a process whose lease has passed to another cannot write.

    waiting → running → finished | diverged | interrupted | failed          interrupted, failed → running
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import SQLITE_BUSY, OperationalError
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError

from lmlab.core.errors import LabError, LeaseLost, StoreError, UnknownName

SCHEMA_VERSION = 1
LEASE_SECONDS = 60.0
"""A claim not renewed for this long may be taken over."""
BUSY_SECONDS = 60
"""How long a write waits for another process's write."""

DONE = ("finished", "diverged")

_tables = sa.MetaData()
_lab = sa.Table("lab", _tables, sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text))
_runs = sa.Table(
    "runs",
    _tables,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("run", sa.Text, unique=True, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False, default="waiting"),
    sa.Column("step", sa.Integer, nullable=False, default=0),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("started", sa.Float, nullable=False, default=0.0),
    sa.Column("seconds", sa.Float, nullable=False, default=0.0),
    sa.Column("note", sa.Text, nullable=False, default=""),
    sa.Column("machine", sa.Text, nullable=False, default="{}"),
    sa.Column("owner", sa.Text, nullable=False, default=""),
    sa.Column("lease", sa.Float, nullable=False, default=0.0),
    sa.Column("fence", sa.Integer, nullable=False, default=0),
)
# The primary key is the table: rows of one curve lie together and cannot occur twice.
_metrics = sa.Table(
    "metrics",
    _tables,
    sa.Column("run", sa.ForeignKey("runs.number", ondelete="CASCADE"), primary_key=True),
    sa.Column("metric", sa.Text, primary_key=True),
    sa.Column("split", sa.Text, primary_key=True),
    sa.Column("group", sa.Text, primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("value", sa.Float, nullable=False),
    sqlite_with_rowid=False,
)


@dataclass(frozen=True)
class RunRow:
    """One line of the table of runs."""

    number: int
    run: str
    label: str
    seed: int
    spec: dict[str, Any]
    status: str
    step: int
    total: int
    created: float
    started: float
    seconds: float
    note: str
    machine: dict[str, Any]
    lease: float

    @property
    def done(self) -> bool:
        return self.status in DONE

    @property
    def state(self) -> str:
        """The status, with a run whose process died told apart from one that is running."""
        return "interrupted" if self.status == "running" and self.lease < time.time() else self.status


@dataclass(frozen=True)
class Metric:
    """One number of a run."""

    step: int
    split: str
    group: str
    metric: str
    value: float


@dataclass(frozen=True)
class Claim:
    """The right to train a run, for as long as it is renewed."""

    run: str
    number: int
    fence: int


@dataclass(frozen=True)
class Curve:
    """A metric over steps, both (N,)."""

    steps: np.ndarray
    values: np.ndarray

    def until(self, limit: int) -> Curve:
        """Only steps ≤ limit."""
        inside = self.steps <= limit
        return Curve(self.steps[inside], self.values[inside])

    def __len__(self) -> int:
        return len(self.steps)


CurveKey = tuple[str, str, str, str]
"""(run, metric, split, group)"""


class Store:
    """The database at `path`; made there when `create` is set, else it must exist."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        if not create and not os.path.exists(path):
            raise self._missing()
        self._engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS})
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "begin", _begin)
        with self._translated():
            self._check_version(create)

    def close(self) -> None:
        self._engine.dispose()

    # Writing ---------------------------------------------------------------------------------------------------

    def register(self, runs: Iterable[Mapping[str, Any]]) -> None:
        """Add runs that are not there yet: mappings with run, label, seed, spec (JSON) and total."""
        now = time.time()
        rows = [{**run, "spec": json.dumps(run["spec"]), "created": now} for run in runs]
        if rows:
            with self._writing() as connection:
                connection.execute(insert(_runs).on_conflict_do_nothing(index_elements=["run"]), rows)

    def claim(self, resume_steps: Mapping[str, int], *, session: float, machine: Mapping[str, Any]) -> list[Claim]:
        """Take the runs that nobody trains and that are not done; rows after a run's resume step go at the same moment.

        session: when the command that trains began; `latest` is found by it.
        """
        now, owner, claims = time.time(), f"{_machine()}:{os.getpid()}", []
        with self._writing() as connection:
            for run, step in resume_steps.items():
                row = connection.execute(sa.select(_runs).where(_runs.c.run == run)).one_or_none()
                if row is None or row.status in DONE:  # deleted meanwhile, or done
                    continue
                if row.status == "running" and row.lease >= now and not _is_dead(row.owner):
                    continue
                connection.execute(
                    sa.update(_runs)
                    .where(_runs.c.number == row.number)
                    .values(
                        status="running",
                        step=step,
                        started=session,
                        note="",
                        owner=owner,
                        lease=now + LEASE_SECONDS,
                        fence=row.fence + 1,
                        machine=json.dumps(machine),
                        seconds=row.seconds if step else 0.0,
                    )
                )
                connection.execute(
                    sa.delete(_metrics).where(_metrics.c.run == row.number, _metrics.c.step > (step if step else -1))
                )
                claims.append(Claim(run, row.number, row.fence + 1))
        return claims

    def renew(self, claims: Iterable[Claim], steps: Mapping[str, int], seconds: float) -> None:
        """Keep the leases; tell how far the runs have come and add the seconds since the last time."""
        with self._writing() as connection:
            for claim in claims:
                self._fenced(
                    connection,
                    claim,
                    step=steps.get(claim.run, _runs.c.step),
                    lease=time.time() + LEASE_SECONDS,
                    seconds=_runs.c.seconds + seconds,
                )

    def append(self, claims: Mapping[str, Claim], step: int, rows: Iterable[tuple[str, Metric]]) -> None:
        """The rows (run, metric) of one evaluation of a whole stack, in one transaction."""
        with self._writing() as connection:
            for claim in claims.values():
                self._fenced(connection, claim, step=step)
            values = [
                {
                    "run": claims[run].number,
                    "metric": row.metric,
                    "split": row.split,
                    "group": row.group,
                    "step": row.step,
                    "value": row.value,
                }
                for run, row in rows
            ]
            if values:
                connection.execute(sa.insert(_metrics), values)

    def end(self, claim: Claim, status: str, step: int, seconds: float, note: str = "") -> None:
        """The run stops here, `seconds` after its lease was last renewed."""
        with self._writing() as connection:
            total = _runs.c.seconds + seconds
            self._fenced(connection, claim, status=status, step=step, note=note, lease=0.0, seconds=total)

    def delete(self, run: str) -> None:
        """Forget a run and its metrics; refused while it is being trained."""
        with self._writing() as connection:
            row = connection.execute(sa.select(_runs).where(_runs.c.run == run)).one()
            if row.status == "running" and row.lease >= time.time():
                raise StoreError(f"run {run} is being trained by {row.owner}. Stop it before deleting it.")
            connection.execute(sa.delete(_runs).where(_runs.c.number == row.number))

    # Reading ---------------------------------------------------------------------------------------------------

    def runs(self, ids: Sequence[str] | None = None) -> list[RunRow]:
        """All runs, or those of the given ids in their order."""
        with self._reading() as connection:
            found = [_run_row(row) for row in connection.execute(sa.select(_runs).order_by(_runs.c.number))]
        if ids is None:
            return found
        by_id = {row.run: row for row in found}
        return [by_id[run] for run in ids if run in by_id]

    def resolve(self, name: str) -> RunRow:
        """A run by its id, a unique prefix of it, or `latest`."""
        rows = self.runs()
        if not rows:
            raise StoreError(f"the lab at {self.path.parent} has no runs yet. Start with: lmlab train arithmetic-gpt")
        if name == "latest":
            return min(rows, key=lambda row: (-row.started, row.number))
        matches = [row for row in rows if name and row.run.startswith(name)]
        if len(matches) > 1:
            raise StoreError(
                f"run {name!r} is ambiguous: {', '.join(row.run for row in matches[:5])}. Type more of it."
            )
        if not matches:
            raise UnknownName("run", name, [row.run for row in rows] if len(rows) <= 8 else ["see: lmlab runs list"])
        return matches[0]

    def metrics(self, run: str) -> list[Metric]:
        """Every row of a run, in order of steps."""
        query = (
            sa.select(_metrics.c.step, _metrics.c.split, _metrics.c.group, _metrics.c.metric, _metrics.c.value)
            .join(_runs, _runs.c.number == _metrics.c.run)
            .where(_runs.c.run == run)
            .order_by(_metrics.c.step, _metrics.c.split, _metrics.c.group, _metrics.c.metric)
        )
        with self._reading() as connection:
            return [Metric(*row) for row in connection.execute(query)]

    def latest(self, runs: Sequence[str], metric: str) -> dict[tuple[str, str], float]:
        """{(run, split): value} of a metric at the last evaluated step, over all groups."""
        inner = (
            sa.select(_metrics.c.run, _metrics.c.split, sa.func.max(_metrics.c.step).label("step"))
            .join(_runs, _runs.c.number == _metrics.c.run)
            .where(_runs.c.run.in_(list(runs)), _metrics.c.metric == metric, _metrics.c.group == "all")
            .group_by(_metrics.c.run, _metrics.c.split)
            .subquery()
        )
        same = (_metrics.c.run == inner.c.run) & (_metrics.c.split == inner.c.split) & (_metrics.c.step == inner.c.step)
        query = (
            sa.select(_runs.c.run, _metrics.c.split, _metrics.c.value)
            .select_from(inner.join(_metrics, same).join(_runs, _runs.c.number == _metrics.c.run))
            .where(_metrics.c.metric == metric, _metrics.c.group == "all")
        )
        with self._reading() as connection:
            return {(run, split): value for run, split, value in connection.execute(query)}

    def curves(self, runs: Sequence[str], metrics: Sequence[str] = ()) -> dict[CurveKey, Curve]:
        """Every curve of these runs (all metrics, or the named ones), steps ascending."""
        query = sa.select(
            _runs.c.run, _metrics.c.metric, _metrics.c.split, _metrics.c.group, _metrics.c.step, _metrics.c.value
        ).join(_runs, _runs.c.number == _metrics.c.run)
        query = query.where(_runs.c.run.in_(list(runs)))
        if metrics:
            query = query.where(_metrics.c.metric.in_(list(metrics)))
        points: dict[CurveKey, tuple[list[int], list[float]]] = {}
        with self._reading() as connection:
            for run, metric, split, group, step, value in connection.execute(query):
                steps, values = points.setdefault((run, metric, split, group), ([], []))
                steps.append(step)
                values.append(value)
        return {key: _curve(*lists) for key, lists in points.items()}

    # Plumbing --------------------------------------------------------------------------------------------------

    def _fenced(self, connection: sa.Connection, claim: Claim, **values: Any) -> None:
        mine = (_runs.c.number == claim.number) & (_runs.c.fence == claim.fence) & (_runs.c.status == "running")
        if connection.execute(sa.update(_runs).where(mine).values(**values)).rowcount != 1:
            raise LeaseLost(f"run {claim.run} was taken over by another process; its work goes on there.")

    def _missing(self) -> StoreError:
        return StoreError(f"there is no lab at {self.path.parent}. Train something first, or give another with --lab.")

    def _check_version(self, create: bool) -> None:
        with self._engine.execution_options(writing=create).begin() as connection:
            if not sa.inspect(connection).has_table("lab"):
                if not create and not sa.inspect(connection).get_table_names():
                    raise self._missing()  # it is just being made
                if not create:
                    raise StoreError(f"{self.path} is not the database of a lab. Give another folder with --lab.")
                _tables.create_all(connection)
                connection.execute(sa.insert(_lab).values(key="schema", value=str(SCHEMA_VERSION)))
            version = int(connection.execute(sa.select(_lab.c.value).where(_lab.c.key == "schema")).scalar_one())
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"the lab at {self.path.parent} was made by a newer lmlab (store version {version}, "
                f"this one reads up to {SCHEMA_VERSION}). Upgrade lmlab or use another --lab."
            )

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._translated(), self._engine.execution_options(writing=True).begin() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._translated(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except LabError:
            raise
        except DBAPIError as error:
            raise StoreError(f"the lab's database {self.path} cannot be used: {error.orig}.") from error


def _machine() -> str:
    """Where process numbers mean something: this host, and on Linux this container's own numbering."""
    try:
        numbering = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        numbering = ""
    return f"{os.uname().nodename}/{numbering}"


def _is_dead(owner: str) -> bool:
    """The process that holds a lease is known to be gone; another machine's is never known to be."""
    machine, _, process = owner.rpartition(":")
    if machine != _machine() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _configure(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # SQLAlchemy's BEGIN below is the only one
    _write_ahead(connection)
    for pragma in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _write_ahead(connection: Any) -> None:
    """Where several processes make a database at once, one switches the mode; SQLite turns the others away unwaited."""
    for attempt in range(BUSY_SECONDS * 100, -1, -1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except OperationalError as error:
            if error.sqlite_errorcode & 0xFF != SQLITE_BUSY or not attempt:
                raise
        time.sleep(0.01)


def _begin(connection: sa.Connection) -> None:
    # A writer takes its lock at once: upgrading a read lock later could fail half-way.
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _run_row(row: Any) -> RunRow:
    fields = {name: value for name, value in row._mapping.items() if name not in ("owner", "fence")}
    return RunRow(**{**fields, "spec": json.loads(row.spec), "machine": json.loads(row.machine)})


def _curve(steps: list[int], values: list[float]) -> Curve:
    order = np.argsort(steps, kind="stable")
    return Curve(np.asarray(steps)[order], np.asarray(values, dtype=np.float64)[order])
