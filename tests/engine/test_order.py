"""Batches: which rows, in which order, how often."""

from collections import Counter
from itertools import chain, islice
from math import ceil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmlab.engine.order import BatchOrder

CPU = torch.device("cpu")


def made(sizes, batch_size, seeds=None, drop_last=False):
    """Run i has `sizes[i]` training rows, numbered from 1000 i on, in reverse."""
    rows = [torch.arange(1000 * i, 1000 * i + size).flip(0) for i, size in enumerate(sizes)]
    per_epoch = [size // batch_size if drop_last else ceil(size / batch_size) for size in sizes]
    return BatchOrder(rows, batch_size, per_epoch, seeds or list(range(len(sizes))), CPU)


def steps(order):
    """The rows of step 0, 1, 2 …: a list per run."""
    block = 0
    while True:
        for step in order.block(block):
            yield step.tolist()
        block += order.block_steps


def batches(order, run, count):
    """The first batches of one run, without the padding."""
    return [[row for row in step[run] if row >= 0] for step in islice(steps(order), count)]


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 5))
def test_every_epoch_visits_every_row_once(size, batch_size, seed):
    order = made([size], batch_size, [seed])
    per_epoch = ceil(size / batch_size)
    drawn = batches(order, 0, 3 * per_epoch)
    for epoch in range(3):
        parts = drawn[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert sorted(chain(*parts)) == list(range(size))
        assert all(len(part) == batch_size for part in parts[:-1])


def test_a_short_last_batch_is_padded_at_its_end():
    order = made([10], 4)
    first = list(islice(steps(order), 6))
    for step in (first[2], first[5]):
        assert [row >= 0 for row in step[0]] == [True, True, False, False]
        assert step[0][2:] == [-1, -1]
    assert all(-1 not in step[0] for step in (first[0], first[1], first[3], first[4]))


def test_a_small_training_set_is_one_full_batch_in_its_own_order():
    order = made([5], 8)
    assert batches(order, 0, 3) == [[4, 3, 2, 1, 0]] * 3
    assert order.width == 5  # no room is wasted on padding


def test_a_batch_as_large_as_the_training_set_is_full():
    assert batches(made([8], 8), 0, 2) == [list(range(7, -1, -1))] * 2


def test_epochs_have_orders_of_their_own():
    drawn = batches(made([20], 10), 0, 200)
    epochs = {tuple(drawn[i] + drawn[i + 1]) for i in range(0, 200, 2)}
    assert len(epochs) == 100


def test_dropping_the_last_batch_leaves_out_other_rows_each_time():
    order = made([10], 4, drop_last=True)
    drawn = batches(order, 0, 400)
    assert all(len(part) == 4 for part in drawn)
    for epoch in range(0, 400, 2):
        assert len(set(drawn[epoch] + drawn[epoch + 1])) == 8
    counts = Counter(chain(*drawn))
    assert sorted(counts) == list(range(10))
    assert all(abs(n - 160) < 5 * (200 * 0.8 * 0.2) ** 0.5 for n in counts.values())


def test_dropping_the_last_batch_may_leave_one_batch_of_a_larger_set():
    """Seven rows in batches of four: one batch per epoch, of other rows each time."""
    drawn = batches(made([7], 4, drop_last=True), 0, 100)
    assert all(len(set(part)) == 4 for part in drawn)
    assert sorted(set(chain(*drawn))) == list(range(7))


def test_runs_of_different_sizes_do_not_feel_each_other():
    """Each run in company has the batches it has alone: 577 rows beside a full batch of 96, and equal sizes."""
    sizes, seeds = [577, 96, 577, 512, 20], [1, 2, 3, 4, 5]
    together = made(sizes, 512, seeds)
    for run in range(5):
        rows = torch.arange(1000 * run, 1000 * run + sizes[run]).flip(0)
        alone = BatchOrder([rows], 512, [ceil(sizes[run] / 512)], [seeds[run]], CPU)
        assert batches(together, run, 10) == batches(alone, 0, 10)
    assert [len(part) for part in batches(together, 0, 4)] == [512, 65, 512, 65]
    assert [len(part) for part in batches(together, 1, 4)] == [96] * 4


def test_a_seed_is_an_order():
    rows = torch.arange(50)
    same = [batches(BatchOrder([rows], 8, [7], [seed], CPU), 0, 20) for seed in (0, 0, 1)]
    assert same[0] == same[1]
    assert same[0] != same[2]


def test_any_block_can_be_made_without_the_ones_before():
    """Resuming asks for a block in the middle of training."""
    order = made([50, 9], 8, [0, 1])
    straight = list(islice(steps(order), 5 * order.block_steps))
    fresh = made([50, 9], 8, [0, 1])
    later = fresh.block(4 * order.block_steps).tolist()
    assert later == straight[4 * order.block_steps :]


@pytest.mark.parametrize("batch_size", [3, 7])
def test_positions_are_shuffled_evenly(batch_size):
    """Over many epochs every row comes first about equally often."""
    per_epoch = ceil(12 / batch_size)
    drawn = batches(made([12], batch_size), 0, 1200 * per_epoch)
    first = Counter(drawn[epoch * per_epoch][0] for epoch in range(1200))
    assert all(abs(first[row] - 100) < 5 * 100**0.5 for row in range(12))
