"""How a stack is driven. The choice belongs to the engine, never to its caller.

loop      the runs of a group one after another, each a stack of one without `vmap`: batched products do not pay
          on a CPU
stacked   all runs of a group at once under `vmap`; on CUDA the step and the evaluation are captured as graphs
"""

from __future__ import annotations

from typing import Literal, Protocol

import torch
from torch import Tensor

from lmlab.engine.stack import Stack

Strategy = Literal["auto", "loop", "stacked"]


def resolve_strategy(strategy: Strategy, device: torch.device) -> Literal["loop", "stacked"]:
    if strategy == "auto":
        return "stacked" if device.type == "cuda" else "loop"
    return strategy


class Driver(Protocol):
    """Moves a stack forward and measures it."""

    def advance(self, step: int) -> None:
        """The update from `step` to `step + 1`."""
        ...

    def evaluate(self) -> Tensor: ...


class Eager:
    """Calls the stack's functions as they are."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def advance(self, step: int) -> None:
        if step % self.stack.order.block_steps == 0 and step > 0:
            self.stack.prepare(step)
        self.stack.update()

    def evaluate(self) -> Tensor:
        return self.stack.evaluate()


class Captured:
    """Records one update and one evaluation as CUDA graphs and replays them: no Python, no launches, same kernels."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        held = (
            *(stack.theta, stack.step, stack.healthy, stack.diverged_at, stack.last),
            *stack.moments.values(),
            *stack.carried,
        )
        before = [tensor.clone() for tensor in held]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries make their workspaces before, not during, the capture
            for _ in range(2):
                stack.update()
            stack.evaluate()
        torch.cuda.current_stream().wait_stream(side)
        self._update, self._evaluate = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._update):
            stack.update()
        with torch.cuda.graph(self._evaluate):
            self._numbers = stack.evaluate()
        for tensor, value in zip(held, before, strict=True):
            tensor.copy_(value)

    def advance(self, step: int) -> None:
        if step % self.stack.order.block_steps == 0 and step > 0:
            self.stack.prepare(step)
        self._update.replay()

    def evaluate(self) -> Tensor:
        self._evaluate.replay()
        return self._numbers


def driver(stack: Stack, capture: bool = True) -> Driver:
    """Graphs on CUDA unless `capture` is off; elsewhere there is nothing to capture."""
    return Captured(stack) if stack.device.type == "cuda" and capture else Eager(stack)
