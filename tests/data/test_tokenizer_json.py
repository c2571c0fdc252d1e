"""Hugging Face's tokenizer.json: the package tokenizers reads it and gives the same ids."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from lmlab.core.errors import DataError
from lmlab.data.byte_bpe import ByteBPE
from lmlab.data.pretokens import BYTE_SYMBOLS
from lmlab.data.tokenizer_json import from_hugging_face, to_hugging_face

TEXT = (
    "It's 1234 o'clock; they've said we'll naïvely see 漢字 😀.\n\n  The the there then\t" * 4
    + "every word that was ever spoken here" * 2
)
SPECIALS = ("<|end|>", "<|end|>more", "<s>", " ~ ")
OURS = ByteBPE.train(TEXT, 320, SPECIALS)
THEIRS = Tokenizer.from_str(json.dumps(to_hugging_face(OURS)))
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
    "\x85",
    "\xa0",
    "é",
    "e\u0301",
    "漢字",
    "😀",
    "𝒳",
]
PARTS += [*SPECIALS, "<|end|", "1234", "²", "١", "~", "\0", "\x7f", "\u200b", "\u200d", "IT'S"]
texts = st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.sampled_from(PARTS)).map("".join))


@settings(max_examples=400)
@given(texts)
def test_both_libraries_give_the_same_ids(text):
    ids = OURS.encode(text)
    assert ids == THEIRS.encode(text).ids
    assert THEIRS.decode(ids, skip_special_tokens=False) == text


@settings(max_examples=100)
@given(st.text("abc", min_size=1), st.text("abc"))
def test_merges_that_lead_to_the_same_symbol_give_the_same_ids(text, more):
    """a+ba and ab+a are two merges of one symbol; the libraries must agree on which comes first."""
    symbols = [*BYTE_SYMBOLS, "ab", "ba", "aba", "bc", "abc", "abab"]
    merges = [("a", "ba"), ("b", "a"), ("ab", "a"), ("a", "b"), ("ab", "c"), ("b", "c"), ("a", "bc"), ("ab", "ab")]
    ours = ByteBPE(symbols, merges)
    theirs = Tokenizer.from_str(json.dumps(to_hugging_face(ours)))
    assert ours.encode(text + more) == theirs.encode(text + more).ids


def test_it_can_be_read_back():
    assert from_hugging_face(to_hugging_face(OURS)) == OURS


def test_what_the_other_library_writes_can_be_read():
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>"], initial_alphabet=list(BYTE_SYMBOLS), show_progress=False
    )
    theirs.train_from_iterator([TEXT], trainer)
    theirs.add_special_tokens(["<|late|>"])  # gets an id of its own, outside the model's vocabulary
    ours = from_hugging_face(json.loads(theirs.to_str()))
    text = "<s>They've seen<|late|> the naïve"
    assert ours.encode(text) == theirs.encode(text).ids
    assert ours.specials == ("<s>", "<|late|>")


def test_the_older_form_of_merges_and_of_absent_settings_is_read():
    """GPT-2's own file writes a pair as one string and empty prefixes."""
    data = to_hugging_face(OURS)
    model = {
        key: value for key, value in data["model"].items() if key not in ("type", "ignore_merges", "byte_fallback")
    }
    model |= {"merges": [f"{a} {b}" for a, b in OURS.merges], "continuing_subword_prefix": "", "unk_token": ""}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    old = {**data, "model": model, "pre_tokenizer": byte_level, "post_processor": byte_level}
    assert from_hugging_face(old) == OURS


def changed(path: str, value) -> dict:
    data = json.loads(json.dumps(to_hugging_face(OURS)))
    place, *rest = path.split(".")
    target = data
    for step in rest:
        target, place = target[int(place) if place.isdigit() else place], step
    target[int(place) if place.isdigit() else place] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model", None, "model must be a JSON object; got 'none'"),
        ("model.type", "WordPiece", "model.type must be 'BPE'; got 'WordPiece'"),
        ("model.ignore_merges", True, "model.ignore_merges must be False; got True"),
        ("model.dropout", 0.1, "model.dropout must be None; got 0.1"),
        ("model.end_of_word_suffix", "</w>", "model.end_of_word_suffix must be None; got '</w>'"),
        ("model.vocab", [], "vocab must be a JSON object; got []"),
        ("model.vocab.a", 5000, "model.vocab must number its 320 symbols 0 … 319, each once"),
        ("model.vocab.a", "5", "model.vocab must map symbols to integers; got {'a': '5'}"),
        ("model.vocab.a", True, "model.vocab must map symbols to integers"),
        ("model.vocab.more", 320, "vocabulary must hold bytes, merges and special tokens only; got 'more'"),
        ("model.merges", None, "merges must be a list of pairs; got 'NoneType'"),
        ("model.merges.0", "a b c", "merges must hold pairs of strings; got ['a', 'b', 'c']"),
        ("model.merges.0", ["q", "q"], "merges must join symbols of the vocabulary to one of them; got ['q', 'q']"),
        ("pre_tokenizer", None, "pre_tokenizer must be a JSON object; got 'none'"),
        ("pre_tokenizer.type", "Whitespace", "pre_tokenizer.type must be 'ByteLevel'; got 'Whitespace'"),
        ("pre_tokenizer.add_prefix_space", True, "pre_tokenizer.add_prefix_space must be False; got True"),
        ("pre_tokenizer.use_regex", False, "pre_tokenizer.use_regex must be True; got False"),
        ("normalizer", {"type": "NFC"}, "normalizer must be null; got {'type': 'NFC'}"),
        ("post_processor", {"type": "TemplateProcessing"}, "post_processor.type must be 'ByteLevel'; got 'Templ"),
        ("added_tokens", {}, "added_tokens must be a list; got 'dict'"),
        ("added_tokens.0", "<s>", "added_tokens must hold objects with a content; got '<s>'"),
        ("added_tokens.0.lstrip", True, "added_tokens.lstrip must be False; got True"),
        ("added_tokens.0.special", False, "added_tokens.special must be True; got False"),
        ("added_tokens.0.id", 7, "added_tokens must have the same id in model.vocab (0); got {'<|end|>': 7}"),
        ("added_tokens.0.id", None, "added_tokens.id must map symbols to integers"),
        ("added_tokens.0.content", "<s>", "added_tokens must not repeat a token; got '<s>'"),
    ],
)
def test_what_would_give_other_ids_is_refused(path, value, message):
    with pytest.raises(DataError) as caught:
        from_hugging_face(changed(path, value))
    assert str(caught.value).startswith(f"tokenizer field {message}")
    assert "\n" not in str(caught.value)
