"""Small runs, real labs, and the command line as a process of its own."""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lmlab.runs.lab import Lab

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path / "lab", create=True)
    yield lab
    lab.store.close()


@pytest.fixture
def raw() -> Callable[..., list[tuple[Any, ...]]]:
    """raw(lab, sql, *values): a statement over a connection of its own, past the store."""

    def send(lab: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(lab / "lab.sqlite")) as connection, connection:
            return connection.execute(sql, values).fetchall()

    return send


@pytest.fixture
def start() -> Iterator[Start]:
    """start("train", …): a real process; what is still running at the end of the test is killed."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: object, program: tuple[str, ...] = ("-m", "lmlab"), **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # as in this process, so that bits can be compared
            **options,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    def wait(happened: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, f"did not happen within {seconds} s"
            time.sleep(0.005)

    return wait
