"""`python -m lmlab.studies.worker`: takes a share of a list of runs, read as JSON from standard input."""

from __future__ import annotations

import json
import signal
import sys
import threading

import torch

from lmlab.core.errors import LabError
from lmlab.engine.spec import RunSpec
from lmlab.runs.lab import Lab
from lmlab.studies.execute import train_claimed


def main() -> int:
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C reaches the whole process group: stopping twice is once
        signal.signal(number, lambda *_: asked.set())
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    runs = [(label, RunSpec(**spec)) for label, spec in job["runs"]]
    try:
        train_claimed(runs, Lab(job["lab"]), "cpu", "auto", job["session"], asked.is_set, job["parent"])
    except LabError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # all is saved: a late signal must not make this look like a crash
            signal.signal(number, signal.SIG_IGN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
