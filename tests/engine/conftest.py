from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from lmlab.engine.stack import Snapshot
from lmlab.engine.train import Ended, Evaluation, Record, train


@dataclass
class Outcome:
    """What training yielded, sorted by kind."""

    records: list[Record] = field(default_factory=list)

    def of(self, kind: type) -> list:
        return [record for record in self.records if isinstance(record, kind)]

    @property
    def metrics(self) -> dict[tuple, float]:
        """{(run, step, split, group, metric): value}"""
        rows = [row for evaluation in self.of(Evaluation) for row in evaluation.rows]
        return {(row.run, row.step, row.split, row.group, row.metric): row.value for row in rows}

    @property
    def snapshots(self) -> dict[tuple[str, int], Snapshot]:
        return {(snapshot.run, snapshot.step): snapshot for snapshot in self.of(Snapshot)}

    @property
    def ended(self) -> dict[str, Ended]:
        return {ended.run: ended for ended in self.of(Ended)}


@pytest.fixture
def trained() -> Callable[..., Outcome]:
    """Train on the CPU and keep everything that is yielded."""
    return lambda specs, **options: Outcome(list(train(specs, device="cpu", **options)))
