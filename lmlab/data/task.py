"""What a task gives: a tokenizer, a vocabulary, and a Split of Examples.

Examples are tables of tokens with the same leading axis N. `weights` says which targets count, `groups` names
slices that get metrics of their own. A Split is rows of one Table, so that a stack of runs with different
splits shares the table and differs only in rows. A Table hands out Examples by row: it may hold them ready made
(arithmetic) or cut them out of a stream of tokens (text), which is then in memory once.
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
class Speech:
    """How a task's sequences begin and end, in ids: what generating and scoring must know beside the tokenizer."""

    before: tuple[int, ...] = ()
    """Put in front of what is typed."""
    stop: tuple[int, ...] = ()
    """Ends a generated sequence."""
    hidden: tuple[int, ...] = ()
    """Never generated."""
    after: tuple[int, ...] = ()
    """Completes a sequence that is scored."""


@dataclass(frozen=True)
class Examples:
    """inputs, targets (N, S) int64; weights (N, S) float, 1 where the target counts; groups (N,) int64."""

    inputs: Tensor
    targets: Tensor
    weights: Tensor
    groups: Tensor

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def length(self) -> int:
        return self.inputs.shape[-1]

    def at(self, rows: Tensor, key: Tensor | None = None) -> Examples:  # noqa: ARG002
        """The rows of the table, any shape of rows in front: rows (…,) → inputs (…, S)."""
        return Examples(self.inputs[rows], self.targets[rows], self.weights[rows], self.groups[rows])

    def to(self, device: torch.device) -> Examples:
        return Examples(*(part.to(device) for part in (self.inputs, self.targets, self.weights, self.groups)))

    def __repr__(self) -> str:
        return f"Examples({len(self)} × {self.inputs.shape[-1]} tokens)"


class Table(Protocol):
    """N examples of `length` tokens, gathered by row on the device the table is on."""

    def __len__(self) -> int: ...

    @property
    def length(self) -> int: ...

    def at(self, rows: Tensor, key: Tensor | None = None) -> Examples:
        """rows (…,) → inputs (…, S); with a key (…,), as training draws them (a table may vary what it hands out)."""
        ...

    def to(self, device: torch.device) -> Table: ...


@dataclass(frozen=True)
class Split:
    """Which rows of a table are trained on and which are held out."""

    table: Table
    train_rows: Tensor
    val_rows: Tensor
    group_names: tuple[str, ...] = ()
    measured: int = 0
    """How many rows of each side are evaluated, evenly spaced; 0: all of them."""

    def measured_rows(self, side: Literal["train", "val"]) -> Tensor:
        """The rows whose loss and accuracy are recorded. Of a limited evaluation both sides show equally many."""
        rows = self.train_rows if side == "train" else self.val_rows
        limit = self.measured or len(rows)
        if len(rows) <= limit:
            return rows
        return rows[torch.arange(limit) * len(rows) // limit]

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

    def build_tokenizer(self) -> Tokenizer:
        raise NotImplementedError

    def split(self, seed: int) -> Split:
        """The same rows for the same seed, on every machine. Raises ConfigError when a side would be empty."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """S, the number of input tokens of an example."""
        raise NotImplementedError

    def speech(self, tokenizer: Tokenizer) -> Speech:  # noqa: ARG002
        return Speech()

    @property
    def symbols(self) -> int:
        """V, for how many symbols a model is built."""
        return len(self.build_tokenizer().vocabulary)

    def symbol_bytes(self) -> Tensor | None:
        """(V,) UTF-8 bytes each symbol stands for, where losses are to be compared across tokenizers."""
        return None

    @property
    def padding(self) -> int | None:
        """The id of the padding symbol, whose embedding stays zero; None where there is none."""
        raise NotImplementedError


tasks: Registry[type[Task]] = Registry("task")
