"""`lmlab data …`: corpora made here, and real ones by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmlab.apps.options import JsonFlag, LabFolder, new_app

app = new_app("Corpora: list, show, fetch.")

CorpusName = Annotated[str, typer.Argument(metavar="NAME", help="A corpus; see: lmlab data list")]


def _folder(lab: Path | None) -> Path:
    """Where fetched corpora lie: in the lab, beside its runs."""
    from lmlab.runs.lab import Lab

    return Lab.place(lab) / "data"


@app.command("list")
def list_corpora(lab: LabFolder = None, as_json: JsonFlag = False) -> None:
    """Every corpus there is, and whether it is here."""
    from lmlab.apps.console import output, show, table
    from lmlab.data.corpora import corpora
    from lmlab.data.fetch import find

    known = [corpora[name] for name in corpora]
    here = {entry.name: entry.built_in or find(entry, _folder(lab)) is not None for entry in known}
    document = {"corpora": [{**entry.to_json(), "here": here[entry.name]} for entry in known]}
    cells = [
        (e.name, e.title, e.licence, "made here" if e.built_in else "yes" if here[e.name] else "no") for e in known
    ]
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
