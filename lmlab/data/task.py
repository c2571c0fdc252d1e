"""What a task gives: a tokenizer, a vocabulary, and a Split of Examples.

Examples are tables of tokens with the same leading axis N. `weights` says which targets count, `groups` names
slices that get metrics of their own. A Split is rows of one table, so that a stack of runs with different
splits shares the table and differs only in rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

from lmlab.core.config import Config
from lmlab.core.registry import Registry

Family = Literal["example", "token"]
"""How losses average: per example first (arithmetic), or over all counted tokens (text)."""


class Tokenizer(Protocol):
    """Text ↔ ids."""

    @property
    def vocabulary(self) -> tuple[str, ...]: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: list[int]) -> str: ...


@dataclass(frozen=True)
class Examples:
    """inputs, targets (N, S) int64; weights (N, S) float, 1 where the target counts; groups (N,) int64."""

    inputs: Tensor
    targets: Tensor
    weights: Tensor
    groups: Tensor

    def __len__(self) -> int:
        return len(self.inputs)

    def at(self, rows: Tensor) -> Examples:
        """The rows of the table, any shape of rows in front: rows (…,) → inputs (…, S)."""
        return Examples(self.inputs[rows], self.targets[rows], self.weights[rows], self.groups[rows])

    def to(self, device: torch.device) -> Examples:
        return Examples(*(part.to(device) for part in (self.inputs, self.targets, self.weights, self.groups)))

    def __repr__(self) -> str:
        return f"Examples({len(self)} × {self.inputs.shape[-1]} tokens)"


@dataclass(frozen=True)
class Split:
    """Which rows of a table are trained on and which are held out."""

    table: Examples
    train_rows: Tensor
    val_rows: Tensor
    group_names: tuple[str, ...] = ()

    @property
    def train(self) -> Examples:
        return self.table.at(self.train_rows)

    @property
    def val(self) -> Examples:
        return self.table.at(self.val_rows)

    def __repr__(self) -> str:
        return f"Split({len(self.train_rows)} train, {len(self.val_rows)} val)"


class Task(Config):
    """Base of all tasks: a frozen configuration that can make its own data."""

    section: ClassVar[str] = "task"
    family: ClassVar[Family]
    # Fields that only choose rows of the same table: runs that differ in them can share a stack.
    only_rows: ClassVar[frozenset[str]] = frozenset()
    name: str

    def tokenizer(self) -> Tokenizer:
        raise NotImplementedError

    def split(self, seed: int) -> Split:
        """The same rows for the same seed, on every machine. Raises ConfigError when a side would be empty."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """S, the number of input tokens of an example."""
        raise NotImplementedError

    @property
    def padding(self) -> int | None:
        """The id of the padding symbol, whose embedding stays zero; None where there is none."""
        raise NotImplementedError


tasks: Registry[type[Task]] = Registry("task")
