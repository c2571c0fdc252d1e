"""Milliseconds per run and training step of the arithmetic recipes, evaluation apart.

python -m benchmarks.step_time [--device cuda] [--precision tf32] [--runs 2,32]
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from lmlab.core.device import Precision, resolve_device, resolve_precision
from lmlab.engine.spec import RunSpec
from lmlab.engine.stack import Stack
from lmlab.engine.strategies import driver
from lmlab.studies.recipes import recipes

REPEATS, STEPS = 5, 20


def measure(specs: list[RunSpec], device: torch.device, precision: Precision) -> tuple[float, float]:
    """Median milliseconds of one step and of one evaluation of the whole stack."""
    splits = [spec.task.split(spec.seeds.split) for spec in specs]
    stack = Stack(specs, splits, device, precision, vectorised=device.type == "cuda")
    drive = driver(stack)
    step = 0

    def steps() -> None:
        nonlocal step
        for _ in range(STEPS):
            drive.advance(step)
            step += 1

    def evaluations() -> None:
        for _ in range(STEPS):
            drive.evaluate()

    return _median(steps, device), _median(evaluations, device)


def _median(function, device: torch.device) -> float:
    function()
    times = []
    for _ in range(REPEATS):
        _wait(device)
        begin = time.perf_counter()
        function()
        _wait(device)
        times.append((time.perf_counter() - begin) / STEPS * 1000)
    return statistics.median(times)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--runs", default="1", help="stack sizes, e.g. 2,32; a CPU trains one run at a time")
    options = parser.parse_args()
    device = resolve_device(options.device)
    precision = resolve_precision(options.precision, device)
    for recipe in recipes:
        for runs in map(int, options.runs.split(",")) if device.type == "cuda" else (1,):
            specs = [recipes[recipe]().with_seed(seed) for seed in range(runs)]
            step, evaluation = measure(specs, device, precision)
            print(
                f"{recipe:16} {precision} R = {runs:3}: {step / runs:8.3f} ms per run-step, "
                f"{step:8.3f} ms per step, {evaluation:8.3f} ms per evaluation"
            )


if __name__ == "__main__":
    main()
