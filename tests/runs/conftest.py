"""A real lab of small trained runs, and tools to look at a database past the store."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lmlab.data.arithmetic import Arithmetic
from lmlab.engine.spec import RunSpec, Training
from lmlab.models.decoder import DecoderConfig
from lmlab.models.recurrent import LSTMConfig
from lmlab.runs.lab import Lab
from lmlab.studies.execute import execute

Raw = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def raw() -> Raw:
    """raw(path, sql, *values): a statement over a connection of its own, as another program would send it."""

    def send(path: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as connection, connection:
            return connection.execute(sql, values).fetchall()

    return send


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """An LSTM, a GPT with tied weights, and a GPT without validation, each trained for 20 steps."""
    training = Training(steps=20, batch_size=5, eval_first=2, eval_period=6, checkpoint_period=8, keep_last=3)
    task = Arithmetic(p=5)
    specs = [
        ("lstm", RunSpec(task=task, model=LSTMConfig(width=8), training=training)),
        ("gpt", RunSpec(task=task, model=DecoderConfig(width=8, heads=2, tie=True, dropout=0.1), training=training)),
        ("all", RunSpec(task=Arithmetic(p=5, fraction=1), model=DecoderConfig(width=8, heads=2), training=training)),
    ]
    lab = Lab(tmp_path_factory.mktemp("trained"), create=True)
    execute(specs, lab, device="cpu")
    return lab
