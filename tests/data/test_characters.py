"""Tokenizers of single characters: those of a text, and the 31 of the transcripts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmlab.core.errors import DataError
from lmlab.data.characters import CharacterTokenizer, TranscriptTokenizer

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
transcripts = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ' ")


@given(texts)
def test_characters_survive(text):
    tokenizer = CharacterTokenizer.train(text)
    assert tokenizer.vocabulary == tuple(sorted(set(text)))
    ids = tokenizer.encode(text)
    assert len(ids) == len(text)
    assert tokenizer.decode(ids) == text


@given(texts)
def test_the_same_characters_are_the_same_tokenizer(text):
    one, other = CharacterTokenizer.train(text), CharacterTokenizer.train(text[::-1] + text)
    assert one == other == CharacterTokenizer.from_json(one.to_json())
    assert one.digest == other.digest
    assert len({one, other}) == 1
    more = CharacterTokenizer.train(text + ("a" if "a" not in text else "b" if "b" not in text else "\u2603☄"))
    assert (more == one) == (more.vocabulary == one.vocabulary)


def test_the_digest_is_pinned():
    """It names runs: a change of it orphans what people have trained."""
    assert (
        CharacterTokenizer.train("hello").digest == "a3d748194d9d19e085a63030cd87b82f4ebf382185d0f88772c3343aff5daa3a"
    )
    assert TranscriptTokenizer().digest == "91448007ff4a2886f885c0e893d3f4362b9ca21f0f7cd4cae4ab9a67389b9b2d"


def test_nul_and_one_symbol_are_fine():
    tokenizer = CharacterTokenizer.train("\0\0")
    assert tokenizer.vocabulary == ("\0",)
    assert tokenizer.encode("\0") == [0]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "the text must have at least one character; got an empty text. Give more text."),
        ("a\udc00", "must be Unicode without lone surrogates; got '\\udc00' at character 1."),
    ],
)
def test_what_has_no_characters_is_refused(text, rule):
    with pytest.raises(DataError) as caught:
        CharacterTokenizer.train(text)
    assert rule in str(caught.value)


def test_unknown_characters_are_named_once():
    with pytest.raises(DataError) as caught:
        CharacterTokenizer.train("abc").encode("xaxé\n\ud800")
    assert str(caught.value) == (
        "the text has symbols outside the vocabulary: 'x' 'é' '\\n' '\\ud800'. "
        "Known: the 3 characters of the training text."
    )
    with pytest.raises(DataError, match="'0' '1' '2' '3' '4' and 5 more"):
        CharacterTokenizer.train("abc").encode("0123456789")


@pytest.mark.parametrize(
    ("vocabulary", "rule"),
    [
        ([], "must be one or more characters in sorted order"),
        (["b", "a"], "must be one or more characters in sorted order"),
        (["a", "a"], "must not repeat a symbol; got 'a'"),
        (["a", "bc"], "must hold single characters; got 'bc'"),
        (["a", ""], "must hold non-empty strings; got ''"),
        (["a", 1], "must hold non-empty strings; got 1"),
        (["\ud800"], "must be Unicode without lone surrogates"),
        ("abc", "must be a list of strings; got 'str'"),
        ({"a": 0}, "must be a list of strings; got 'dict'"),
    ],
)
def test_a_damaged_vocabulary_is_refused(vocabulary, rule):
    with pytest.raises(DataError) as caught:
        CharacterTokenizer.from_json({"kind": "characters", "format": 1, "vocabulary": vocabulary})
    assert str(caught.value).startswith(f"tokenizer field vocabulary {rule}")
    assert str(caught.value).endswith(". Train and save the tokenizer again.")


def test_transcripts_have_31_symbols():
    tokenizer = TranscriptTokenizer()
    assert tokenizer.vocabulary == ("<sos>", "<eos>", "<pad>", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "'", " ")
    assert len(tokenizer) == 31
    assert (tokenizer.sos, tokenizer.eos, tokenizer.pad) == (0, 1, 2)


def test_one_marker_for_both_ends():
    tokenizer = TranscriptTokenizer(one_marker=True)
    assert tokenizer.vocabulary[:3] == ("<eos>", "<pad>", "A")
    assert len(tokenizer) == 30
    assert (tokenizer.sos, tokenizer.eos, tokenizer.pad) == (0, 0, 1)
    assert tokenizer != TranscriptTokenizer()
    assert tokenizer.digest != TranscriptTokenizer().digest


@given(transcripts, st.booleans())
def test_transcripts_survive(text, one_marker):
    tokenizer = TranscriptTokenizer(one_marker)
    ids = tokenizer.encode(text)
    assert not {tokenizer.sos, tokenizer.eos, tokenizer.pad} & set(ids)
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode(text.lower()) == ids
    assert tokenizer.decode([tokenizer.sos, *ids, tokenizer.eos, tokenizer.pad]) == text
    assert TranscriptTokenizer.from_json(tokenizer.to_json()) == tokenizer


def test_markers_are_shown_on_request():
    tokenizer = TranscriptTokenizer()
    ids = [tokenizer.sos, *tokenizer.encode("it's"), tokenizer.eos, tokenizer.pad]
    assert tokenizer.decode(ids, specials=True) == "<sos>IT'S<eos><pad>"


def test_what_no_transcript_has_is_named():
    with pytest.raises(DataError) as caught:
        TranscriptTokenizer().encode("It’s 5, <eos>\0")
    assert str(caught.value) == (
        "the text has symbols outside the vocabulary: '’' '5' ',' '<' '>' and 1 more. "
        "Known: A … Z, apostrophe and space."
    )


@pytest.mark.parametrize("ids", [[31], [-1], [0, 31]])
def test_ids_outside_the_vocabulary_are_refused(ids):
    with pytest.raises(DataError, match=rf"token ids must be 0 … 30 for this tokenizer; got {ids[-1]}\."):
        TranscriptTokenizer().decode(ids)


@pytest.mark.parametrize("value", [1, "yes", None, []])
def test_one_marker_is_true_or_false(value):
    with pytest.raises(DataError, match="tokenizer field one_marker must be true or false; got"):
        TranscriptTokenizer.from_json({"kind": "transcript", "format": 1, "one_marker": value})
