"""The command line called in this process: as `lmlab …` in a shell whose output is not a terminal."""

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lmlab.apps.cli import main

SMALL = ("--set=task.p=5", "--set=model.width=8", "--set=training.eval_first=2", "--set=training.eval_period=5")


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit status and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output, of a command that went well and said nothing else."""
        assert (self.status, self.err) == (0, "")
        assert self.out.count("\n") == 1
        return json.loads(self.out, parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


Call = Callable[..., Outcome]


@pytest.fixture(scope="session")
def lmlab() -> Call:
    """lmlab("runs", "list", "--json") → Outcome"""

    def call(*arguments: object) -> Outcome:
        out, err, before = io.StringIO(), io.StringIO(), sys.argv
        sys.argv = ["lmlab", *map(str, arguments)]
        try:
            with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
                main()
        finally:
            sys.argv = before
        return Outcome(ended.value.code, out.getvalue(), err.getvalue())

    return call


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and no lab of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LMLAB_HOME", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def small(lmlab: Call) -> Callable[..., Outcome]:
    """small("arithmetic-gpt", …): train a small model for 12 steps."""
    return lambda recipe, *more: lmlab("train", recipe, "--steps=12", *SMALL, "--device=cpu", *more)


@pytest.fixture(scope="session")
def trained(small: Callable[..., Outcome], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lab with an LSTM of two seeds and, started last, a GPT without validation."""
    lab = tmp_path_factory.mktemp("trained") / "lab"
    assert small("arithmetic-lstm", "--seeds=0,42", "--lab", lab).status == 0
    assert small("arithmetic-gpt", "--set=task.fraction=1", "--lab", lab).status == 0
    return lab
