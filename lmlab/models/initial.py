"""Initial weights. Each parameter draws from a stream of its own, named after it, so that adding a layer or
changing the order of definition leaves all other weights as they were.

Modules say how a parameter is drawn by setting `initial[name]` to one of the rules below.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import torch
from torch import Tensor, nn

from lmlab.core.randomness import generator

Rule = Callable[[Tensor, torch.Generator], None]


def zeros(weight: Tensor, _: torch.Generator) -> None:
    weight.zero_()


def ones(weight: Tensor, _: torch.Generator) -> None:
    weight.fill_(1.0)


def normal(std: float, zero_row: int | None = None) -> Rule:
    """N(0, std²); one row (the padding symbol's) may be zero."""

    def draw(weight: Tensor, random: torch.Generator) -> None:
        weight.normal_(0.0, std, generator=random)
        if zero_row is not None:
            weight[zero_row] = 0.0

    return draw


def uniform(bound: float) -> Rule:
    """U(−bound, bound)."""

    def draw(weight: Tensor, random: torch.Generator) -> None:
        weight.uniform_(-bound, bound, generator=random)

    return draw


def linear(fan_in: int) -> Rule:
    """PyTorch's default for linear layers, weights and biases alike: U(±1/√fan_in)."""
    return uniform(1 / sqrt(fan_in))


def xavier_gate(inputs: int, hidden: int) -> Rule:
    """Xavier-uniform of one gate over [x, h]: ±√(6 / (d_in + 2 d_h)), also when gates share one matrix."""
    return uniform(sqrt(6 / (inputs + 2 * hidden)))


def initialise(model: nn.Module, seed: int) -> None:
    """Draw every parameter of the model. A parameter without a rule is a bug and is named."""
    done: set[int] = set()
    with torch.no_grad():
        for prefix, module in model.named_modules():
            rules: dict[str, Rule] = getattr(module, "initial", {})
            for name, parameter in module.named_parameters(recurse=False):
                if id(parameter) in done:  # a tied weight belongs to the first module that has it
                    continue
                if name not in rules:
                    raise NotImplementedError(f"{type(module).__name__}.{name} has no initial rule")
                rules[name](parameter, generator(seed, "init", f"{prefix}.{name}"))
                done.add(id(parameter))
