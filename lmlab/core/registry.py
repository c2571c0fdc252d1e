"""Names for classes and functions: `models["gpt"]`, with "did you mean …?" for a name that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, cast

from lmlab.core.errors import UnknownName

T = TypeVar("T")
Entry = TypeVar("Entry")


class Registry(Generic[T]):
    """An ordered mapping name → entry that explains itself when a name is missing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[Entry], Entry]:
        def add(entry: Entry) -> Entry:
            if name in self._entries:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = cast(T, entry)
            return entry

        return add

    def __getitem__(self, name: object) -> T:
        if not isinstance(name, str) or name not in self._entries:
            raise UnknownName(self.kind, name, self._entries)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Registry({self.kind}: {', '.join(self)})"
