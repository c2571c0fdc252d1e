"""Filling the templates. Text is escaped in HTML; symbols such as L_train get their subscripts there."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

_SUBSCRIPT = re.compile(r"\b([LAt])_(train|val|f)\b")
_DELAY = re.compile(r"Δt\(([LA])\)")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("lmlab.reports"),
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["symbols"] = symbols
    return environment


def page(template: str, **values: Any) -> str:
    """The template of that name with its values filled in."""
    return _environment().get_template(template).render(**values)


def symbols(text: str) -> Markup:
    """`t_f(A_val)` → t<sub>f</sub>(A<sub>val</sub>), everything else escaped."""
    delays = _DELAY.sub(r"Δ<i>t</i>(<i>\1</i>)", str(escape(text)))
    return Markup(_SUBSCRIPT.sub(r"<i>\1</i><sub>\2</sub>", delays))
