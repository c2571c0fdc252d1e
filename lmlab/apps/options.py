"""Options that commands share, and the app they hang on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
LabFolder = Annotated[Path | None, typer.Option("--lab", help="The lab's folder [default: $LMLAB_HOME or ./lab].")]
Quick = Annotated[bool, typer.Option("--quick", help="The study in miniature.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, a unique prefix of it, or latest.")]


def new_app(help_text: str) -> typer.Typer:
    """Errors stay one line: no boxes, no tracebacks rendered by the framework."""
    return typer.Typer(
        help=help_text,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode=None,
    )
