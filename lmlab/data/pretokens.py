r"""GPT-2's pre-tokenisation and its printable bytes (Radford et al., 2019): what byte-pair encoding starts from.

A text is cut into words, and merges never cross a cut. The words are the successive matches of

    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

so a word takes one space in front with it, and a run of blanks leaves its last one to the word that follows.
Each byte of a word's UTF-8 is shown as one printable character; a space is shown as Ġ.

Python's `re` knows neither \p{L} nor \p{N}, and its \s has four characters more. So each character is first
replaced by one letter for its class, and an ordinary pattern runs over that string.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final
from unicodedata import category

from lmlab.core.errors import DataError

_BLANKS: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
# Letters and numbers of Unicode 15 and 16 that the tables of Python 3.11 do not have: with them the same text has
# the same words in every Python.
_YOUNG_LETTERS: Final = (
    "1c89-1c8a a7cb-a7cd a7da-a7dc 105c0-105f3 10d4a-10d65 10d6f-10d85 10ec2-10ec4 1123f-11240 11380-11389 1138b 1138e "
    "11390-113b5 113b7 113d1 113d3 11bc0-11be0 11f02 11f04-11f10 11f12-11f33 1342f 13441-13446 13460-143fa 16100-1611d "
    "16d40-16d6c 18cff 1b132 1b155 1df25-1df2a 1e030-1e06d 1e4d0-1e4eb 1e5d0-1e5ed 1e5f0 2b739 2ebf0-2ee5d 31350-323af"
)
_YOUNG_NUMBERS: Final = (
    "10d40-10d49 116d0-116e3 11bf0-11bf9 11f50-11f59 16130-16139 16d70-16d79 1ccf0-1ccf9 1d2c0-1d2d3 1e4f0-1e4f9 "
    "1e5f1-1e5fa"
)
_WORD: Final = re.compile(r"'(?:[stmd]|re|ve|ll)| ?[Lstrevmld]+| ?0+| ?[.']+|[ _]+(?![^ _])|[ _]+")


class _Classes(dict[int, str]):
    """Code point → class: L letter, 0 number, _ blank, . any other. What contractions and ` ?` look for stays."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _class_of(code)
        return found


def _class_of(code: int) -> str:
    character = chr(code)
    if character in "strevmld' ":
        return character
    if character in _BLANKS:
        return "_"
    kind = category(character)
    if kind[0] == "L" or (kind == "Cn" and code in _within(_YOUNG_LETTERS)):
        return "L"
    if kind[0] == "N" or (kind == "Cn" and code in _within(_YOUNG_NUMBERS)):
        return "0"
    return "."


@cache
def _within(ranges: str) -> frozenset[int]:
    bounds = [part.partition("-") for part in ranges.split()]
    return frozenset(code for first, _, last in bounds for code in range(int(first, 16), int(last or first, 16) + 1))


_CLASSES: Final = _Classes()


def pretokens(text: str) -> list[str]:
    """The words of a text; joined they are the text."""
    return [text[match.start() : match.end()] for match in _WORD.finditer(text.translate(_CLASSES))]


def _byte_symbols() -> tuple[str, ...]:
    """A printable Latin-1 byte shows itself; the other 68, in their order, are shown as U+0100, U+0101, …"""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in printable else next(others)) for byte in range(256))


BYTE_SYMBOLS: Final = _byte_symbols()
"""BYTE_SYMBOLS[b] shows the byte b."""

_TO_SYMBOLS: Final = dict(enumerate(BYTE_SYMBOLS))
_TO_BYTES: Final = {ord(symbol): byte for byte, symbol in enumerate(BYTE_SYMBOLS)}


def utf8(text: str) -> bytes:
    """The bytes of a text; half of a surrogate pair has none."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"the text must be Unicode without lone surrogates; got {text[error.start]!r} at character {error.start}. "
            "Read the file as UTF-8, or with errors='replace'."
        ) from None


def show_bytes(data: bytes) -> str:
    """One printable character per byte: b" the" → "Ġthe"."""
    return data.decode("latin-1").translate(_TO_SYMBOLS)


def read_bytes(symbols: str) -> bytes:
    """The inverse of `show_bytes`."""
    return symbols.translate(_TO_BYTES).encode("latin-1")
