"""Byte-level BPE: nothing is lost, pieces equal the whole, and merges are what the obvious way gives."""

import random
import sys
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lmlab.core.errors import ConfigError, DataError, MissingExtra
from lmlab.data.byte_bpe import ByteBPE
from lmlab.data.pretokens import BYTE_SYMBOLS, pretokens

TEXT = (
    "The quick brown fox doesn't jump over the lazy dog; they've seen we're you've you're 12345 dogs, we'll say.\n\n"
    "    def naïve(x):\n\treturn x² + 1  # 漢字 and 😀 emoji\r\n" * 3
)
SPECIALS = ("<|end|>", "<|end|>more", "<pad>", " ~ ")
TOKENIZER = ByteBPE.train(TEXT, 340, SPECIALS)
PLAIN = ByteBPE.train(TEXT, 340)
assert {"'re", "'ve"} <= set(PLAIN.vocabulary)  # a contraction that is cut shows
DENSE = ByteBPE.train(["".join(random.Random(seed).choices("abc", k=20)) for seed in range(20)], 330)
PARTS = [
    "'",
    "s",
    "re",
    "ll",
    "the",
    " the",
    " ",
    "  ",
    "\n",
    "\t",
    "\x1c",
    "\xa0",
    "é",
    "e\u0301",
    "漢",
    "😀",
    "𝒳",
    "١",
    "12",
]
PARTS += [*SPECIALS, "<|end|", "<", "|>", "<pad", "~", "\0", "def"]
texts = st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.sampled_from(PARTS)).map("".join))


@settings(max_examples=200)
@given(texts)
def test_no_byte_is_lost(text):
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert TOKENIZER.decode_bytes(ids) == text.encode()


@settings(max_examples=400)
@given(texts, st.lists(st.integers(0, 40)))
@example("<|end|>more<|end|>", [7, 3])
@example("ab <|end|>more", [13])
@example("they're", [5, 1])
@example("x 'they've", [8, 1])
@example("a   b", [2, 1, 1])
@example("a  <pad>  b", [3, 4])
def test_pieces_equal_the_whole(text, cuts):
    """Cut anywhere, also inside a special token, a contraction or a run of blanks; chunks may be empty."""
    chunks, begin = [], 0
    for cut in cuts:
        chunks.append(text[begin : begin + cut])
        begin += cut
    for tokenizer in (TOKENIZER, PLAIN):
        assert list(tokenizer.encode_iter([*chunks, text[begin:]])) == tokenizer.encode(text)


@given(texts)
def test_characters_one_by_one_equal_the_whole(text):
    for tokenizer in (TOKENIZER, PLAIN):
        assert list(tokenizer.encode_iter(text)) == tokenizer.encode(text)


def test_a_stream_is_encoded_while_it_comes():
    """Ids appear long before the end, and little text is held back."""
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield "the lazy dog, "

    ids = TOKENIZER.encode_iter(endless())
    for _ in range(10_000):
        next(ids)
    needed = len(TOKENIZER.decode(TOKENIZER.encode("the lazy dog, " * 3000)[:10_000])) / len("the lazy dog, ")
    assert read < needed + 5


def test_a_word_without_end_is_not_scanned_again_and_again():
    letters = "ab" * 50_000
    assert list(TOKENIZER.encode_iter(letters)) == TOKENIZER.encode(letters)  # quadratic would take minutes


def encoded_by_the_book(tokenizer: ByteBPE, word: str) -> list[str]:
    """Join the pair of lowest rank everywhere, until there is none."""
    ranks = {pair: rank for rank, pair in enumerate(tokenizer.merges)}
    symbols = [BYTE_SYMBOLS[byte] for byte in word.encode()]
    while True:
        known = [pair for pair in pairwise(symbols) if pair in ranks]
        if not known:
            return symbols
        best, joined = min(known, key=ranks.__getitem__), []
        for symbol in symbols:
            if joined and (joined[-1], symbol) == best:
                joined[-1] += symbol
            else:
                joined.append(symbol)
        symbols = joined


@settings(max_examples=200)
@given(st.sampled_from([PLAIN, DENSE]), st.text("abc", max_size=60) | st.text("thequickbrownfxs' é", max_size=60))
def test_merges_apply_in_the_order_they_were_learned(tokenizer, text):
    expected = [symbol for word in pretokens(text) for symbol in encoded_by_the_book(tokenizer, word)]
    assert tokenizer.symbols(tokenizer.encode(text)) == expected


def merges_by_recounting(text: str, count: int) -> list[tuple[bytes, bytes]]:
    words = Counter(word.encode() for word in pretokens(text))
    splits = {word: [bytes([byte]) for byte in word] for word in words}
    merges = []
    for _ in range(count):
        pairs = Counter()
        for word, split in splits.items():
            for pair in pairwise(split):
                pairs[pair] += words[word]
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for word, split in splits.items():
            joined = []
            for symbol in split:
                if joined and (joined[-1], symbol) == best:
                    joined[-1] += symbol
                else:
                    joined.append(symbol)
            splits[word] = joined
    return merges


def test_training_takes_the_most_frequent_then_the_smallest_pair():
    tokenizer = ByteBPE.train(TEXT, 256 + 70)
    learned = [
        (tokenizer.decode_bytes([a]), tokenizer.decode_bytes([b])) for a, b in map(ids_of(tokenizer), tokenizer.merges)
    ]
    assert learned == merges_by_recounting(TEXT, len(learned))


def ids_of(tokenizer: ByteBPE):
    return lambda pair: tuple(tokenizer.vocabulary.index(symbol) for symbol in pair)


def test_ids_are_specials_then_bytes_then_merges():
    assert TOKENIZER.vocabulary[:4] == SPECIALS
    assert TOKENIZER.vocabulary[4:260] == tuple(sorted(BYTE_SYMBOLS))
    assert TOKENIZER.vocabulary[260:] == tuple(a + b for a, b in TOKENIZER.merges)
    assert len(TOKENIZER) == 340


def test_specials_are_found_first_and_never_split():
    ids = TOKENIZER.encode("a<|end|>more<|end|> ~ <|end")
    assert [i for i in ids if i < 4] == [1, 0, 3]
    assert TOKENIZER.encode("<pad>") == [2]
    assert ByteBPE.train(TEXT, 300).encode("<pad>") != [2]


def test_special_tokens_in_the_text_are_not_learned_from():
    plain = "low lower lowest " * 5
    marked = "<|end|>".join(["low lower lowest "] * 5)
    tokenizer = ByteBPE.train(marked, 263, ["<|end|>"])
    assert not any("|" in symbol for symbol in tokenizer.vocabulary[257:] if len(symbol) > 1)
    assert tokenizer.merges == ByteBPE.train([plain[:17]] * 5, 263, ["<|end|>"]).merges


@pytest.mark.parametrize("trainer", ["python", "rust"])
def test_training_is_deterministic(trainer):
    one, other = (ByteBPE.train(texts, 330, SPECIALS, trainer) for texts in (TEXT, iter([TEXT])))
    assert one == other
    assert one.digest == other.digest
    assert ByteBPE.from_json(one.to_json()) == one
    assert one.decode(one.encode(TEXT)) == TEXT


def test_the_rust_trainer_makes_the_same_kind_of_tokenizer():
    rust = ByteBPE.train(TEXT, 330, SPECIALS, "rust")
    assert rust.vocabulary[:260] == TOKENIZER.vocabulary[:260]
    assert len(rust) == 330
    no_ties = "ab" * 8 + " ab" * 4 + " cd" * 2
    assert ByteBPE.train(no_ties, 257, trainer="rust") == ByteBPE.train(no_ties, 257)


def test_without_the_package_the_rust_trainer_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'lmlab\[tokenizers\]'"):
        ByteBPE.train(TEXT, 300, trainer="rust")
    ByteBPE.train(TEXT, 300)


@pytest.mark.parametrize("trainer", ["python", "rust"])
@pytest.mark.parametrize(
    ("texts", "size", "specials", "message"),
    [
        ("", 300, (), "the text must have at least one character to learn from; got none. Give more text."),
        ([], 300, (), "the text must have at least one character to learn from; got none."),
        (["", "<s>"], 300, ["<s>"], "the text must have at least one character to learn from; got none."),
        ("a", 257, (), "the size of the tokenizer must be at most 256 for this text; got 257."),
        ("aaaa", 300, (), "the size of the tokenizer must be at most 258 for this text; got 300."),
        ("aaaa", 300, ["<s>"], "the size of the tokenizer must be at most 259 for this text; got 300."),
        (TEXT, 255, (), "the size of the tokenizer must be an integer of at least 256, the symbols before any merge;"),
        (TEXT, 256, ["<s>"], "the size of the tokenizer must be an integer of at least 257,"),
        (TEXT, True, (), "the size of the tokenizer must be an integer of at least 256,"),
        ("a\ud800b", 300, (), "the text must be Unicode without lone surrogates; got '\\ud800' at character 1."),
        (TEXT, 300, ["<s>", "<s>"], "tokenizer field specials must not repeat a symbol; got '<s>'."),
        (TEXT, 300, [""], "tokenizer field specials must hold non-empty strings; got ''."),
        (TEXT, 300, "<s>", "tokenizer field specials must be a list of strings; got 'str'."),
        (TEXT, 300, ["a"], "tokenizer field specials must not be a single byte; got 'a'. Try <|endoftext|>."),
        (TEXT, 330, ["Ġthe"], "tokenizer field "),
    ],
)
def test_bad_input_is_refused_in_one_line(trainer, texts, size, specials, message):
    with pytest.raises(DataError) as caught:
        ByteBPE.train(texts, size, specials, trainer)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_trainer_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="trainer must be python or rust; got 'java'"):
        ByteBPE.train(TEXT, 300, trainer="java")  # type: ignore[arg-type]


def test_nul_and_a_text_of_one_symbol():
    tokenizer = ByteBPE.train("\0", 256)
    assert tokenizer.decode(tokenizer.encode("\0a\0")) == "\0a\0"
    assert len(tokenizer) == 256


def test_a_lone_surrogate_cannot_be_encoded():
    with pytest.raises(DataError, match="must be Unicode without lone surrogates"):
        TOKENIZER.encode("the \ud83d fox")
    with pytest.raises(DataError, match="must be Unicode without lone surrogates"):
        list(TOKENIZER.encode_iter(["the ", "\ud83d", " fox"]))


def test_bytes_that_are_no_text_are_replaced_but_kept_as_bytes():
    ids = [TOKENIZER.vocabulary.index(BYTE_SYMBOLS[0xFF])]
    assert TOKENIZER.decode(ids) == "\ufffd"
    assert TOKENIZER.decode_bytes(ids) == b"\xff"


@pytest.mark.parametrize("ids", [[-1], [340], [3, 10**9]])
def test_ids_outside_the_vocabulary_are_refused(ids):
    with pytest.raises(DataError, match=rf"token ids must be 0 … 339 for this tokenizer; got {ids[-1]}\."):
        TOKENIZER.decode(ids)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"vocabulary": list(BYTE_SYMBOLS[1:])},
            "vocabulary must have all 256 bytes beside the special tokens, also 'Ā'",
        ),
        ({"vocabulary": [*BYTE_SYMBOLS, "a"]}, "vocabulary must not repeat a symbol; got 'a'"),
        ({"vocabulary": [*BYTE_SYMBOLS, "zz"]}, "vocabulary must hold bytes, merges and special tokens only; got 'zz'"),
        ({"specials": ["<s>"]}, "specials must be in the vocabulary; got '<s>'"),
        ({"specials": ["a"]}, "vocabulary must have all 256 bytes beside the special tokens, also 'a'"),
        ({"merges": [["a", "b"]]}, "merges must join symbols of the vocabulary to one of them; got ['a', 'b']"),
        ({"merges": {"a": "b"}}, "merges must be a list of pairs; got 'dict'"),
        ({"merges": [["a", 1]]}, "merges must hold pairs of strings; got ['a', 1]"),
    ],
)
def test_a_damaged_tokenizer_is_refused(change, message):
    good = {"kind": "byte-bpe", "format": 1, "vocabulary": list(BYTE_SYMBOLS), "merges": [], "specials": []}
    ByteBPE.from_json(good)
    with pytest.raises(DataError) as caught:
        ByteBPE.from_json({**good, **change})
    assert str(caught.value).startswith(f"tokenizer field {message}")


def test_a_word_of_a_megabyte_is_joined_in_seconds():
    assert TOKENIZER.decode(TOKENIZER.encode("theth" * 40_000)) == "theth" * 40_000
