"""Document 002's tokenizer, against a slow one that does what the document says, step by step."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from lmlab.core.errors import DataError
from lmlab.data.corpus_bpe import CorpusBPE
from lmlab.data.pretokens import show_bytes
from lmlab.data.stored import StoredTokenizer

SPEECH = [
    "THE Quick brown fox, the lazy dog; aA bB cC dD fF xX nN hH eE oO tT",
    "I am not what I am: they   say the FOX",
    "But the brown dog is the dog of the fox's DEN, o Queen!",
    "The thing that the others thought, they throw through there.",
]
peer = pre_tokenizers.ByteLevel(add_prefix_space=False)


def peers_words(line: str) -> list[str]:
    return [word for word, _ in peer.pre_tokenize_str(line)]


class ByTheBook:
    """Counts everything anew for each merge; looks pieces up in a list."""

    def __init__(self, lines: list[str], size: int) -> None:
        counts: dict[str, int] = {}
        for line in lines:
            for word in peers_words(line):
                key = word.capitalize() if word.isupper() else word
                counts[key] = counts.get(key, 0) + 1
        self.vocabulary = sorted({letter for word in counts for letter in word})
        splits = {word: list(word) for word in counts}
        while len(self.vocabulary) < size:
            pairs: dict[tuple[str, str], int] = {}
            for word, count in counts.items():
                for pair in pairwise(splits[word]):
                    pairs[pair] = pairs.get(pair, 0) + count
            best = max(pairs, key=lambda pair: pairs[pair])  # max keeps the first of equals
            for word, split in splits.items():
                joined = [split[0]]
                for letter in split[1:]:
                    if (joined[-1], letter) == best:
                        joined[-1] += letter
                    else:
                        joined.append(letter)
                splits[word] = joined
            self.vocabulary = sorted({*self.vocabulary, "".join(best)}, key=lambda token: (len(token), token))

    def encode(self, word: str) -> list[int]:
        ids = []
        while word:
            piece = max((token for token in self.vocabulary if word.startswith(token)), key=len)
            ids.append(self.vocabulary.index(piece))
            word = word[len(piece) :]
        return ids


letters = st.sampled_from(
    ["the", "The", "THE", "a", "an", "I", "fox", "FOX", "o", "x", "'s", ",", "!", " ", "  ", "   ", "12"]
)
lines_of_text = st.lists(st.lists(letters, min_size=1, max_size=12).map("".join), min_size=1, max_size=6)


@settings(max_examples=150)
@given(lines_of_text, st.integers(0, 12))
def test_it_is_the_documents(lines, merges):
    # The document's loop cannot encode a letter that it has seen in words of capitals only: here there is none.
    lines = [*lines, "tThH eEaA fFoO xXiI nNsS"]
    size = len(ByTheBook(lines, 0).vocabulary) + merges
    book, tokenizer = ByTheBook(lines, size), CorpusBPE.train(lines, size)
    assert list(tokenizer.vocabulary) == book.vocabulary
    assert tokenizer.encode_corpus(lines) == [
        i for line in lines for word in peers_words(line) for i in book.encode(word)
    ]


@pytest.mark.parametrize("size", [60, 70, 80, 100])
def test_a_longer_corpus(size):
    book, tokenizer = ByTheBook(SPEECH, size), CorpusBPE.train(SPEECH, size)
    assert list(tokenizer.vocabulary) == book.vocabulary
    prompt = "THE Queen thought I say"
    words = ["The", "ĠQueen", "Ġthought", "Ġi", "Ġsay"]
    assert peers_words(prompt) == ["THE", "ĠQueen", "Ġthought", "ĠI", "Ġsay"]
    assert tokenizer.encode(prompt) == [index for word in words for index in book.encode(word)]


def test_capitals_are_as_they_stand_in_the_corpus_but_not_in_a_prompt():
    tokenizer = CorpusBPE.train(SPEECH, 90)
    assert tokenizer.decode(tokenizer.encode_corpus(["The FOX"])) == "The FOX"
    assert tokenizer.decode(tokenizer.encode("The FOX")) == "The fox"
    assert tokenizer.encode("THE fox") == tokenizer.encode_corpus(["The fox"])


def test_ids_go_by_length_then_text():
    vocabulary = CorpusBPE.train(SPEECH, 90).vocabulary
    assert list(vocabulary) == sorted(vocabulary, key=lambda token: (len(token), token))
    assert len(vocabulary) == len(set(vocabulary)) == 90
    assert "Ġthe" in vocabulary


def test_the_longest_symbol_wins_whatever_was_merged_first():
    tokenizer = CorpusBPE(["a", "b", "c"], [("b", "c"), ("a", "b")])
    assert tokenizer.symbols(tokenizer.encode("abc")) == ["ab", "c"]


def test_a_run_of_spaces_brings_its_own_symbol():
    """Ġ is a capital whose small letter is ġ; in the document such a run counts as Ġġ."""
    assert CorpusBPE.train(["a   b"], 5).alphabet == ("a", "b", "Ġ", "ġ")
    tokenizer = CorpusBPE.train(["a   b"], 5)
    assert tokenizer.decode(tokenizer.encode("a   b")) == "a   b"


def test_letters_only_seen_in_capitals_can_be_encoded():
    tokenizer = CorpusBPE.train(["the QZ"], 10)
    assert {"Q", "Z", "q", "z"} <= set(tokenizer.alphabet)
    assert tokenizer.decode(tokenizer.encode_corpus(["the QZ"])) == "the QZ"


def test_words_beyond_ascii_keep_their_bytes():
    tokenizer = CorpusBPE.train(["ÉTÉ été à É 漢字"], 25)
    assert tokenizer.decode(tokenizer.encode_corpus(["ÉTÉ à 漢字"])) == "ÉTÉ à 漢字"
    assert tokenizer.decode(tokenizer.encode(" ÉTÉ")) == " été"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1).filter(any))
def test_any_corpus_survives(lines):
    size = len(set().union(*(show_bytes(line.encode()) for line in [*SPEECH, *lines, *map(str.lower, lines)]))) + 20
    tokenizer = CorpusBPE.train(SPEECH + lines, size)
    assert tokenizer.decode(tokenizer.encode_corpus(lines)) == "".join(lines)
    again = CorpusBPE.train(SPEECH + lines, size)
    assert (again, again.digest) == (tokenizer, tokenizer.digest)
    assert CorpusBPE.from_json(tokenizer.to_json()) == tokenizer


def test_symbols_outside_the_corpus_are_named():
    tokenizer = CorpusBPE.train(SPEECH, 60)
    with pytest.raises(DataError) as caught:
        tokenizer.encode("the €5 fox\nthe \ud800 fox €")
    known = f"the {len(tokenizer.alphabet)} symbols of the corpus"
    assert str(caught.value) == (
        f"the text has symbols outside the vocabulary: '€' '5' '\\n' '\\ud800'. Known: {known}."
    )
    with pytest.raises(DataError, match=r"'0' '1' '2' '3' '4' and 5 more\. Known"):
        tokenizer.encode_corpus(["the fox", "0 1 2 3 4 5 6 7 8 9"])


@pytest.mark.parametrize("lines", [[], [""], ["", ""], ""])
def test_an_empty_corpus_is_refused(lines):
    with pytest.raises(DataError, match=r"the corpus must have at least one character; got none\. Give more text\."):
        CorpusBPE.train(lines, 500)


@pytest.mark.parametrize(
    ("lines", "size", "rule"),
    [
        (["aaaa"], 500, "must be at most 3 for this text; got 500"),
        (["a"], 2, "must be at most 1 for this text; got 2"),
        (SPEECH, 10, "must be an integer of at least"),
        (["a\ud800"], 500, "must be Unicode without lone surrogates"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(lines, size, rule):
    with pytest.raises(DataError, match=rule):
        CorpusBPE.train(lines, size)


def test_one_symbol_is_a_vocabulary():
    tokenizer = CorpusBPE.train(["a"], 1)
    assert tokenizer.vocabulary == ("a",)
    assert tokenizer.encode("aa") == [0, 0]


def test_nul_is_a_symbol():
    tokenizer = CorpusBPE.train(["a\0b"], 3)
    assert tokenizer.decode(tokenizer.encode("b\0a")) == "b\0a"


def test_bytes_that_are_no_text_are_replaced():
    tokenizer = CorpusBPE.train(["é"], 2)
    assert tokenizer.decode([tokenizer.vocabulary.index("Ã")]) == "\ufffd"


@pytest.mark.parametrize("ids", [[-1], [60], [0, 10**9]])
def test_ids_outside_the_vocabulary_are_refused(ids):
    with pytest.raises(DataError, match=rf"token ids must be 0 … 59 for this tokenizer; got {ids[-1]}\."):
        CorpusBPE.train(SPEECH, 60).decode(ids)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphabet": ["b", "a"]}, "tokenizer field alphabet must be one or more symbols in sorted order"),
        ({"alphabet": []}, "tokenizer field alphabet must be one or more symbols"),
        ({"alphabet": ["a", "a"]}, "alphabet must not repeat a symbol; got 'a'"),
        ({"alphabet": ["ab"]}, "alphabet must hold the printable form of single bytes; got 'ab'"),
        ({"alphabet": ["a", " "]}, "alphabet must"),
        ({"alphabet": "abc"}, "alphabet must be a list of strings; got 'str'"),
        ({"alphabet": ["a", 3]}, "alphabet must hold non-empty strings; got 3"),
        ({"merges": [["a", "x"]]}, "merges must join symbols of the alphabet or of earlier merges; got"),
        ({"merges": [["a", "b"], ["a", "b"]]}, "merges must not repeat a pair"),
        ({"merges": [["a"]]}, "merges must hold pairs of strings; got"),
        ({"merges": ["ab"]}, "merges must hold pairs of strings; got 'ab'"),
        ({"merges": None}, "merges must be a list of pairs; got 'NoneType'"),
        ({"merges": [None]}, "merges must hold pairs of strings; got 'null'"),
    ],
)
def test_a_damaged_tokenizer_is_refused(change, message):
    good = {"kind": "corpus-bpe", "format": 1, "alphabet": ["a", "b"], "merges": [["a", "b"]]}
    CorpusBPE.from_json(good)
    with pytest.raises(DataError, match=message) as caught:
        CorpusBPE.from_json({**good, **change})
    assert "\n" not in str(caught.value)


def test_it_is_a_stored_tokenizer():
    tokenizer = CorpusBPE.train(SPEECH, 60)
    assert isinstance(tokenizer, StoredTokenizer)
    assert repr(tokenizer) == "CorpusBPE(60 symbols)"
    assert len(tokenizer) == 60
