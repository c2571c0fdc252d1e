"""GPT-2's words, against the ones that the package tokenizers cuts."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from lmlab.core.errors import DataError
from lmlab.data.pretokens import BYTE_SYMBOLS, _class_of, pretokens, read_bytes, show_bytes, utf8

peer = pre_tokenizers.ByteLevel(add_prefix_space=False)
any_text = st.text(st.characters(exclude_categories=["Cs"]))
# What the pattern treats differently, so that random texts meet every branch.
PARTS = ["'", "s", "re", "ve", "ll", "d", "S", "a", "é", "e\u0301", "漢", "𝒳", "1", "²", "Ⅷ", "١", "-", "!", "😀", "\0"]
PARTS += [
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "\x1c",
    "\x1f",
    "\x85",
    "\xa0",
    "\u180e",
    "\u200b",
    "\u3000",
    "\u2028",
    "\u0345",
]
tricky_text = st.lists(st.sampled_from(PARTS)).map("".join)


def shown(text: str) -> list[str]:
    return [show_bytes(utf8(word)) for word in pretokens(text)]


def words_of_peer(text: str) -> list[str]:
    return [word for word, _ in peer.pre_tokenize_str(text)]


@settings(max_examples=400)
@given(st.one_of(any_text, tricky_text))
@example("I'm sure they'll say we've 'seen  it'. ")
@example(" \n a\n\n  b \t\n")
@example("'Re're 'S's''ll")
def test_words_are_those_of_the_rust_library(text):
    assert shown(text) == words_of_peer(text)


def test_every_class_begins_and_ends_where_the_rust_library_has_it():
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    classes = [_class_of(code) for code in codes]
    borders = {code for i, code in enumerate(codes[1:], 1) if classes[i] != classes[i - 1]}
    borders |= {code - 1 for code in borders if code != 0xE000}
    for code in sorted(borders | {*codes[:0x300]} | {*codes[::199]}):
        text = f"a{chr(code)}a1{chr(code)}1-{chr(code)}- {chr(code)}"
        assert shown(text) == words_of_peer(text), hex(code)


@given(st.one_of(st.text(), tricky_text))
def test_words_joined_are_the_text(text):
    assert "".join(pretokens(text)) == text  # also with lone surrogates


def test_a_space_goes_with_its_word():
    assert pretokens("Hello  world, it's 2024!\n") == ["Hello", " ", " world", ",", " it", "'s", " 2024", "!", "\n"]
    assert pretokens("") == []


def test_bytes_are_shown_as_in_gpt2():
    assert show_bytes(b" the\n\t\x7f") == "ĠtheĊĉġ"
    assert show_bytes("é".encode()) == "Ã©"
    assert len(set(BYTE_SYMBOLS)) == 256
    assert set(BYTE_SYMBOLS) == set(pre_tokenizers.ByteLevel.alphabet())


@given(st.binary())
def test_shown_bytes_can_be_read_back(data):
    assert read_bytes(show_bytes(data)) == data


def test_half_of_a_surrogate_pair_has_no_bytes():
    with pytest.raises(DataError) as caught:
        utf8("ab\ud83dc")
    assert str(caught.value) == (
        "the text must be Unicode without lone surrogates; got '\\ud83d' at character 2. "
        "Read the file as UTF-8, or with errors='replace'."
    )
