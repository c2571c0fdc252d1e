"""ByteBPE as Hugging Face's `tokenizer.json`, which the package tokenizers reads and gives the same ids.

Reading takes only what ByteBPE does: byte-level BPE with GPT-2's pre-tokenisation, no normalizer, and added
tokens that are special. Anything else would give other ids, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmlab.core.config import Json
from lmlab.data.byte_bpe import ByteBPE
from lmlab.data.stored import refused

_ELSEWHERE = "Give a byte-level BPE tokenizer such as GPT-2's."
_TOKEN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
_MODEL = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
# What may be read where it decides about ids; None: the field may be absent. No byte is ever unknown.
_ACCEPTED: dict[str, dict[str, tuple[object, ...]]] = {
    "model": {
        "type": ("BPE", None),
        "dropout": (None, 0),
        "continuing_subword_prefix": (None, ""),
        "end_of_word_suffix": (None, ""),
        "ignore_merges": (False, None),
    },
    "pre_tokenizer": {"type": ("ByteLevel",), "add_prefix_space": (False,), "use_regex": (True, None)},
    "decoder": {"type": ("ByteLevel",)},
    "post_processor": {"type": ("ByteLevel",)},
    "added_tokens": {field: (value,) for field, value in _TOKEN.items()},
}


def to_hugging_face(tokenizer: ByteBPE) -> Json:
    """The content of a `tokenizer.json`."""
    ids = {symbol: index for index, symbol in enumerate(tokenizer.vocabulary)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": index, "content": symbol, **_TOKEN} for symbol, index in ids.items() if symbol in tokenizer.specials
        ],
        "normalizer": None,
        "pre_tokenizer": dict(_BYTE_LEVEL),
        "post_processor": None,
        "decoder": dict(_BYTE_LEVEL),
        "model": {**_MODEL, "vocab": ids, "merges": [list(pair) for pair in tokenizer.merges]},
    }


def from_hugging_face(data: Mapping[str, Any]) -> ByteBPE:
    """The same tokenizer here, or a DataError that names what it does differently."""
    model = _section(data, "model")
    _accept("model", model)
    _accept("pre_tokenizer", _section(data, "pre_tokenizer"))
    if data.get("normalizer") is not None:
        raise refused("normalizer", "must be null", data["normalizer"], _ELSEWHERE)
    for name in ("decoder", "post_processor"):
        if data.get(name) is not None:
            _accept(name, _section(data, name))
    ids = dict(_ids("model.vocab", _section(model, "vocab")))
    specials = _specials(data.get("added_tokens", []))
    for special, index in specials.items():
        if ids.setdefault(special, index) != index:
            raise refused("added_tokens", f"must have the same id in model.vocab ({ids[special]})", {special: index})
    vocabulary = sorted(ids, key=ids.__getitem__)
    if [ids[symbol] for symbol in vocabulary] != list(range(len(ids))):
        raise refused("model.vocab", f"must number its {len(ids)} symbols 0 … {len(ids) - 1}, each once")
    return ByteBPE(vocabulary, _merges(model.get("merges")), sorted(specials, key=specials.__getitem__))


def _section(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = data.get(name)
    if not isinstance(section, Mapping):
        raise refused(name, "must be a JSON object", section if section is not None else "none", _ELSEWHERE)
    return section


def _accept(name: str, section: Mapping[str, Any]) -> None:
    for field, accepted in _ACCEPTED[name].items():
        if section.get(field) not in accepted:
            given = section.get(field)
            raise refused(f"{name}.{field}", f"must be {accepted[0]!r}", "none" if given is None else given, _ELSEWHERE)


def _ids(field: str, table: Mapping[str, Any]) -> Mapping[str, int]:
    for symbol, index in table.items():
        if isinstance(index, bool) or not isinstance(index, int):
            raise refused(field, "must map symbols to integers", {symbol: index})
    return table


def _specials(tokens: Any) -> dict[str, int]:
    if not isinstance(tokens, list):
        raise refused("added_tokens", "must be a list", type(tokens).__name__)
    specials = {}
    for token in tokens:
        if not isinstance(token, Mapping) or not isinstance(token.get("content"), str):
            raise refused("added_tokens", "must hold objects with a content", token if token is not None else "null")
        _accept("added_tokens", token)
        if token["content"] in specials:
            raise refused("added_tokens", "must not repeat a token", token["content"])
        specials[token["content"]] = token.get("id")
    return dict(_ids("added_tokens.id", specials))


def _merges(merges: Any) -> Any:
    """Older files write a pair as one string, `Ġ t`."""
    if isinstance(merges, list):
        return [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    return merges
