"""`lmlab study …`: whole studies, from list to report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmlab.apps.options import Device, JsonFlag, LabFolder, Quick, new_app

if TYPE_CHECKING:
    from lmlab.studies.study import Study

app = new_app("Run whole studies and report them.")

StudyName = Annotated[str, typer.Argument(metavar="NAME", help="A study; see: lmlab study list")]
Seeds = Annotated[str | None, typer.Option("--seeds", help="Other seeds than the study's, e.g. 0,1,2.")]


def _study(name: str, quick: bool, seeds: str | None = None) -> Study:
    from dataclasses import replace

    from lmlab.studies.study import parse_seeds, studies

    study = studies[name].quick() if quick else studies[name]
    return replace(study, seeds=parse_seeds(seeds)) if seeds is not None else study


@app.command("list")
def list_studies(as_json: JsonFlag = False, lab: LabFolder = None) -> None:  # noqa: ARG001
    """Every study there is."""
    from lmlab.apps.console import output, show, table
    from lmlab.studies.study import studies

    known = [studies[name] for name in studies]
    document = {"studies": [{"study": study.name, "title": study.title, "runs": len(study.runs())} for study in known]}
    cells = [(study.name, study.title, len(study.runs())) for study in known]
    show(document, as_json, lambda: output.print(table("", ("study", "title", "runs"), cells, numeric=("runs",))))


@app.command("show")
def show_study(
    name: StudyName, quick: Quick = False, seeds: Seeds = None, as_json: JsonFlag = False, lab: LabFolder = None
) -> None:
    """What a study runs, and how much of it is done."""
    from lmlab.apps.console import output, show, table
    from lmlab.runs.lab import Lab

    study = _study(name, quick, seeds)
    runs = study.runs()
    opened = Lab.existing(lab)
    states = {row.run: row.state for row in opened.store.runs()} if opened else {}
    document = {
        "study": study.name,
        "title": study.title,
        "about": study.about,
        "recipes": study.recipes,
        "base": dict(study.base),
        "axes": {axis: list(values) for axis, values in study.axes.items()},
        "seeds": study.seeds,
        "runs": [
            {"run": spec.run_id, "label": label, "seed": spec.seed, "status": states.get(spec.run_id, "waiting")}
            for label, spec in runs
        ],
    }

    def render() -> None:
        output.print(f"{study.title}\n{study.about}", highlight=False)
        cells = [(run["run"], run["label"], run["seed"], run["status"]) for run in document["runs"]]
        output.print(table("", ("run", "recipe", "seed", "status"), cells, numeric=("seed",)))

    show(document, as_json, render)


@app.command("run")
def run_study(
    name: StudyName,
    quick: Quick = False,
    seeds: Seeds = None,
    device: Device = "auto",
    lab: LabFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """Train what the study still lacks; what is finished is skipped, what was interrupted goes on."""
    from lmlab.apps.console import notices, output, show, watcher
    from lmlab.reports.tables import Comparison
    from lmlab.studies.session import train_study

    study = _study(name, quick, seeds)
    runs = train_study(study, lab=lab, device=device, watch=watcher(as_json))
    counts = dict(Counter(run.status for run in runs))
    document = {
        "study": study.name,
        "counts": counts,
        "runs": [
            {"run": run.id, "seed": run.seed, "status": run.status, "steps": run.row.step, "final": run.final()}
            for run in runs
        ],
    }
    stopped = any(run.status in ("interrupted", "waiting") for run in runs)

    def render() -> None:
        if any(run.row.done for run in runs):
            output.print(Comparison.of(study, runs).rich())
        output.print(", ".join(f"{count} {status}" for status, count in counts.items()), highlight=False)

    show(document, as_json, render)
    if stopped:
        notices.print(f"Stopped. Go on with: {study.command}", highlight=False)
        raise typer.Exit(130)


@app.command()
def status(
    name: StudyName, quick: Quick = False, seeds: Seeds = None, lab: LabFolder = None, as_json: JsonFlag = False
) -> None:
    """How far a study is, and how long it will take."""
    from lmlab.apps.console import duration, output, show, table
    from lmlab.runs.lab import Lab
    from lmlab.studies.plan import seconds_left

    study = _study(name, quick, seeds)
    runs = study.runs()
    opened = Lab.existing(lab)
    rows = {row.run: row for row in opened.store.runs([spec.run_id for _, spec in runs])} if opened else {}
    listed = [
        {
            "run": spec.run_id,
            "label": label,
            "seed": spec.seed,
            "status": rows[spec.run_id].state if spec.run_id in rows else "waiting",
            "steps": rows[spec.run_id].step if spec.run_id in rows else 0,
            "total": rows[spec.run_id].total if spec.run_id in rows else None,
        }
        for label, spec in runs
    ]
    counts = dict(Counter(run["status"] for run in listed))
    left = seconds_left(list(rows.values()), len(runs))
    document = {"study": study.name, "counts": counts, "runs": listed, "seconds_left": left}

    def render() -> None:
        cells = [(run["run"], run["label"], run["seed"], run["status"], f"{run['steps']:,}") for run in listed]
        output.print(table(study.title, ("run", "recipe", "seed", "status", "steps"), cells, numeric=("seed", "steps")))
        said = ", ".join(f"{count} {state}" for state, count in counts.items())
        output.print(said + (f"; about {duration(left)} left" if left else ""), highlight=False)

    show(document, as_json, render)


@app.command()
def report(
    name: StudyName,
    quick: Quick = False,
    seeds: Seeds = None,
    folder: Annotated[Path | None, typer.Option("-o", "--output", help="Where to [default: LAB/reports/NAME].")] = None,
    lab: LabFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """Figures, tables and pages of what the study found."""
    from lmlab.apps.console import output, show
    from lmlab.reports.report import make_report
    from lmlab.runs.lab import Lab

    study, opened = _study(name, quick, seeds), Lab(lab)
    made = make_report(study, opened, folder or opened.path / "reports" / study.name)
    show(made.to_json(), as_json, lambda: output.print(f"Report: {made.html}", highlight=False, soft_wrap=True))
