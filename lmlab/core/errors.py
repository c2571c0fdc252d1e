"""Errors a user can act on: one line that names the field, the rule, the value given and a way out.

    LabError
    ├── ConfigError     a field of a spec, study or option breaks a rule
    ├── UnknownName     a recipe, study, model, run … that does not exist
    ├── DataError       a corpus or table that cannot be used
    ├── StoreError      the lab folder or its database cannot be used
    │   └── LeaseLost   another process has taken this run over
    ├── CheckpointError a checkpoint that cannot be trusted
    └── MissingExtra    an optional package that is not installed

Command line: every LabError is printed as one line and ends with exit status 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class LabError(Exception):
    """Base of every error caused by input or surroundings rather than by a bug."""


class ConfigError(LabError):
    """`model.width must be a multiple of model.heads (4); got 130. Try 128 or 132.`"""

    def __init__(self, field: str, rule: str, value: object, remedy: str = "") -> None:
        self.field, self.rule, self.value, self.remedy = field, rule, value, remedy
        super().__init__(f"{field} {rule}; got {_short(value)}.{' ' + remedy if remedy else ''}")

    def __reduce__(self) -> tuple[type[ConfigError], tuple[str, str, object, str]]:
        # Worker processes send their errors home by pickle, which replays __init__ with these.
        return type(self), (self.field, self.rule, self.value, self.remedy)


class UnknownName(LabError):
    """`unknown recipe 'arithmetic-gtp'. Did you mean arithmetic-gpt?`"""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        close = get_close_matches(str(name), self.known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(self.known) or 'none'}."
        super().__init__(f"unknown {kind} {_short(name)}. {hint}")

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, object, list[str]]]:
        return type(self), (self.kind, self.name, self.known)


class DataError(LabError):
    """A corpus, table or split that cannot be used."""


class StoreError(LabError):
    """The lab folder or its database cannot be used."""


class LeaseLost(StoreError):
    """This process's claim on a run has passed to another; what it computes must not be written."""


class CheckpointError(LabError):
    """A checkpoint is damaged or belongs to another run."""


class MissingExtra(LabError):
    """An optional package is needed: the line says which and how to get it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra, self.purpose = package, extra, purpose
        super().__init__(f"{purpose} needs {package}. Install it with: pip install 'lmlab[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str, str]]:
        return type(self), (self.package, self.extra, self.purpose)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
