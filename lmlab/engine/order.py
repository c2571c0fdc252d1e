"""Which examples make up which batch: the rows of every step, from stateless streams, for all runs of a stack.

Epoch e of a run visits its training rows in the order of stream (order seed, e); batch j takes positions
j·B … (j+1)·B − 1. A training set of at most B rows is one full batch in its own order. A short batch is padded
with −1: shape (R, B) stays the same from step to step, as a captured step needs. In sequence, every epoch has the
same order: B readers, each of whom reads his own part of the text from beginning to end.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lmlab.core.randomness import fold, permutations, stream

BLOCK_BYTES = 64 * 2**20
MAX_BLOCK = 64


class BatchOrder:
    """Rows of the table for each step and run, prepared a block of K steps at a time."""

    def __init__(
        self,
        rows: Sequence[Tensor],
        batch_size: int,
        per_epoch: Sequence[int],
        seeds: Sequence[int],
        device: torch.device,
        in_sequence: bool = False,
    ) -> None:
        """rows: each run's training rows; per_epoch: its batches per epoch; seeds: its order seed."""
        self.in_sequence = in_sequence
        self.width = min(batch_size, max(len(own) for own in rows))
        self.batch_size = batch_size
        runs = len(rows)
        if all(count == 1 for count in per_epoch):
            self.block_steps = 1
        else:
            self.block_steps = max(1, min(MAX_BLOCK, BLOCK_BYTES // (8 * runs * self.width)))
        # Runs with equally many rows share their arithmetic: one batched sort for all of them.
        self._alike: list[tuple[int, int, Tensor, Tensor, Tensor]] = []
        for size, batches in sorted({(len(own), count) for own, count in zip(rows, per_epoch, strict=True)}):
            members = [i for i in range(runs) if len(rows[i]) == size]
            own = torch.stack([rows[i] for i in members]).to(device)
            keys = torch.tensor([stream(seeds[i], "order") for i in members], device=device)
            self._alike.append((size, batches, torch.tensor(members, device=device), own, keys))
        self._shape = (self.block_steps, runs, self.width)
        self._device = device

    def block(self, step: int) -> Tensor:
        """Rows of the K steps from `step` (a multiple of K) on: (K, R, B), −1 where a batch is short."""
        block = torch.full(self._shape, -1, dtype=torch.int64, device=self._device)
        steps = torch.arange(step, step + self.block_steps, device=self._device)
        for size, batches, members, rows, keys in self._alike:
            position = (steps % batches).unsqueeze(1) * self.batch_size + torch.arange(self.width, device=self._device)
            if self.in_sequence:
                # Row b of batch j is window b·batches + j: each row of a batch goes on where it was in the last one.
                lane = torch.arange(self.width, device=self._device) * batches
                chosen = rows[:, (steps % batches).unsqueeze(1) + lane]
            elif size <= self.batch_size:
                chosen = rows[:, position.clamp(max=size - 1)]  # (M, K, B)
            else:
                first, last = step // batches, (step + self.block_steps - 1) // batches
                epochs = torch.arange(first, last + 1, device=self._device)
                orders = permutations(fold(keys.unsqueeze(1), epochs), size)  # (M, E, N)
                within = orders[:, steps // batches - first].gather(
                    2, position.clamp(max=size - 1).expand(len(members), -1, -1)
                )
                chosen = rows.unsqueeze(1).expand(-1, self.block_steps, -1).gather(2, within)
            inside = (position < size) & (torch.arange(self.width, device=self._device) < self.batch_size)
            block[:, members] = torch.where(inside, chosen, -1).transpose(0, 1)
        return block
