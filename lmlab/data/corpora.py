"""The catalogue: corpora that are made here, and real ones that can be fetched by name.

    corpus("stories").text                          made here, a million characters
    corpus("utterances", amount=5000).rows          made here, five thousand utterances
    corpus("tinyshakespeare", folder).text          fetched before (`lmlab.data.fetch`)

Nothing is downloaded by asking for a corpus.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from lmlab.core.errors import ConfigError, DataError
from lmlab.core.registry import Registry
from lmlab.data import stories, utterances
from lmlab.data.files import read_librispeech, read_text

CHARACTERS: Final = 1_000_000
"""Of a text that is made here, unless the caller says otherwise."""
UTTERANCES: Final = 10_000
"""Of a corpus of utterances that is made here."""


@dataclass(frozen=True)
class Corpus:
    """What the catalogue says about a corpus."""

    name: str
    title: str
    kind: Literal["text", "utterances"]
    licence: str
    address: str = ""
    """Where it is downloaded; empty: it is made here."""
    size: int = 0
    """Bytes of the download."""
    sha256: str = ""
    """Of the download; empty: not pinned, so that the first download is recorded and later ones must agree with it."""

    @property
    def built_in(self) -> bool:
        return not self.address

    @property
    def archive(self) -> bool:
        """Whether the transcripts have to be taken out of what is downloaded."""
        return self.address.endswith(".tar.gz")

    @property
    def file(self) -> str:
        """The name the download has in a folder of corpora."""
        return f"{self.name}.tar.gz" if self.archive else f"{self.name}.txt"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"built_in": self.built_in}


@dataclass(frozen=True)
class Content:
    """A corpus that was read or made: its utterances, or its text as the only row."""

    rows: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.rows)

    @property
    def digest(self) -> str:
        return content_digest(self.rows)

    def __repr__(self) -> str:
        return f"Content({len(self.rows)} rows, {sum(map(len, self.rows))} characters)"


# Sizes and checksums of the LibriSpeech archives are those that torchaudio checks its downloads against; TinyStories'
# are those of the file in the dataset's repository.
_ENTRIES: Final = (
    Corpus("stories", "Small stories, made here", "text", "the licence of lmlab"),
    Corpus("utterances", "Read speech, made here", "utterances", "the licence of lmlab"),
    Corpus(
        "tinyshakespeare",
        "Tiny Shakespeare (Karpathy, 2015)",
        "text",
        "public domain",
        "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        1_115_394,
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ),
    Corpus(
        "tinystories",
        "TinyStories, validation part (Eldan and Li, 2023)",
        "text",
        "CDLA-Sharing-1.0",
        "https://huggingface.co/datasets/roneneldan/TinyStories/resolve/main/TinyStories-valid.txt",
        19_447_282,
        "94e431816c4cce81ff71e4408ff8d3bda9a42e8d2663986697c3954288cb38b4",
    ),
    Corpus(
        "librispeech",
        "LibriSpeech dev-clean, transcripts (Panayotov et al., 2015)",
        "utterances",
        "CC BY 4.0",
        "https://www.openslr.org/resources/12/dev-clean.tar.gz",
        337_926_286,
        "76f87d090650617fca0cac8f88b9416e0ebf80350acb97b343a85fa903728ab3",
    ),
    Corpus(
        "librispeech-100",
        "LibriSpeech train-clean-100, transcripts (Panayotov et al., 2015)",
        "utterances",
        "CC BY 4.0",
        "https://www.openslr.org/resources/12/train-clean-100.tar.gz",
        6_387_309_499,
        "d4ddd1d5a6ab303066f14971d768ee43278a5f2a0aa43dc716b0e64ecbbbf6e2",
    ),
)
corpora: Final[Registry[Corpus]] = Registry("corpus")
for _entry in _ENTRIES:
    corpora.register(_entry.name)(_entry)


def corpus(name: str, folder: str | Path = "", amount: int | None = None, seed: int = 0) -> Content:
    """The content of a corpus, or its first characters or utterances; the seed is for corpora that are made here.

    `folder` is where `fetch` put it. DataError where it is not there, or not what the catalogue says.
    """
    entry = corpora[name]
    if amount is not None and amount < 1:
        raise ConfigError("amount", "must be at least 1", amount)
    if entry.built_in:
        if entry.kind == "text":
            return Content((stories.generate(CHARACTERS if amount is None else amount, seed),))
        return Content(tuple(utterances.generate(UTTERANCES if amount is None else amount, seed)))
    from lmlab.data.fetch import find  # which needs the catalogue

    path = find(name, folder)
    if path is None:
        raise DataError(f"{name} is not in {folder or '.'}. Get it with: lmlab data fetch {name}")
    if entry.kind == "utterances":
        return Content(tuple(read_librispeech(path)[:amount]))
    return Content((without_marks(read_text(path))[:amount],))


def without_marks(text: str) -> str:
    """TinyStories as one text: its stories on lines after each other, without the `<|endoftext|>` between them."""
    pieces = text.split("<|endoftext|>")
    return "\n".join(filter(None, (piece.strip() for piece in pieces))) if len(pieces) > 1 else text


def content_digest(content: str | Iterable[str]) -> str:
    """SHA-256 of a text, or of utterances on lines after each other: what a run's identity says of its data."""
    text = content if isinstance(content, str) else "\n".join(content)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
