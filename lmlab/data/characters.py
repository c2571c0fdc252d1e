"""Tokenizers whose symbols are single characters: those of a text, or the fixed 31 of the transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, ClassVar, Self

from lmlab.core.config import Json
from lmlab.core.errors import DataError
from lmlab.data.pretokens import utf8
from lmlab.data.stored import FORMAT, StoredTokenizer, different_strings, fields_of, outside, refused


class CharacterTokenizer(StoredTokenizer):
    """The characters of a text in sorted order (document 004)."""

    kind: ClassVar[str] = "characters"

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = different_strings("vocabulary", vocabulary)
        for symbol in self.vocabulary:
            if len(symbol) != 1:
                raise refused("vocabulary", "must hold single characters", symbol)
        if list(self.vocabulary) != sorted(self.vocabulary) or not self.vocabulary:
            raise refused("vocabulary", "must be one or more characters in sorted order")
        self._ids = {symbol: index for index, symbol in enumerate(self.vocabulary)}

    @classmethod
    def train(cls, text: str) -> Self:
        """Every character of the text becomes a symbol."""
        if not text:
            raise DataError("the text must have at least one character; got an empty text. Give more text.")
        utf8(text)
        return cls(sorted(set(text)))

    def encode(self, text: str) -> list[int]:
        try:
            return [self._ids[character] for character in text]
        except KeyError:
            unknown = (character for character in text if character not in self._ids)
            raise outside(unknown, f"the {len(self)} characters of the training text") from None

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.symbols(ids))

    def to_json(self) -> Json:
        return {"kind": self.kind, "format": FORMAT, "vocabulary": list(self.vocabulary)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls(fields_of(data, cls.kind, "vocabulary")["vocabulary"])


class TranscriptTokenizer(StoredTokenizer):
    """`<sos> <eos> <pad>`, A–Z, apostrophe and space: 31 symbols (document 003).

    With `one_marker`, `<eos>` also marks the start and there are 30. `encode` gives the symbols of the text
    only; whoever makes the examples puts `sos`, `eos` and `pad` around them.
    """

    kind: ClassVar[str] = "transcript"

    def __init__(self, one_marker: bool = False) -> None:
        self.one_marker = one_marker
        self.specials = ("<eos>", "<pad>") if one_marker else ("<sos>", "<eos>", "<pad>")
        self.vocabulary = (*self.specials, *ascii_uppercase, "'", " ")
        self._ids = {symbol: index for index, symbol in enumerate(self.vocabulary)}

    @property
    def sos(self) -> int:
        return self.eos if self.one_marker else self._ids["<sos>"]

    @property
    def eos(self) -> int:
        return self._ids["<eos>"]

    @property
    def pad(self) -> int:
        return self._ids["<pad>"]

    def encode(self, text: str) -> list[int]:
        """Lower case counts as upper case."""
        try:
            return [self._ids[character] for character in text.upper()]
        except KeyError:
            unknown = (character for character in text if not set(character.upper()) <= set(self._ids))
            raise outside(unknown, "A … Z, apostrophe and space") from None

    def decode(self, ids: Sequence[int], specials: bool = False) -> str:
        """The text; `specials` shows the markers too."""
        return "".join(symbol for symbol in self.symbols(ids) if specials or symbol not in self.specials)

    def to_json(self) -> Json:
        return {"kind": self.kind, "format": FORMAT, "one_marker": self.one_marker}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        one_marker = fields_of(data, cls.kind, "one_marker")["one_marker"]
        if not isinstance(one_marker, bool):
            raise refused("one_marker", "must be true or false", one_marker if one_marker is not None else "null")
        return cls(one_marker)
