"""What all tokenizers share: the head of their JSON, their identity, their refusals."""

import json
from hashlib import sha256

import pytest

from lmlab.core.errors import DataError
from lmlab.data.characters import CharacterTokenizer, TranscriptTokenizer

GOOD = {"kind": "characters", "format": 1, "vocabulary": ["a", "b"]}


def test_the_digest_is_that_of_the_canonical_json():
    tokenizer = CharacterTokenizer.from_json(GOOD)
    canonical = '{"format":1,"kind":"characters","vocabulary":["a","b"]}'
    assert tokenizer.digest == sha256(canonical.encode()).hexdigest()
    assert CharacterTokenizer.from_json(dict(reversed(GOOD.items()))).digest == tokenizer.digest


def test_kinds_are_never_equal():
    assert CharacterTokenizer.train("ab") != TranscriptTokenizer()
    assert CharacterTokenizer.train("ab") != "ab"


def test_json_is_json():
    assert (
        json.loads(json.dumps(CharacterTokenizer.train("aé\0").to_json())) == CharacterTokenizer.train("aé\0").to_json()
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({**GOOD, "kind": "transcript"}, "kind must be 'characters'; got 'transcript'. Give a tokenizer of that kind."),
        ({**GOOD, "kind": ["characters"]}, "kind must be 'characters'; got ['characters']."),
        ({"vocabulary": ["a"]}, "kind must be 'characters'; got 'none'."),
        ({**GOOD, "format": 2}, "format must be 1; got 2. Train and save the tokenizer again."),
        ({**GOOD, "format": True}, "format must be 1; got True."),
        ({**GOOD, "format": "1"}, "format must be 1; got '1'."),
        ({"kind": "characters", "vocabulary": ["a"]}, "format must be 1; got 'none'."),
        ({"kind": "characters", "format": 1}, "vocabulary is missing."),
        ({**GOOD, "more": 1}, "more is not one of vocabulary."),
        ([GOOD], "kind must be 'characters' in a JSON object; got 'list'."),
        (None, "kind must be 'characters' in a JSON object; got 'NoneType'."),
        ({**GOOD, "vocabulary": ["a", "x" * 1000]}, "vocabulary must hold single characters; got 'xxxxx"),
    ],
)
def test_json_of_another_form_is_refused_in_one_line(data, message):
    with pytest.raises(DataError) as caught:
        CharacterTokenizer.from_json(data)
    assert str(caught.value).startswith(f"tokenizer field {message}")
    assert len(str(caught.value)) < 200
