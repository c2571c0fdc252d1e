"""Byte-level byte-pair encoding (Radford et al., 2019): every text can be encoded, no byte is ever lost.

A word of GPT-2's pre-tokenisation starts as its UTF-8 bytes; the pair of neighbours whose merge was learned
earliest is joined, the leftmost first, until no pair is left to join. Special tokens are found before anything
else (the leftmost, of several there the longest) and never split.

Training joins the most frequent pair; of equally frequent ones the smallest pair of byte strings, compared byte
by byte, so the result depends on nothing but the text. Ids: special tokens, then the 256 bytes in the order of
their printable form, then the merges.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise
from typing import Any, ClassVar, Final, Literal, Self

from lmlab.core.config import Json
from lmlab.core.errors import ConfigError, DataError, MissingExtra
from lmlab.data.bpe import check_size, learn_merges, too_large
from lmlab.data.pretokens import BYTE_SYMBOLS, pretokens, read_bytes, show_bytes, utf8
from lmlab.data.stored import FORMAT, StoredTokenizer, different_strings, fields_of, pairs_of_strings, refused

Trainer = Literal["python", "rust"]
_ALPHABET: Final = tuple(sorted(BYTE_SYMBOLS))
_CACHED_WORDS: Final = 65_536
_CACHED_LENGTH: Final = 64


class ByteBPE(StoredTokenizer):
    """All 256 bytes, their merges in order of rank, and special tokens."""

    kind: ClassVar[str] = "byte-bpe"

    def __init__(
        self, vocabulary: Sequence[str], merges: Sequence[tuple[str, str]], specials: Sequence[str] = ()
    ) -> None:
        """`vocabulary` in order of ids, with special tokens as they are and all others as printable bytes."""
        self.vocabulary = different_strings("vocabulary", vocabulary)
        order = {symbol: index for index, symbol in enumerate(self.vocabulary)}
        self.specials = tuple(sorted(different_strings("specials", specials), key=lambda symbol: order.get(symbol, -1)))
        self.merges = tuple(pairs_of_strings("merges", merges))
        self._check()
        self._ids = order
        # (id, id) → (rank, id): a lower rank is joined earlier.
        self._ranks = {
            (self._ids[left], self._ids[right]): (rank, self._ids[left + right])
            for rank, (left, right) in enumerate(self.merges)
        }
        self._byte_ids = [self._ids[symbol] for symbol in BYTE_SYMBOLS]
        self._bytes = [utf8(symbol) if symbol in self.specials else read_bytes(symbol) for symbol in self.vocabulary]
        self._special = _special_pattern(self.specials)
        self._cache: dict[str, list[int]] = {}

    def _check(self) -> None:
        known = set(self.vocabulary)
        for special in self.specials:
            if special not in known:
                raise refused("specials", "must be in the vocabulary", special)
        ordinary = known - set(self.specials)
        for symbol in BYTE_SYMBOLS:
            if symbol not in ordinary:
                raise refused("vocabulary", f"must have all 256 bytes beside the special tokens, also {symbol!r}")
        for left, right in self.merges:
            if not {left, right, left + right} <= ordinary:
                raise refused("merges", "must join symbols of the vocabulary to one of them", [left, right])
        if more := ordinary - set(BYTE_SYMBOLS) - {left + right for left, right in self.merges}:
            raise refused("vocabulary", "must hold bytes, merges and special tokens only", min(more))

    @classmethod
    def train(
        cls, texts: str | Iterable[str], size: int, specials: Sequence[str] = (), trainer: Trainer = "python"
    ) -> Self:
        """Learn from texts, each on its own; special tokens in them are left out.

        `trainer="rust"` uses the trainer of the package tokenizers: it reads on all cores and resolves ties by ids, so
        it may learn other merges. On two cores it was no faster (2 MB, 10,000 symbols: 1.7 s against 1.6 s).
        """
        if trainer not in ("python", "rust"):
            raise ConfigError("trainer", "must be python or rust", trainer)
        specials = different_strings("specials", specials)
        for special in specials:
            if special in BYTE_SYMBOLS:
                raise refused("specials", "must not be a single byte", special, "Try <|endoftext|>.")
        check_size(size, len(specials) + len(BYTE_SYMBOLS))
        pieces = _plain_pieces([texts] if isinstance(texts, str) else texts, specials)
        first = next(pieces, None)
        if first is None:
            raise DataError("the text must have at least one character to learn from; got none. Give more text.")
        learn = cls._train_rust if trainer == "rust" else cls._train_python
        return learn(chain((first,), pieces), size, specials)

    @classmethod
    def _train_python(cls, pieces: Iterable[str], size: int, specials: Sequence[str]) -> Self:
        counts = Counter(word for piece in pieces for word in pretokens(piece))
        words = {utf8(word): count for word, count in counts.items()}
        alphabet = [*map(utf8, specials), *(bytes([byte]) for byte in range(256))]
        learned = learn_merges(words, alphabet, size, ties="smallest")
        merges = [(show_bytes(left), show_bytes(right)) for left, right in learned]
        products = dict.fromkeys(left + right for left, right in merges)
        return cls((*specials, *_ALPHABET, *products), merges, specials)

    @classmethod
    def _train_rust(cls, pieces: Iterable[str], size: int, specials: Sequence[str]) -> Self:
        try:
            from tokenizers import Tokenizer, models, pre_tokenizers, trainers
        except ImportError:
            raise MissingExtra("the package tokenizers", "tokenizers", "the trainer rust") from None
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # pyright: ignore[reportAttributeAccessIssue]
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=list(specials),
            initial_alphabet=list(BYTE_SYMBOLS),
            show_progress=False,
        )
        tokenizer.train_from_iterator(pieces, trainer)
        model = json.loads(tokenizer.to_str())["model"]
        if len(model["vocab"]) < size:
            raise too_large(size, len(model["vocab"]))
        vocabulary = sorted(model["vocab"], key=model["vocab"].get)
        return cls(vocabulary, [(left, right) for left, right in model["merges"]], specials)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for index, piece in enumerate(self._special.split(text)):  # plain, special, plain, …
            if index % 2:
                ids.append(self._ids[piece])
            else:
                for word in pretokens(piece):
                    ids.extend(self._encode_word(word))
        return ids

    def encode_iter(self, chunks: Iterable[str]) -> Iterator[int]:
        """The ids of the joined chunks, without joining them.

        Holds one chunk and what later text could still change: at most about twice the longest word or special
        token.
        """
        held, enough = "", 0
        for chunk in chunks:
            held += chunk
            if len(held) >= enough:
                ids, end = self._settled(held)
                yield from ids
                held = held[end:]
                enough = 2 * len(held)  # a long word is not scanned again for each small chunk
        yield from self.encode(held)

    def _settled(self, text: str) -> tuple[list[int], int]:
        """The ids that stay the same whatever follows the text, and where in the text they end."""
        # Before this place no special token can begin that is not visible in full.
        limit = len(text) - max(map(len, self.specials), default=1) + 1
        ids, begin = [], 0
        for match in self._special.finditer(text):
            if match.start() >= limit:
                break
            ids.extend(self.encode(text[begin : match.end()]))
            begin = match.end()
        for word in pretokens(text[begin:limit]):
            # A word depends on at most two characters after it: `'` on the `re` that may follow, a blank on whether
            # the blank after it is the last.
            if begin + len(word) > limit - 2:
                break
            ids.extend(self._encode_word(word))
            begin += len(word)
        return ids, begin

    def _encode_word(self, word: str) -> list[int]:
        if word in self._cache:
            return self._cache[word]
        ids = self._join([self._byte_ids[byte] for byte in utf8(word)])
        if len(word) <= _CACHED_LENGTH:
            if len(self._cache) >= _CACHED_WORDS:
                self._cache.clear()
            self._cache[word] = ids
        return ids

    def _join(self, ids: list[int]) -> list[int]:
        """Lowest rank first, then leftmost. A heap and linked neighbours: n log n, also for a word of a megabyte."""
        before, after = list(range(-1, len(ids) - 1)), [*range(1, len(ids)), -1]
        ranked = ((place, self._ranks.get(pair)) for place, pair in enumerate(pairwise(ids)))
        heap = [(found[0], place, found[1]) for place, found in ranked if found]
        heapify(heap)
        while heap:
            _, place, new = heappop(heap)
            right = after[place]
            # Outdated when a neighbour was joined meanwhile: −2 marks what was swallowed.
            if right < 0 or self._ranks.get((ids[place], ids[right]), (0, -1))[1] != new:
                continue
            ids[place], after[place], after[right] = new, after[right], -2
            if after[place] >= 0:
                before[after[place]] = place
            for left in (before[place], place):
                if left >= 0 and after[left] >= 0 and (found := self._ranks.get((ids[left], ids[after[left]]))):
                    heappush(heap, (found[0], left, found[1]))
        return [token for token, link in zip(ids, after, strict=True) if link != -2]

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Exactly the bytes that were encoded."""
        self.symbols(ids)
        return b"".join(self._bytes[index] for index in ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text with its special tokens; bytes that are no UTF-8, as a model may produce, become U+FFFD."""
        return self.decode_bytes(ids).decode(errors="replace")

    def to_json(self) -> Json:
        return {
            "kind": self.kind,
            "format": FORMAT,
            "vocabulary": list(self.vocabulary),
            "merges": [list(pair) for pair in self.merges],
            "specials": list(self.specials),
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls(**fields_of(data, cls.kind, "vocabulary", "merges", "specials"))


def _special_pattern(specials: Sequence[str]) -> re.Pattern[str]:
    """One group, so that `split` keeps what it splits at; the longer of two special tokens is tried first."""
    alternatives = "|".join(re.escape(special) for special in sorted(specials, key=len, reverse=True))
    return re.compile(f"({alternatives or '(?!)'})")


def _plain_pieces(texts: Iterable[str], specials: Sequence[str]) -> Iterator[str]:
    pattern = _special_pattern(specials)
    for text in texts:
        utf8(text)  # refuses what has no bytes
        yield from filter(None, pattern.split(text)[::2])
