"""What an evaluation averages: the rows it looks at, and the weight of each row in each slice of each run.

A slice is (split, group): train all, val all, val ternary, … Its loss is Σ w ℓ / Σ w over rows, where w is the
weight of the example (see `engine.losses`) if the row belongs to the slice in that run, else 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from lmlab.data.task import Family, Split, Table
from lmlab.engine.losses import example_weights

SIDES: tuple[Literal["train", "val"], ...] = ("train", "val")


class Measures:
    """names (K), rows (N,) of the table, weights (R, K, N), totals (R, K); parts cut the rows into digestible pieces.

    tokens_per_byte (R, K) turns nats per token into nats per byte; None where symbols do not stand for bytes.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        table: Table,
        device: torch.device,
        family: Family,
        symbol_bytes: Tensor | None,
        chunk: int,
    ) -> None:
        """table: on the device. chunk: how many rows may be evaluated at once."""
        chosen = {side: [split.measured_rows(side) for split in splits] for side in SIDES}
        chosen = {side: own for side, own in chosen.items() if all(len(rows) for rows in own)}
        rows = torch.unique(torch.cat([rows for own in chosen.values() for rows in own]))
        self.rows = rows.to(device)
        self.parts = [slice(start, min(start + chunk, len(rows))) for start in range(0, len(rows), chunk)]
        groups = splits[0].group_names
        self.names = tuple((side, group) for side in chosen for group in ("all", *groups))

        weight, group, size = (
            torch.cat(column) for column in zip(*self._facts(table, family, symbol_bytes), strict=True)
        )
        place = torch.empty(len(table), dtype=torch.int64)
        place[rows] = torch.arange(len(rows))
        columns = []
        for own in chosen.values():
            member = torch.zeros(len(splits), len(rows), dtype=torch.float64)
            for run, mine in enumerate(own):
                member[run, place[mine]] = 1.0
            every = member.to(device) * weight
            columns += [every, *(every * (group == index) for index in range(len(groups)))]
        self.weights = torch.stack(columns, dim=1)
        self.totals = self.weights.sum(-1)
        self.tokens_per_byte = None
        if symbol_bytes is not None:
            self.tokens_per_byte = (self.totals / ((self.weights > 0).double() @ size).clamp(min=1)).cpu()

    def _facts(self, table: Table, family: Family, symbol_bytes: Tensor | None) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Of each row, part by part: its weight, its group, and the bytes its counted targets stand for."""
        facts = []
        for part in self.parts:
            batch = table.at(self.rows[part])
            size = torch.zeros_like(batch.weights)
            if symbol_bytes is not None:
                size = symbol_bytes.to(batch.targets.device)[batch.targets] * batch.weights
            facts.append((example_weights(batch.weights, family).double(), batch.groups, size.sum(-1).double()))
        return facts
