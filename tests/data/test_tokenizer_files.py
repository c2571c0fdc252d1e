"""Tokenizers as files: what is saved can be loaded, and a damaged file is refused in one line."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from lmlab.core.errors import DataError
from lmlab.data.byte_bpe import ByteBPE
from lmlab.data.characters import CharacterTokenizer, TranscriptTokenizer
from lmlab.data.corpus_bpe import CorpusBPE
from lmlab.data.tokenizer_files import KINDS, load_tokenizer, save_tokenizer

TEXT = "The fox and the HEN said: 'naïve' the\0 end.  Then the fox's den was 漢字.\n"
EVERY = [
    CharacterTokenizer.train(TEXT),
    TranscriptTokenizer(),
    TranscriptTokenizer(one_marker=True),
    CorpusBPE.train(TEXT, 60),
    ByteBPE.train(TEXT, 270, ["<|end|>"]),
]
every_tokenizer = pytest.mark.parametrize("tokenizer", EVERY, ids=lambda tokenizer: tokenizer.kind)


@every_tokenizer
def test_a_saved_tokenizer_is_the_same(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    save_tokenizer(tokenizer, path)
    for source in (path, str(path), tokenizer.to_json()):
        loaded = load_tokenizer(source, tokenizer.kind)
        assert loaded == tokenizer
        assert (type(loaded), loaded.vocabulary, loaded.digest) == (
            type(tokenizer),
            tokenizer.vocabulary,
            tokenizer.digest,
        )
        assert loaded.encode("the den") == tokenizer.encode("the den")
    assert [entry.name for entry in tmp_path.iterdir()] == ["tokenizer.json"]


def test_every_kind_is_here():
    assert (
        {tokenizer.kind for tokenizer in EVERY} == set(KINDS) == {"characters", "transcript", "corpus-bpe", "byte-bpe"}
    )


def test_a_byte_tokenizer_is_saved_for_the_other_library(tmp_path):
    save_tokenizer(EVERY[-1], tmp_path / "tokenizer.json")
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode(TEXT + "<|end|>").ids == EVERY[-1].encode(TEXT + "<|end|>")


@every_tokenizer
def test_a_truncated_file_is_refused(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    save_tokenizer(tokenizer, path)
    whole = path.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:size])
        with pytest.raises(
            DataError, match=r"the tokenizer must be complete JSON in UTF-8; .*\. Save it again\."
        ) as caught:
            load_tokenizer(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


@every_tokenizer
def test_another_kind_is_refused(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    save_tokenizer(tokenizer, path)
    other = next(kind for kind in KINDS if kind != tokenizer.kind)
    with pytest.raises(DataError) as caught:
        load_tokenizer(path, other)
    assert str(caught.value) == (
        f"{str(path)!r}: tokenizer field kind must be {other!r}; got {tokenizer.kind!r}. Give a tokenizer of that kind."
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "tokenizer field kind must be given in a JSON object; got 'list'"),
        (b"null", "tokenizer field kind must be given in a JSON object; got 'NoneType'"),
        (b"{}", "tokenizer field kind must be one of characters, transcript, corpus-bpe, byte-bpe; got 'none'"),
        (b'{"kind": "bytes"}', "tokenizer field kind must be one of"),
        (b'{"kind": 3}', "tokenizer field kind must be one of"),
        (b'{"kind": ["characters"]}', "tokenizer field kind must be one of"),
        (b'{"model": 3}', "tokenizer field model must be a JSON object; got 3"),
        (b'{"kind": "characters", "format": 1, "vocabulary": ["a", "a"]}', "vocabulary must not repeat a symbol"),
        (b'{"kind": "characters", "format": 1, "vocabulary": ["\\ud800"]}', "vocabulary must be Unicode without lone"),
        (b"\x00\x00\x00", "the tokenizer must be complete JSON in UTF-8"),
        (b"\xff\xfe{}", "the tokenizer must be complete JSON in UTF-8"),
        (b"[" * 100_000, "the tokenizer must be complete JSON in UTF-8"),
        (b"1" * 10_000, "the tokenizer must be complete JSON in UTF-8"),
    ],
)
def test_what_is_no_tokenizer_is_refused(content, message, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_tokenizer(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=200)
@given(st.data())
def test_no_damage_to_a_file_is_worse_than_a_refusal(data):
    """Any field replaced by any JSON: a DataError, or a tokenizer that works."""
    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=4,
    )
    tokenizer = data.draw(st.sampled_from(EVERY))
    damaged = json.loads(json.dumps(tokenizer.to_json()))
    damaged[data.draw(st.sampled_from(sorted(damaged)))] = data.draw(json_values)
    with suppress(DataError):
        loaded = load_tokenizer(damaged)
        assert load_tokenizer(loaded.to_json()) == loaded


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"none\.json': the tokenizer cannot be read: No such file or directory\. Check"
    ):
        load_tokenizer(tmp_path / "none.json")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        load_tokenizer(tmp_path)
    with pytest.raises(DataError, match="null byte"):
        load_tokenizer("a\0b")


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    for path in (tmp_path / "no" / "tokenizer.json", tmp_path, "a\0b"):
        with pytest.raises(DataError, match=r"cannot be written: .*\. Choose another place\."):
            save_tokenizer(TranscriptTokenizer(), path)
    assert list(tmp_path.iterdir()) == []
