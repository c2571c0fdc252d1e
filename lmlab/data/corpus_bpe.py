"""Byte-pair encoding of one corpus, as document 002 does it: 500 symbols for Tiny Shakespeare.

- The lines are cut into GPT-2's words, shown with printable bytes (a space is Ġ).
- The alphabet is the symbols of the corpus, not all 256 bytes; there is no special token.
- For counting, and in a prompt, a word in capitals is taken as capitalised: ` THE` as ` the`. The corpus itself
  is encoded as it stands.
- Merges are learned until there are `size` symbols; of equally frequent pairs the one met first wins.
- Ids are in order of (length, text), and encoding takes the longest symbol that fits, from left to right: the
  order of the merges plays no part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from lmlab.core.config import Json
from lmlab.core.errors import DataError
from lmlab.data.bpe import learn_merges
from lmlab.data.pretokens import BYTE_SYMBOLS, pretokens, read_bytes, show_bytes, utf8
from lmlab.data.stored import FORMAT, StoredTokenizer, different_strings, fields_of, outside, pairs_of_strings, refused


class CorpusBPE(StoredTokenizer):
    """A closed vocabulary of the symbols of one corpus and their merges."""

    kind: ClassVar[str] = "corpus-bpe"

    def __init__(self, alphabet: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        self.alphabet = different_strings("alphabet", alphabet)
        self.merges = tuple(pairs_of_strings("merges", merges))
        if not self.alphabet or list(self.alphabet) != sorted(self.alphabet):
            raise refused("alphabet", "must be one or more symbols in sorted order")
        for symbol in self.alphabet:
            if symbol not in BYTE_SYMBOLS:
                raise refused("alphabet", "must hold the printable form of single bytes", symbol)
        known = set(self.alphabet)
        for left, right in self.merges:
            if left not in known or right not in known:
                raise refused("merges", "must join symbols of the alphabet or of earlier merges", [left, right])
            known.add(left + right)
        self.vocabulary = tuple(sorted(known, key=lambda symbol: (len(symbol), symbol)))
        self._ids = {symbol: index for index, symbol in enumerate(self.vocabulary)}
        self._longest = len(self.vocabulary[-1])

    @classmethod
    def train(cls, lines: Iterable[str], size: int = 500) -> Self:
        """Learn from the lines of a corpus; deterministic."""
        written = Counter(word for line in _lines(lines) for word in pretokens(line))
        if not written:
            raise DataError("the corpus must have at least one character; got none. Give more text.")
        counts: Counter[str] = Counter()  # keeps the order of first appearance, on which ties depend
        for word, count in written.items():
            counts[_counted(word)] += count
        # Also the symbols that only occur in capitals, so that the corpus as it stands can be encoded.
        alphabet = sorted(set().union(*counts, *map(_shown, written)))
        return cls(alphabet, learn_merges(counts, alphabet, size, ties="first"))

    def encode(self, text: str) -> list[int]:
        """A prompt: words in capitals are taken as capitalised."""
        return self._encode([capitalised(word) for word in pretokens(text)], {})

    def encode_corpus(self, lines: Iterable[str]) -> list[int]:
        """The corpus as it stands, one line after the other with nothing between them."""
        ids: list[int] = []
        cache: dict[str, list[int]] = {}
        for line in _lines(lines):
            ids.extend(self._encode(pretokens(line), cache))
        return ids

    def _encode(self, words: list[str], cache: dict[str, list[int]]) -> list[int]:
        ids: list[int] = []
        for word in words:
            if word not in cache:
                if unknown := [character for character in word if not self._covers(character)]:
                    later = (c for other in words for c in other if not self._covers(c))
                    raise outside([*unknown, *later], f"the {len(self.alphabet)} symbols of the corpus")
                cache[word] = self._longest_matches(_shown(word))
            ids.extend(cache[word])
        return ids

    def _longest_matches(self, shown: str) -> list[int]:
        ids, begin = [], 0
        while begin < len(shown):
            end = min(begin + self._longest, len(shown))
            while shown[begin:end] not in self._ids:  # ends: every single symbol is in the vocabulary
                end -= 1
            ids.append(self._ids[shown[begin:end]])
            begin = end
        return ids

    def _covers(self, character: str) -> bool:
        return not "\ud800" <= character <= "\udfff" and all(symbol in self._ids for symbol in _shown(character))

    def decode(self, ids: Sequence[int]) -> str:
        """The text; bytes that are no UTF-8, as a model may produce, become U+FFFD."""
        return read_bytes("".join(self.symbols(ids))).decode(errors="replace")

    def to_json(self) -> Json:
        merges = [list(pair) for pair in self.merges]
        return {"kind": self.kind, "format": FORMAT, "alphabet": list(self.alphabet), "merges": merges}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls(**fields_of(data, cls.kind, "alphabet", "merges"))


def capitalised(word: str) -> str:
    """` THE` → ` the`, `THE` → `The`: the first character is the blank, where there is one."""
    return word.capitalize() if word.isupper() else word


def _counted(word: str) -> str:
    """The form under which pairs are counted.

    Document 002 capitalises what is shown, where Ġ is itself a capital: a run of spaces ĠĠ counts as Ġġ, which is
    why Tiny Shakespeare has 65 symbols and not 64. Words beyond ASCII would become other bytes that way; they are
    capitalised as words.
    """
    return capitalised(_shown(word)) if word.isascii() else _shown(capitalised(word))


def _shown(word: str) -> str:
    return show_bytes(utf8(word))


def _lines(lines: Iterable[str]) -> Iterable[str]:
    return lines.split("\n") if isinstance(lines, str) else lines
