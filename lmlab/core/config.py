"""Frozen configuration: forbids unknown fields, speaks the user's words, has a stable identity.

Every part of a spec is a subclass with a `section` ("task", "model", …), so that a broken rule reads
`model.width must be …` wherever it is noticed. Overrides are dotted paths, as typed after `--set`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from lmlab.core.errors import ConfigError, UnknownName

Json = dict[str, Any]


class Config(BaseModel):
    """Base of all configuration objects."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())

    section: ClassVar[str] = ""
    # Fields that follow others unless set: {"hidden": lambda config: config.width}.
    derived: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise _in_words(error, type(self)) from None

    @model_validator(mode="after")
    def _derive(self) -> Self:
        for name, rule in self.derived.items():
            if name not in self.model_fields_set:
                object.__setattr__(
                    self, name, rule(self)
                )  # frozen for users; not "set", so that an override derives it anew
        return self

    @classmethod
    def field(cls, name: str) -> str:
        """The dotted name of a field, as the user types it."""
        return f"{cls.section}.{name}" if cls.section else name

    def check_ranges(self, **limits: tuple[int, int]) -> None:
        """Refuse fields outside [low, high]: `self.check_ranges(width=(1, 65536))`."""
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise ConfigError(self.field(name), f"must be between {low} and {high}", getattr(self, name))

    def to_json(self) -> Json:
        """Every field with its value; `type(self)(**json)` gives the object back."""
        return json.loads(self.model_dump_json())

    def given(self) -> Json:
        """Only what was set explicitly: what an override starts from, so that derived fields are derived anew."""
        chosen = self.model_fields_set | {"name"}  # the name says which class it is, set or not
        return {name: value for name, value in self.to_json().items() if name in chosen}

    def identity(self) -> Json:
        """What the content hash covers: the name, and what differs from its default or from what it follows.

        Defaults are left out so that a field added in a later version does not rename every run.
        """
        usual = {
            name: self.derived[name](self) if name in self.derived else info.get_default(call_default_factory=True)
            for name, info in type(self).model_fields.items()
        }
        return {
            name: value
            for name, value in self.to_json().items()
            if name == "name" or getattr(self, name) != usual[name]
        }


def parse_assignment(text: str) -> tuple[str, Any]:
    """`model.width=64` → ("model.width", 64). A value is JSON where it parses as JSON, else a string."""
    path, equals, value = text.partition("=")
    path = path.strip()
    if not equals or not path:
        raise ConfigError("--set", "takes key.path=value", text, "Example: --set model.width=64")
    return path, parse_value(value)


def parse_value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constants)
    except (ValueError, RecursionError):
        return text.strip()


def _no_constants(name: str) -> Any:
    raise ValueError(f"{name} is not a number a spec can hold")


def nested(overrides: Mapping[str, Any]) -> dict[str, Json]:
    """{"model.width": 64} → {"model": {"width": 64}}; only two levels exist in a spec."""
    sections: dict[str, Json] = {}
    for path, value in overrides.items():
        section, dot, field = path.partition(".")
        if not dot or not field or "." in field:
            raise ConfigError(path, "must be a section and a field", path, "Example: model.width")
        sections.setdefault(section, {})[field] = value
    return sections


def _in_words(error: ValidationError, cls: type[Config]) -> ConfigError | UnknownName:
    """The first pydantic complaint as one line in the user's terms."""
    first = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in first["loc"] if not _is_internal(part))
    field = cls.field(path) if path else cls.section or cls.__name__
    if first["type"] == "extra_forbidden":
        return UnknownName(f"field of {cls.section or cls.__name__}", first["loc"][0], cls.model_fields)
    if first["type"] == "missing":
        return ConfigError(field, "is required", None)
    rule = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return ConfigError(field, "must be " + rule[0].lower() + rule[1:], first["input"])


def _is_internal(part: object) -> bool:
    # pydantic puts the branch of a union ("int", "tuple[int, ...]") into the path.
    return (isinstance(part, str) and not part.isidentifier()) or part in ("int", "str", "float", "bool")


def as_tuple(value: Any) -> Any:
    """One value or a list of them, as a tuple: `orders=2` and `orders=[2,3]` both work."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return (value,) if isinstance(value, int | float | str) else value
