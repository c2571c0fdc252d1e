"""Transcripts: one utterance per row, `<sos> … <eos>`, shorter ones padded with `<pad>`, which never counts.

    inputs   <sos> H E L L O              targets   H E L L O <eos>

All utterances are one stream in memory; a batch is gathered by row and padded then. (Document 003.)
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
from lmlab.core.randomness import words
from lmlab.data import utterances
from lmlab.data.characters import TranscriptTokenizer
from lmlab.data.files import read_librispeech, read_rows, read_text, read_utterances
from lmlab.data.task import Examples, Family, Speech, Split, Task, Tokenizer, tasks
from lmlab.data.text import ROW_SUFFIXES


@dataclass(frozen=True)
class Utterances:
    """A table of utterances: tokens (T,) of all of them with their markers, where each begins and how long it is."""

    tokens: Tensor
    starts: Tensor
    sizes: Tensor
    window: int
    pad: int
    crop: bool = False

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def length(self) -> int:
        return self.window

    def at(self, rows: Tensor, key: Tensor | None = None) -> Examples:
        """rows (…,) → inputs (…, S); what lies past the end of an utterance is padding.

        With `crop` and a key, a long utterance begins at a random place, another one each time it is drawn.
        """
        offset = torch.arange(self.window + 1, device=rows.device)
        start, size = self.starts[rows].unsqueeze(-1), self.sizes[rows].unsqueeze(-1)
        if self.crop and key is not None:
            spare = (size - self.window - 1).clamp(min=0)
            skipped = words(key, rows).unsqueeze(-1) % (spare + 1)
            start, size = start + skipped, size - skipped
        size = size.clamp(max=self.window + 1)
        place = start + offset.minimum(size - 1)
        chunk = torch.where(offset < size, self.tokens[place].long(), self.pad)
        weights = (offset[1:] < size).float()
        # The last input of a full row is not <eos>: that is only ever a target.
        inputs = torch.where(offset[1:] < size, chunk[..., :-1], self.pad)
        return Examples(inputs, chunk[..., 1:], weights, torch.zeros_like(rows))

    def to(self, device: torch.device) -> Utterances:
        tokens, starts, sizes = (part.to(device) for part in (self.tokens, self.starts, self.sizes))
        return Utterances(tokens, starts, sizes, self.window, self.pad, self.crop)


@tasks.register("transcripts")
class Transcripts(Task):
    """Letters of utterances (document 003): a file of them, a LibriSpeech folder, or utterances made up here."""

    family: ClassVar[Family] = "token"
    only_rows: ClassVar[frozenset[str]] = frozenset({"validation", "measured"})

    name: Literal["transcripts"] = "transcripts"
    path: str = ""
    """A .csv, .tsv, .jsonl, .parquet, .npy or .npz file, a text of one utterance per line, or a LibriSpeech folder."""
    column: str = "transcript"
    """The column or field of a file that has several."""
    count: int = 5000
    """How many built-in utterances are made."""
    one_marker: bool = False
    """`<sos>` and `<eos>` are one symbol."""
    window: int = 120
    """S, the most symbols of an utterance; longer ones are cut."""
    crop: bool = False
    """While training, a longer utterance begins at a random place instead of at its start."""
    validation: float = 0.1
    """Share of the utterances held out, the last ones; 0: none."""
    measured: int = 200
    """Utterances of each side that are evaluated, evenly spaced; 0: all."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_ranges(window=(2, 65_536), count=(2, 1_000_000), measured=(0, 10**9))
        if not 0 <= self.validation < 1:
            raise ConfigError(self.field("validation"), "must be at least 0 and below 1", self.validation, "Try 0.1.")
        return self

    def identity(self) -> Json:
        """What counts of a file is its content, not its place."""
        own = {name: value for name, value in super().identity().items() if name not in ("path", "column", "count")}
        return {**own, "content": _spoken(*self._source)[1], "tokenizer_digest": self.build_tokenizer().digest}

    @property
    def _source(self) -> tuple[str, str, int, float]:
        changed = Path(self.path).stat().st_mtime if self.path and Path(self.path).exists() else 0.0
        return self.path, self.column, self.count, changed

    def build_tokenizer(self) -> TranscriptTokenizer:
        return TranscriptTokenizer(self.one_marker)

    def speech(self, tokenizer: Tokenizer) -> Speech:
        assert isinstance(tokenizer, TranscriptTokenizer)
        hidden = tuple({tokenizer.sos, tokenizer.pad} - {tokenizer.eos})
        return Speech((tokenizer.sos,), (tokenizer.eos,), hidden, (tokenizer.eos,))

    def symbol_bytes(self) -> Tensor:
        tokenizer = self.build_tokenizer()
        special = {tokenizer.sos, tokenizer.eos, tokenizer.pad}
        return torch.tensor([0.0 if index in special else 1.0 for index in range(self.symbols)])

    @property
    def length(self) -> int:
        return self.window

    @property
    def padding(self) -> int:
        return self.build_tokenizer().pad

    def split(self, seed: int) -> Split:  # noqa: ARG002  (utterances are split by order)
        table = _table(self._source, self.one_marker, self.window, self.crop)
        train = int(len(table) * (1 - self.validation))
        if train == 0 or (self.validation and train == len(table)):
            side = "train" if train == 0 else "validate"
            rule = f"leaves nothing to {side} on: there are {len(table)} utterances"
            raise ConfigError(self.field("validation"), rule, self.validation, "Use more utterances.")
        rows = torch.arange(len(table))
        return Split(table, rows[:train], rows[train:], measured=self.measured)


@lru_cache(maxsize=4)
def _spoken(path: str, column: str, count: int, _changed: float) -> tuple[tuple[str, ...], str]:
    """The utterances and the digest of their content."""
    if not path:
        spoken = utterances.generate(count)
    elif Path(path).is_dir():
        spoken = read_librispeech(path)
    elif Path(path).suffix.lower() in (".npy", ".npz"):
        spoken = read_utterances(path, TranscriptTokenizer().vocabulary)
    elif Path(path).suffix.lower() in ROW_SUFFIXES:
        spoken = read_rows(path, column)
    else:
        spoken = read_text(path).splitlines()
    spoken = tuple(line.strip() for line in spoken if line.strip())
    if not spoken:
        raise DataError(f"there is no utterance in {path}. Give another task.path.")
    return spoken, sha256("\n".join(spoken).encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=4)
def _table(source: tuple[str, str, int, float], one_marker: bool, window: int, crop: bool) -> Utterances:
    tokenizer = TranscriptTokenizer(one_marker)
    rows = [[tokenizer.sos, *tokenizer.encode(line), tokenizer.eos] for line in _spoken(*source)[0]]
    sizes = torch.tensor([len(row) for row in rows])
    tokens = torch.from_numpy(np.fromiter((token for row in rows for token in row), dtype=np.int32))
    return Utterances(tokens, sizes.cumsum(0) - sizes, sizes, window, tokenizer.pad, crop)
