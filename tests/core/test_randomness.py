"""Streams of random words: stateless, uniform, and the same on every machine."""

from collections import Counter
from math import sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmlab.core.randomness import fold, generator, mix, permutations, stream, words

WORD = st.integers(0, 2**32 - 1)
EDGES = [0, 1, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]


def scramble(x: int) -> int:
    """The same mixing on Python's unbounded integers, cut to 32 bits at every step."""
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        x ^= x >> shift
        x = (x * factor) % 2**32
    return x ^ (x >> 15)


def combine(key: int, number: int) -> int:
    return scramble(key ^ scramble((number + 0x9E3779B9) % 2**32))


def test_mixing_never_overflows():
    assert mix(torch.tensor(EDGES)).tolist() == [scramble(x) for x in EDGES]


@given(WORD, st.integers(0, 2**40))
def test_words_and_folds_equal_unbounded_arithmetic(key, number):
    assert words(torch.tensor(key), torch.tensor(number)).item() == combine(key, number)
    assert fold(torch.tensor(key), torch.tensor(number)).item() == combine(key, number)
    assert fold(torch.tensor(key), number).item() == combine(key, number)


def test_mixing_gives_every_word_once():
    """A bijection: on 2²⁰ inputs spread over the whole range no output repeats."""
    x = torch.arange(2**20) * 4093 % 2**32
    assert len(mix(x).unique()) == 2**20


def test_the_streams_are_those_of_all_earlier_versions():
    """Changing these numbers changes the result of every run there is."""
    assert stream(42, "split", "ternary") == 206977083
    assert words(torch.tensor(stream(0, "dropout")), torch.arange(4)).tolist() == [
        2091525043,
        3062028091,
        3494699500,
        1609774418,
    ]
    assert permutations(torch.tensor(stream(7, "order")), 8).tolist() == [4, 7, 1, 0, 2, 6, 5, 3]


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=50), WORD)
def test_any_subset_of_indices_gives_the_same_words(indices, key):
    whole = words(torch.tensor(key), torch.arange(10_001))
    assert torch.equal(words(torch.tensor(key), torch.tensor(indices)), whole[indices])


def test_keys_broadcast_and_do_not_mix():
    keys, index = torch.tensor([3, 4, 5]), torch.arange(6)
    together = words(keys.unsqueeze(1), index)
    assert together.shape == (3, 6)
    for row, key in zip(together, keys, strict=True):
        assert torch.equal(row, words(key, index))


def test_a_stream_has_its_own_name():
    names = [(0, "split"), (1, "split"), (0, "init"), (0, "split", "binary"), (0, "split", "ternary"), (10, "split")]
    keys = [stream(seed, *rest) for seed, *rest in names]
    assert len(set(keys)) == len(keys)
    assert all(0 <= key < 2**32 for key in keys)


@pytest.mark.parametrize("shift", [0, 8, 16, 24])
def test_words_are_uniform(shift):
    """χ² over the 256 values of each byte: mean 255, standard deviation √510; five of those either way."""
    drawn = words(torch.tensor(stream(1, "order")), torch.arange(2**17))
    counts = torch.bincount(drawn >> shift & 0xFF, minlength=256).double()
    expected = 2**17 / 256
    chi_square = ((counts - expected) ** 2 / expected).sum().item()
    assert abs(chi_square - 255) < 5 * sqrt(510)


@pytest.mark.parametrize("step", [1, 2**16])
def test_neighbouring_keys_and_indices_share_nothing(step):
    """Half of the 32 bits differ, each bit of them in half of the cases."""
    index = torch.arange(20_000)
    here = words(torch.tensor(12345), index)
    for there in (words(torch.tensor(12345 + step), index), words(torch.tensor(12345), index + step)):
        differ = here ^ there
        for bit in range(32):
            assert (differ >> bit & 1).double().mean().item() == pytest.approx(0.5, abs=0.02)


@given(WORD, st.integers(1, 200))
def test_a_permutation_has_every_number_once(key, size):
    assert permutations(torch.tensor(key), size).sort().values.tolist() == list(range(size))


def test_seeds_and_epochs_give_orders_of_their_own():
    keys = torch.tensor([stream(seed, "order") for seed in range(20)])
    orders = permutations(fold(keys.unsqueeze(1), torch.arange(20)), 30)
    assert orders.shape == (20, 20, 30)
    assert len({tuple(order) for order in orders.flatten(0, 1).tolist()}) == 400


def test_permutations_of_a_batch_are_those_of_each_key():
    keys = torch.tensor([[1, 2], [3, 4]])
    together = permutations(keys, 9)
    for i in range(2):
        for j in range(2):
            assert torch.equal(together[i, j], permutations(keys[i, j], 9))


def test_all_orders_are_equally_likely():
    """χ² over the 24 orders of four things has mean 23 and standard deviation √46."""
    drawn = permutations(fold(torch.tensor(stream(3, "order")), torch.arange(24_000)), 4)
    counts = Counter(map(tuple, drawn.tolist()))
    assert len(counts) == 24
    assert abs(sum((n - 1000) ** 2 / 1000 for n in counts.values()) - 23) < 5 * sqrt(46)


def test_a_generator_starts_at_the_same_place_and_leaves_the_global_one_alone():
    before = torch.get_rng_state()
    first = torch.rand(5, generator=generator(3, "init", "weight"))
    again = torch.rand(5, generator=generator(3, "init", "weight"))
    other = torch.rand(5, generator=generator(3, "init", "bias"))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)
