"""Merges learned with counts that are kept, against counting everything anew for each merge."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.core.errors import DataError
from lmlab.data.bpe import PairCounts, learn_merges

# Few letters: many ties, overlaps (aaa), and different merges that give the same symbol (a+ba, ab+a).
words = st.dictionaries(st.text("abc", min_size=1, max_size=9), st.integers(1, 4), max_size=12)


def all_merges_by_recounting(words: dict, ties: str) -> list:
    """The obvious way: per merge, walk every word, count, take the first (or smallest) maximum."""
    splits = {word: [word[i : i + 1] for i in range(len(word))] for word in words}
    merges = []
    while True:
        counts = {}
        for word, split in splits.items():
            for i in range(len(split) - 1):
                pair = split[i], split[i + 1]
                counts[pair] = counts.get(pair, 0) + words[word]
        if not counts:
            return merges
        most = max(counts.values())
        tied = [pair for pair, count in counts.items() if count == most]
        a, b = tied[0] if ties == "first" else min(tied)
        merges.append((a, b))
        for word, split in splits.items():
            joined = []
            for symbol in split:
                if joined and joined[-1] == a and symbol == b:
                    joined[-1] = a + b
                else:
                    joined.append(symbol)
            splits[word] = joined


def all_merges(words: dict, ties) -> list:
    pairs, merges = PairCounts(words, ties), []
    while pair := pairs.best():
        merges.append(pair)
        pairs.merge(pair)
    return merges


@settings(max_examples=400)
@given(words, st.sampled_from(["first", "smallest"]))
def test_kept_counts_choose_what_recounting_chooses(words, ties):
    assert all_merges(words, ties) == all_merges_by_recounting(words, ties)


@given(words)
def test_bytes_are_learned_like_text(words):
    in_bytes = {word.encode(): count for word, count in words.items()}
    merges = all_merges(in_bytes, "smallest")
    assert merges == all_merges_by_recounting(in_bytes, "smallest")
    assert merges == [(a.encode(), b.encode()) for a, b in all_merges(words, "smallest")]


def test_ties_go_to_the_first_or_to_the_smallest():
    tied = {"zy": 2, "ab": 2, "zyab": 1}
    assert learn_merges(tied, "abyz", 5, ties="first") == [("z", "y")]
    assert learn_merges(tied, "abyz", 5, ties="smallest") == [("a", "b")]


def test_the_first_place_moves_as_merges_happen():
    """(c, d) is met first in the first word until that is swallowed; from then on (e, f) is."""
    tied = {"bcd": 3, "bc": 9, "ef": 2, "cd": 2}
    assert all_merges(tied, "first") == [("b", "c"), ("bc", "d"), ("e", "f"), ("c", "d")]


def test_symbols_reached_in_two_ways_count_once():
    merges = learn_merges({"abc": 1, "ab": 5, "bc": 4, "xbc": 3}, "abcx", 8, ties="first")
    joined = [a + b for a, b in merges]
    assert len(set(joined)) == 4


def test_the_size_is_checked():
    with pytest.raises(DataError) as caught:
        learn_merges({"abc": 1}, "abc", 2, ties="first")
    assert str(caught.value) == (
        "the size of the tokenizer must be an integer of at least 3, the symbols before any merge; got 2. "
        "Use a larger size."
    )
    for size in (True, 3.0, "3"):
        with pytest.raises(DataError, match="must be an integer"):
            learn_merges({"abc": 1}, "abc", size, ties="first")  # type: ignore[arg-type]


def test_a_size_beyond_the_text_is_refused_with_the_largest_possible():
    with pytest.raises(DataError) as caught:
        learn_merges({"abc": 1}, "abc", 6, ties="first")
    assert str(caught.value) == (
        "the size of the tokenizer must be at most 5 for this text; got 6. Use a smaller size or more text."
    )
    assert len(learn_merges({"abc": 1}, "abc", 5, ties="first")) == 2
