"""Sentences out of patterns: what the corpora made here are written with.

{A} {A.he} {thing}      a slot, filled by the caller: the same words each time
<food>                  a fresh draw from a list
ran|walked|             one of several, in brackets within a sentence; here nothing is one of them
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")
Draw = Callable[[], float]
"""Uniform in [0, 1): `Random.random`, the one method promised to stay the same in every version of Python."""


@dataclass(frozen=True, slots=True)
class Slot:
    """`{name}`"""

    name: str


@dataclass(frozen=True, slots=True)
class Words:
    """`<name>`"""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """`one|other`"""

    options: tuple[tuple[str | Slot | Words | Choice, ...], ...]


_MARKS: Final = re.compile(r"[\[\]|]|\{[^}]*\}|<[^>]*>")
_ARTICLE: Final = re.compile(r"\b([Aa]) (?=[aeiou])")


class Grammar:
    """Lists of alternatives that may refer to each other, and how a choice becomes text."""

    def __init__(self, lists: Mapping[str, str]) -> None:
        self._lists = {name: parse(text) for name, text in lists.items()}

    def expand(self, choice: Choice, slots: Mapping[str, str], draw: Draw) -> str:
        text = ""
        for part in pick(choice.options, draw):
            if isinstance(part, str):
                text += part
            elif isinstance(part, Slot):
                text += slots[part.name]
            else:
                text += self.expand(part if isinstance(part, Choice) else self._lists[part.name], slots, draw)
        return text


def parse(text: str) -> Choice:
    """`a [red|blue] <toy>|{A}` as alternatives of parts."""
    options: list[list[str | Slot | Words | Choice]] = [[]]
    outer: list[list[list[str | Slot | Words | Choice]]] = []
    end = 0
    for mark in _MARKS.finditer(text):
        if mark.start() > end:
            options[-1].append(text[end : mark.start()])
        end = mark.end()
        match mark[0][0]:
            case "[":
                outer.append(options)
                options = [[]]
            case "|":
                options.append([])
            case "]":
                choice = Choice(tuple(map(tuple, options)))
                options = outer.pop()
                options[-1].append(choice)
            case "{":
                options[-1].append(Slot(mark[0][1:-1]))
            case _:
                options[-1].append(Words(mark[0][1:-1]))
    if end < len(text):
        options[-1].append(text[end:])
    if outer:
        raise ValueError(f"a bracket is not closed: {text}")
    return Choice(tuple(map(tuple, options)))


def pick(options: Sequence[T], draw: Draw) -> T:
    return options[int(draw() * len(options))]


def with_articles(text: str) -> str:
    """`a old owl` → `an old owl`; the lists hold no word like hour or unit, spelt one way and spoken another."""
    return _ARTICLE.sub(r"\1n ", text)
