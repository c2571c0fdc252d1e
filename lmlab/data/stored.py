"""What every text tokenizer is: a vocabulary with a stable identity that can be written as JSON and read back.

    StoredTokenizer
    ├── CharacterTokenizer   "characters"   lmlab/data/characters.py
    ├── TranscriptTokenizer  "transcript"   lmlab/data/characters.py
    ├── CorpusBPE            "corpus-bpe"   lmlab/data/corpus_bpe.py
    └── ByteBPE              "byte-bpe"     lmlab/data/byte_bpe.py

JSON that is read may come from anywhere: each field is checked, and refused in one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Self

from lmlab.core.config import Json
from lmlab.core.errors import DataError

FORMAT = 1
"""Raised when the same JSON would mean another tokenizer."""
_AGAIN = "Train and save the tokenizer again."


class StoredTokenizer:
    """Base of the text tokenizers. Two of them are equal when they turn every text into the same ids."""

    kind: ClassVar[str]
    vocabulary: tuple[str, ...]

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def decode(self, ids: Sequence[int]) -> str:
        raise NotImplementedError

    def to_json(self) -> Json:
        """Begins with the kind and the format; `from_json` gives the tokenizer back."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, data: Any) -> Self:
        raise NotImplementedError

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the JSON with sorted keys and no blanks: part of the identity of a run."""
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return sha256(canonical.encode()).hexdigest()

    def symbols(self, ids: Iterable[int]) -> list[str]:
        """The symbol of each id, as the vocabulary shows it."""
        ids, size = list(ids), len(self.vocabulary)
        for index in ids:
            if not 0 <= index < size:
                raise DataError(f"token ids must be 0 … {size - 1} for this tokenizer; got {index}.")
        return [self.vocabulary[index] for index in ids]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.vocabulary)} symbols)"


def outside(symbols: Iterable[str], known: str) -> DataError:
    """`the text has symbols outside the vocabulary: 'é' '\\n'. Known: …` — a handful, each once."""
    unknown = list(dict.fromkeys(symbols))
    shown = " ".join(map(repr, unknown[:5])) + (f" and {len(unknown) - 5} more" if len(unknown) > 5 else "")
    return DataError(f"the text has symbols outside the vocabulary: {shown}. Known: {known}.")


def refused(field: str, rule: str, value: object = None, remedy: str = _AGAIN) -> DataError:
    """`tokenizer field merges must be …; got …. Train and save the tokenizer again.`"""
    text = repr(value)
    given = "" if value is None else f"; got {text if len(text) <= 60 else text[:59] + '…'}"
    return DataError(f"tokenizer field {field} {rule}{given}. {remedy}")


def fields_of(data: Any, kind: str, *names: str) -> Json:
    """The JSON object if it is of this kind, of this format and has exactly these fields."""
    if not isinstance(data, Mapping):
        raise refused("kind", f"must be {kind!r} in a JSON object", type(data).__name__)
    if data.get("kind") != kind:
        raise refused("kind", f"must be {kind!r}", data.get("kind", "none"), "Give a tokenizer of that kind.")
    if data.get("format") != FORMAT or isinstance(data["format"], bool):
        raise refused("format", f"must be {FORMAT}", data.get("format", "none"))
    wrong = {"kind", "format", *names} ^ set(data)
    if wrong:
        name = min(map(str, wrong))
        raise refused(name[:40], "is missing" if name in names else f"is not one of {', '.join(names)}")
    return {name: data[name] for name in names}


def different_strings(field: str, value: Any) -> tuple[str, ...]:
    """A list of different, non-empty strings of valid Unicode."""
    if not isinstance(value, list | tuple):
        raise refused(field, "must be a list of strings", type(value).__name__)
    seen = set()
    for symbol in value:
        if not isinstance(symbol, str) or not symbol:
            raise refused(field, "must hold non-empty strings", symbol if symbol is not None else "null")
        if any("\ud800" <= character <= "\udfff" for character in symbol):
            raise refused(field, "must be Unicode without lone surrogates", symbol)
        if symbol in seen:
            raise refused(field, "must not repeat a symbol", symbol)
        seen.add(symbol)
    return tuple(value)


def pairs_of_strings(field: str, value: Any) -> list[tuple[str, str]]:
    """A list of different pairs of strings."""
    if not isinstance(value, list | tuple):
        raise refused(field, "must be a list of pairs", type(value).__name__)
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise refused(field, "must hold pairs of strings", pair if pair is not None else "null")
    pairs = [(pair[0], pair[1]) for pair in value]
    if len(set(pairs)) < len(pairs):
        raise refused(field, "must not repeat a pair")
    return pairs
