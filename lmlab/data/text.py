"""Text: a stream of tokens, cut into windows. The stream is in memory once; windows are gathered by row.

    window i = tokens i·stride … i·stride + S,   inputs its first S, targets its last S

Stride 1 gives every window there is (document 002), stride S the chunks of document 004. The split is by order: the
first windows are trained on, the last held out, and between them is a gap, so that no text is on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor

from lmlab.core.config import Json
from lmlab.core.errors import ConfigError, DataError
from lmlab.data import stories
from lmlab.data.byte_bpe import ByteBPE
from lmlab.data.characters import CharacterTokenizer
from lmlab.data.corpora import without_marks
from lmlab.data.corpus_bpe import CorpusBPE
from lmlab.data.files import drop_speakers, read_rows, read_text
from lmlab.data.pretokens import read_bytes
from lmlab.data.task import Examples, Family, Speech, Split, Task, Tokenizer, tasks

ROW_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
TokenizerKind = Literal["characters", "corpus-bpe", "byte-bpe"]
TextTokenizer = CharacterTokenizer | CorpusBPE | ByteBPE


@dataclass(frozen=True)
class Windows:
    """A table of windows over a stream of tokens (T,) int64."""

    tokens: Tensor
    window: int
    stride: int

    def __len__(self) -> int:
        return max(0, (len(self.tokens) - self.window - 1) // self.stride + 1)

    @property
    def length(self) -> int:
        return self.window

    def at(self, rows: Tensor, key: Tensor | None = None) -> Examples:  # noqa: ARG002
        """rows (…,) → inputs (…, S)"""
        place = (rows * self.stride).unsqueeze(-1) + torch.arange(self.window + 1, device=rows.device)
        chunk = self.tokens[place].long()
        targets = chunk[..., 1:]
        weights = torch.ones((), device=rows.device).expand(targets.shape)
        return Examples(chunk[..., :-1], targets, weights, torch.zeros_like(rows))

    def to(self, device: torch.device) -> Windows:
        return Windows(self.tokens.to(device), self.window, self.stride)


@tasks.register("text")
class Text(Task):
    """Next-token prediction on a text: your own file, or stories made up here."""

    family: ClassVar[Family] = "token"
    only_rows: ClassVar[frozenset[str]] = frozenset({"validation", "gap", "measured"})
    derived: ClassVar = {"stride": lambda task: task.window, "gap": lambda task: task.window}

    name: Literal["text"] = "text"
    path: str = ""
    """A .txt, .csv, .tsv, .jsonl or .parquet file; empty: the built-in stories."""
    column: str = "text"
    """The column or field of a file that has several."""
    characters: int = 1_000_000
    """How much of the built-in stories is made."""
    drop_speakers: bool = False
    """Leave out the line after an empty line (the speaker of a play), as document 002 does."""
    tokenizer: TokenizerKind = "characters"
    vocabulary: int = 0
    """Symbols: the size of a BPE (0: 500), or how many a character model has room for (0: as many as the text has)."""
    window: int = 100
    """S, tokens of an example."""
    stride: int = 100
    """Tokens from one window to the next; follows `window` unless set."""
    gap: int = 100
    """Tokens left out between training and validation; follows `window` unless set."""
    validation: float = 0.1
    """Share of the windows held out, the last ones; 0: none."""
    measured: int = 200
    """Windows of each side that are evaluated, evenly spaced; 0: all."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_ranges(
            window=(1, 65_536),
            stride=(1, 65_536),
            gap=(0, 10**9),
            vocabulary=(0, 1_000_000),
            measured=(0, 10**9),
            characters=(1_000, 100_000_000),
        )
        if not 0 <= self.validation < 1:
            raise ConfigError(self.field("validation"), "must be at least 0 and below 1", self.validation, "Try 0.1.")
        return self

    def identity(self) -> Json:
        """What counts of a file is its content, not its place."""
        usual = super().identity()
        own = {name: value for name, value in usual.items() if name not in ("path", "column", "characters")}
        return {**own, "content": _corpus(*self._source).digest, "tokenizer_digest": self.build_tokenizer().digest}

    @property
    def _source(self) -> tuple[str, str, int, bool, float]:
        changed = Path(self.path).stat().st_mtime if self.path and Path(self.path).is_file() else 0.0
        return self.path, self.column, self.characters, self.drop_speakers, changed

    def text(self) -> str:
        """The corpus, cleaned."""
        return _corpus(*self._source).text

    def build_tokenizer(self) -> TextTokenizer:
        return _tokenized(self._source, self.tokenizer, self.vocabulary)[0]

    @property
    def symbols(self) -> int:
        known = len(self.build_tokenizer().vocabulary)
        if self.tokenizer == "characters" and 0 < self.vocabulary < known:
            raise ConfigError(
                self.field("vocabulary"),
                f"must be at least the symbols of the text ({known})",
                self.vocabulary,
                "Use 0.",
            )
        return max(known, self.vocabulary)

    def speech(self, tokenizer: Tokenizer) -> Speech:
        room = range(len(tokenizer.vocabulary), max(len(tokenizer.vocabulary), self.vocabulary))
        return Speech(hidden=tuple(room))

    def symbol_bytes(self) -> Tensor:
        sizes = [len(piece) for piece in _bytes_of(self.build_tokenizer())]
        return torch.tensor(sizes + [0] * (self.symbols - len(sizes)), dtype=torch.float32)

    @property
    def length(self) -> int:
        return self.window

    @property
    def padding(self) -> None:
        return None

    def split(self, seed: int) -> Split:  # noqa: ARG002  (the split of a text is by order)
        table = Windows(_tokenized(self._source, self.tokenizer, self.vocabulary)[1], self.window, self.stride)
        if len(table) == 0:
            raise ConfigError(
                self.field("window"), f"must be below the length of the text ({len(table.tokens)} tokens)", self.window
            )
        train = int(len(table) * (1 - self.validation))
        first = -(-(train * self.stride + self.gap) // self.stride) if self.validation else len(table)
        rows = torch.arange(len(table))
        if train == 0 or (self.validation and first >= len(table)):
            side = "train" if train == 0 else "validate"
            raise ConfigError(
                self.field("validation"),
                f"leaves nothing to {side} on: the text has {len(table)} windows of {self.window}",
                self.validation,
                "Use a longer text or a shorter window.",
            )
        return Split(table, rows[:train], rows[first:], measured=self.measured)


@dataclass(frozen=True)
class Corpus:
    text: str
    digest: str


@lru_cache(maxsize=4)
def _corpus(path: str, column: str, characters: int, without_speakers: bool, _changed: float) -> Corpus:
    if not path:
        text = stories.generate(characters)
    elif Path(path).suffix.lower() in ROW_SUFFIXES:
        text = "\n".join(read_rows(path, column))
    else:
        text = without_marks(read_text(path))
    if without_speakers:
        text = drop_speakers(text)
    if len(set(text)) < 2:
        what = "is empty" if not text else "has only one symbol"
        raise DataError(
            f"the text {path or 'made here'} {what}; nothing can be learnt from it. Give another task.path."
        )
    return Corpus(text, sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


@lru_cache(maxsize=4)
def _tokenized(
    source: tuple[str, str, int, bool, float], kind: TokenizerKind, vocabulary: int
) -> tuple[TextTokenizer, Tensor]:
    text = _corpus(*source).text
    match kind:
        case "characters":
            tokenizer = CharacterTokenizer.train(text)
            ids = tokenizer.encode(text)
        case "corpus-bpe":
            lines = text.splitlines()
            tokenizer = CorpusBPE.train(lines, vocabulary or 500)
            ids = tokenizer.encode_corpus(lines)
        case "byte-bpe":
            tokenizer = ByteBPE.train([text], vocabulary or 500)
            ids = tokenizer.encode(text)
    # Four bytes a token: a stream is small beside the batches cut out of it.
    return tokenizer, torch.from_numpy(np.asarray(ids, dtype=np.int32))


def _bytes_of(tokenizer: TextTokenizer) -> list[bytes]:
    if isinstance(tokenizer, ByteBPE):
        return [tokenizer.decode_bytes([index]) for index in range(len(tokenizer.vocabulary))]
    if isinstance(tokenizer, CorpusBPE):
        return [read_bytes(symbol) for symbol in tokenizer.vocabulary]
    return [symbol.encode("utf-8", "surrogatepass") for symbol in tokenizer.vocabulary]
