"""Modular arithmetic: `BOS a + b = r EOS`, with a, b in Z/pZ and r modulo q.

Every equation of an order (2: a ∘ b, 3: a ∘ b ∘ c, from left to right) is an example; a fraction of them is
trained on. The right-hand side, up to and with EOS, is what counts; `counted="all"` counts every target but PAD.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import gcd
from typing import Annotated, ClassVar, Literal, Self

import torch
from pydantic import AfterValidator, BeforeValidator, model_validator

from lmlab.core.config import as_tuple
from lmlab.core.errors import ConfigError, DataError
from lmlab.core.randomness import permutations, stream
from lmlab.data.task import Examples, Family, Speech, Split, Task, Tokenizer, tasks

ORDER_NAMES = {2: "binary", 3: "ternary"}
SPECIALS = ("=", "BOS", "EOS", "PAD")
Operator = Literal["+", "-", "*", "/"]
Counted = Literal["right", "all"]


def _ascending(orders: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(orders))  # [3, 2] is the same task as [2, 3]


class ArithmeticTokenizer:
    """Symbols separated by blanks: `5 + 7 =`. `BOS` is put in front of what is encoded."""

    def __init__(self, numbers: int, operator: str) -> None:
        self.vocabulary = (*map(str, range(numbers)), operator, *SPECIALS)
        self._ids = {symbol: index for index, symbol in enumerate(self.vocabulary)}

    def encode(self, text: str) -> list[int]:
        symbols = text.split()
        unknown = [symbol for symbol in symbols if symbol not in self._ids]
        if unknown:
            raise DataError(
                f"the prompt has symbols outside the vocabulary: {' '.join(dict.fromkeys(unknown))}. "
                f"Known: {self.vocabulary[0]} … {self.vocabulary[-6]} {' '.join(self.vocabulary[-5:])}."
            )
        return self.ids("BOS", *symbols) if symbols[:1] != ["BOS"] else self.ids(*symbols)

    def decode(self, ids: list[int]) -> str:
        return " ".join(self.vocabulary[index] for index in ids)

    def ids(self, *symbols: str) -> list[int]:
        return [self._ids[symbol] for symbol in symbols]

    def __repr__(self) -> str:
        return f"ArithmeticTokenizer({len(self.vocabulary)} symbols)"


@tasks.register("arithmetic")
class Arithmetic(Task):
    """Equations modulo q over operands 0 … p−1 (document 000)."""

    family: ClassVar[Family] = "example"
    derived: ClassVar = {"q": lambda task: task.p}
    only_rows: ClassVar[frozenset[str]] = frozenset({"fraction"})

    name: Literal["arithmetic"] = "arithmetic"
    p: int = 31
    """Operands are 0 … p−1."""
    q: int = 31
    """Results are modulo q; follows p unless set."""
    operator: Operator = "+"
    orders: Annotated[tuple[int, ...], BeforeValidator(as_tuple), AfterValidator(_ascending)] = (2,)
    """Number of operands: 2, 3 or both. With both, each order is split by the fraction on its own."""
    fraction: float = 0.5
    """Share of the equations trained on; 1 leaves no validation."""
    symmetric: bool = False
    """Only a ≤ b (≤ c)."""
    counted: Counted = "right"
    """Which targets count: everything right of `=`, or all but PAD."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("p", "q"):
            if not 2 <= getattr(self, name) <= 1000:
                raise ConfigError(self.field(name), "must be between 2 and 1000", getattr(self, name), "Try 31.")
        if not self.orders or set(self.orders) - {2, 3} or len(set(self.orders)) != len(self.orders):
            raise ConfigError(self.field("orders"), "must be 2, 3 or [2, 3]", list(self.orders))
        if not 0 < self.fraction <= 1:
            raise ConfigError(self.field("fraction"), "must be above 0 and at most 1", self.fraction, "Try 0.5.")
        if self.p ** max(self.orders) > 4_000_000:
            raise ConfigError(self.field("p"), f"is too large for orders {list(self.orders)}", self.p, "Try p ≤ 150.")
        return self

    def build_tokenizer(self) -> ArithmeticTokenizer:
        return ArithmeticTokenizer(max(self.p, self.q), self.operator)

    def speech(self, tokenizer: Tokenizer) -> Speech:
        ids = {symbol: index for index, symbol in enumerate(tokenizer.vocabulary)}
        return Speech(stop=(ids["EOS"],), hidden=(ids["BOS"], ids["PAD"]), after=(ids["EOS"],))

    @property
    def length(self) -> int:
        return 2 * max(self.orders) + 2  # BOS a (∘ b)… = r; the last target is EOS

    @property
    def padding(self) -> int:
        return self.build_tokenizer().ids("PAD")[0]

    def equations(self, order: int) -> list[tuple[tuple[int, ...], int]]:
        """All (operands, result) of an order, in lexicographic order of the operands."""
        found = []
        for operands in product(range(self.p), repeat=order):
            if self.symmetric and list(operands) != sorted(operands):
                continue
            if self.operator == "/" and any(gcd(x, self.q) != 1 for x in operands[1:]):
                continue
            found.append((operands, self._result(operands)))
        return found

    def _result(self, operands: tuple[int, ...]) -> int:
        result, *others = operands
        for x in others:
            match self.operator:
                case "+":
                    result += x
                case "-":
                    result -= x
                case "*":
                    result *= x
                case "/":
                    result *= pow(x, -1, self.q)
        return result % self.q

    @property
    def table(self) -> Examples:
        """Every equation, the lower order first; shared by all tasks that differ only in the fraction."""
        return _table(self.p, self.q, self.operator, self.orders, self.symmetric, self.counted)

    def split(self, seed: int) -> Split:
        """N_train = round(r·N) equations of each order; the same seed gives nested training sets as r grows."""
        train, val = [], []
        table = self.table
        for group, order in enumerate(self.orders):
            rows = torch.nonzero(table.groups == group).flatten()
            key = torch.tensor(stream(seed, "split", ORDER_NAMES[order]))
            rows = rows[permutations(key, len(rows))]
            size = round(self.fraction * len(rows))
            if self.fraction < 1 and not 0 < size < len(rows):
                side = "nothing to train on" if size == 0 else "nothing to validate on"
                raise ConfigError(
                    self.field("fraction"),
                    f"leaves {side}: {size} of {len(rows)} {ORDER_NAMES[order]} equations would be trained on",
                    self.fraction,
                    "Use 1 to train on everything." if size else "Use a larger fraction or p.",
                )
            train.append(rows[:size].sort().values)
            val.append(rows[size:].sort().values)
        names = tuple(ORDER_NAMES[order] for order in self.orders) if len(self.orders) > 1 else ()
        return Split(table, torch.cat(train), torch.cat(val), names)


@lru_cache(maxsize=8)
def _table(p: int, q: int, operator: Operator, orders: tuple[int, ...], symmetric: bool, counted: Counted) -> Examples:
    """Shorter equations are padded with PAD, which never counts."""
    task = Arithmetic(p=p, q=q, operator=operator, orders=orders, symmetric=symmetric, counted=counted)
    bos, eos, pad, equals, sign = task.build_tokenizer().ids("BOS", "EOS", "PAD", "=", operator)
    rows, groups = [], []
    for group, order in enumerate(orders):
        for operands, result in task.equations(order):
            left = [token for operand in operands for token in (sign, operand)][1:]
            row = [bos, *left, equals, result, eos]
            rows.append(row + [pad] * (task.length + 1 - len(row)))
            groups.append(group)
    tokens = torch.tensor(rows)
    targets = tokens[:, 1:]
    counts = targets != pad
    if counted == "right":
        counts &= (tokens[:, :-1] == equals).cumsum(1) > 0
    return Examples(tokens[:, :-1].contiguous(), targets.contiguous(), counts.float(), torch.tensor(groups))
