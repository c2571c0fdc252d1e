"""`lmlab data …`: corpora made here, and real ones by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmlab.apps.options import JsonFlag, LabFolder, new_app

if TYPE_CHECKING:
    from lmlab.data.corpora import Corpus

app = new_app("Corpora: list, show, fetch.")

CorpusName = Annotated[str, typer.Argument(metavar="NAME", help="A corpus; see: lmlab data list")]


def _folder(lab: Path | None) -> Path:
    """Where fetched corpora lie: in the lab, beside its runs."""
    from lmlab.runs.lab import Lab

    return Lab.place(lab) / "data"


def _state(entry: Corpus, folder: Path) -> str:
    """Whether a corpus can be used: made here, yes, no, or damaged."""
    from lmlab.core.errors import DataError
    from lmlab.data.fetch import find

    if entry.built_in:
        return "made here"
    try:
        return "no" if find(entry, folder) is None else "yes"
    except DataError:
        return "damaged"


@app.command("list")
def list_corpora(lab: LabFolder = None, as_json: JsonFlag = False) -> None:
    """Every corpus there is, and whether it is here."""
    from lmlab.apps.console import output, show, table
    from lmlab.data.corpora import corpora

    known = [corpora[name] for name in corpora]
    state = {entry.name: _state(entry, _folder(lab)) for entry in known}
    document = {
        "corpora": [
            {**e.to_json(), "here": state[e.name] in ("made here", "yes"), "state": state[e.name]} for e in known
        ]
    }
    cells = [(entry.name, entry.title, entry.licence, state[entry.name]) for entry in known]
    show(document, as_json, lambda: output.print(table("", ("corpus", "title", "licence", "here"), cells)))


@app.command("show")
def show_corpus(name: CorpusName, lab: LabFolder = None, as_json: JsonFlag = False) -> None:
    """What a corpus is, and how it begins."""
    from lmlab.apps.console import output, show
    from lmlab.data.corpora import corpora, corpus
    from lmlab.data.fetch import by_hand, find

    entry, folder = corpora[name], _folder(lab)
    here = entry.built_in or find(entry, folder) is not None
    sample = corpus(name, folder).text[:600] if here else ""
    document = {**entry.to_json(), "here": here, "sample": sample}

    def render() -> None:
        output.print(f"{entry.title} ({entry.licence})", highlight=False)
        output.print(sample if here else by_hand(entry, folder), highlight=False, markup=False)

    show(document, as_json, render)


@app.command()
def fetch(name: CorpusName, lab: LabFolder = None, as_json: JsonFlag = False) -> None:
    """Download a corpus into the lab; goes on where an earlier try stopped, and checks what came."""
    from lmlab.apps.console import output, show
    from lmlab.data.fetch import fetch as fetch_corpus

    path = fetch_corpus(name, _folder(lab))
    document = {"corpus": name, "path": str(path)}
    show(document, as_json, lambda: output.print(f"{path}\nUse it with: --set task.path={path}", highlight=False))
