"""Tokenizers as files: written whole or not at all, and not trusted when read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from lmlab.core.errors import DataError
from lmlab.data.byte_bpe import ByteBPE
from lmlab.data.characters import CharacterTokenizer, TranscriptTokenizer
from lmlab.data.corpus_bpe import CorpusBPE
from lmlab.data.stored import StoredTokenizer, refused
from lmlab.data.tokenizer_json import from_hugging_face, to_hugging_face

KINDS: Final[dict[str, type[StoredTokenizer]]] = {
    tokenizer.kind: tokenizer for tokenizer in (CharacterTokenizer, TranscriptTokenizer, CorpusBPE, ByteBPE)
}


def save_tokenizer(tokenizer: StoredTokenizer, path: str | Path) -> None:
    """Write JSON; of a ByteBPE Hugging Face's `tokenizer.json`."""
    path = Path(path)
    content = to_hugging_face(tokenizer) if isinstance(tokenizer, ByteBPE) else tokenizer.to_json()
    temporary = path.parent / f"{path.name}.{os.getpid()}.tmp"
    try:
        temporary.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        with suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)
        raise DataError(f"{str(path)!r} cannot be written: {_reason(error)}. Choose another place.") from None


def load_tokenizer(source: Mapping[str, Any] | str | Path, kind: str | None = None) -> StoredTokenizer:
    """The tokenizer of a file or of JSON in memory; with `kind`, only one of that kind."""
    if isinstance(source, Mapping):
        return _from_json(source, kind)
    try:
        return _from_json(_read(Path(source)), kind)
    except DataError as error:
        raise DataError(f"{str(source)!r}: {error}") from None


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"the tokenizer cannot be read: {_reason(error)}. Check the path.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"the tokenizer must be complete JSON in UTF-8; {_reason(error)}. Save it again.") from None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error).partition("\n")[0]


def _from_json(data: Any, kind: str | None) -> StoredTokenizer:
    if not isinstance(data, Mapping):
        raise refused("kind", "must be given in a JSON object", type(data).__name__)
    found = data.get("kind", ByteBPE.kind if "model" in data else "none")
    if not isinstance(found, str) or found not in KINDS:
        raise refused("kind", f"must be one of {', '.join(KINDS)}", found)
    if kind is not None and found != kind:
        raise refused("kind", f"must be {kind!r}", found, "Give a tokenizer of that kind.")
    return from_hugging_face(data) if "kind" not in data else KINDS[found].from_json(data)
