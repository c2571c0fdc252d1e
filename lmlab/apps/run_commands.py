"""`lmlab runs …`: what is in the lab."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lmlab.apps.options import JsonFlag, LabFolder, RunName, new_app

app = new_app("List, show, compare and delete runs.")


@app.command("list")
def list_runs(lab: LabFolder = None, as_json: JsonFlag = False) -> None:
    """Every run of the lab."""
    from lmlab.apps.console import output, show, table
    from lmlab.runs.lab import Lab

    opened = Lab.existing(lab)
    rows = opened.store.runs() if opened else []
    document = {
        "runs": [
            {
                "run": row.run,
                "label": row.label,
                "seed": row.seed,
                "status": row.state,
                "steps": row.step,
                "total": row.total,
                "seconds": row.seconds,
                "started": row.started,
            }
            for row in rows
        ]
    }

    def render() -> None:
        if not rows:
            output.print("No runs yet. Start with: lmlab train arithmetic-gpt", highlight=False)
            return
        cells = [
            (row.run, row.label, row.seed, row.state, f"{row.step:,}/{row.total:,}", f"{row.seconds:,.0f}")
            for row in rows
        ]
        columns = ("run", "recipe", "seed", "status", "steps", "seconds")
        output.print(table("", columns, cells, numeric=("seed", "steps", "seconds")))

    show(document, as_json, render)


@app.command("show")
def show_run(
    run: RunName,
    limit: Annotated[int | None, typer.Option("--limit", help="Only steps up to this one count.")] = None,
    lab: LabFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """A run's spec, status and best values."""
    from rich.pretty import Pretty

    from lmlab.apps.console import number, output, show, table
    from lmlab.runs.lab import Lab

    found = Lab(lab).run(run)
    extrema, row = found.extrema(limit), found.row
    document = {
        "run": found.id,
        "label": row.label,
        "seed": found.seed,
        "spec": row.spec,
        "status": found.status,
        "steps": row.step,
        "total": row.total,
        "note": row.note,
        "seconds": row.seconds,
        "machine": row.machine,
        "extrema": extrema,
    }

    def render() -> None:
        note = f" ({row.note})" if row.note else ""
        output.print(
            f"{found.id}  {row.label}  seed {found.seed}  {found.status}{note}  step {row.step:,}/{row.total:,}"
        )
        output.print(Pretty(row.spec))
        cells = [
            (name, number(extrema[name]), number(extrema[f"t_{name}"]))
            for name in ("loss_train", "loss_val", "accuracy_train", "accuracy_val")
        ]
        cells += [(name, number(extrema[name]), "") for name in ("delay_loss", "delay_accuracy")]
        output.print(table("", ("best", "value", "first at step"), cells, numeric=("value", "first at step")))

    show(document, as_json, render)


@app.command()
def metrics(run: RunName, lab: LabFolder = None, as_json: JsonFlag = False) -> None:
    """Every metric row of a run; without --json as CSV."""
    from lmlab.apps.console import show
    from lmlab.runs.lab import Lab

    found = Lab(lab).run(run)
    rows = found.lab.store.metrics(found.id)

    def render() -> None:
        sys.stdout.write("step,split,group,metric,value\n")
        sys.stdout.writelines(f"{row.step},{row.split},{row.group},{row.metric},{row.value!r}\n" for row in rows)

    show({"run": found.id, "rows": [vars(row) for row in rows]}, as_json, render)


@app.command()
def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN…")], lab: LabFolder = None, as_json: JsonFlag = False
) -> None:
    """Runs side by side: where their specs differ, and their best values."""
    from lmlab.apps.console import number, output, show, table
    from lmlab.core.errors import ConfigError
    from lmlab.runs.lab import Lab

    opened = Lab(lab)
    found = [opened.run(name) for name in runs]
    if len({run.id for run in found}) < 2:
        raise ConfigError("RUN", "must be at least two different runs", runs)
    flat = [
        {f"{section}.{field}": value for section, part in run.row.spec.items() for field, value in part.items()}
        for run in found
    ]
    fields = dict.fromkeys(field for spec in flat for field in spec)
    differing = [field for field in fields if len({repr(spec.get(field)) for spec in flat}) > 1]
    extrema = [run.extrema() for run in found]
    document = {
        "runs": [
            {"run": run.id, "label": run.row.label, "seed": run.seed, "status": run.status, "extrema": best}
            | {"differs": {field: spec[field] for field in differing if field in spec}}
            for run, spec, best in zip(found, flat, extrema, strict=True)
        ]
    }

    def render() -> None:
        cells = [(field, *(spec.get(field, "–") for spec in flat)) for field in differing]
        cells += [(name, *(number(best[name]) for best in extrema)) for name in extrema[0]]
        columns = ("", *(run.id for run in found))
        output.print(table("", columns, cells, numeric=columns[1:]))

    show(document, as_json, render)


@app.command()
def delete(
    run: RunName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    lab: LabFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """Forget a run: its metrics and its checkpoints. Asks first when typed in a terminal."""
    from lmlab.apps.console import output, show
    from lmlab.runs.lab import Lab

    opened = Lab(lab)
    found = opened.run(run)
    if sys.stdin.isatty() and not as_json and not yes:
        typer.confirm(f"Delete run {found.id} ({found.row.label}, seed {found.seed}) and its checkpoints?", abort=True)
    opened.delete(found.id)
    show({"deleted": found.id}, as_json, lambda: output.print(f"Deleted {found.id}.", highlight=False))
