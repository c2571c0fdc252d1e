"""`lmlab`: one function per command; its signature is the command line.

Imports of anything heavy happen inside the commands, so that `lmlab runs list` does not wait for PyTorch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmlab import __version__
from lmlab.apps import data_commands, run_commands, speech_commands, study_commands
from lmlab.apps.options import Device, JsonFlag, LabFolder, RunName, new_app
from lmlab.core.errors import LabError

if TYPE_CHECKING:
    from lmlab.runs.run import Run

app = new_app("A laboratory for small language models.")
app.add_typer(study_commands.app, name="study")
app.add_typer(run_commands.app, name="runs")
app.add_typer(data_commands.app, name="data")
for command in (speech_commands.generate, speech_commands.predict, speech_commands.score):
    app.command()(command)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="arithmetic-lstm, arithmetic-gpt, …")],
    steps: Annotated[int | None, typer.Option("--steps", help="Updates [default: the recipe's].")] = None,
    seeds: Annotated[str, typer.Option("--seeds", help="One run for each, e.g. 0,42.")] = "0",
    assignments: Annotated[list[str] | None, typer.Option("--set", help="key.path=value; may be repeated.")] = None,
    device: Device = "auto",
    precision: Annotated[str | None, typer.Option("--precision", help="auto, fp32, tf32, bf16 or fp64.")] = None,
    lab: LabFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """Train a recipe; what is finished already is not trained again."""
    from lmlab.apps.console import watcher
    from lmlab.core.config import parse_assignment
    from lmlab.studies.session import specs_of, train_runs
    from lmlab.studies.study import parse_seeds

    overrides: dict[str, Any] = dict(parse_assignment(text) for text in assignments or [])
    if steps is not None:
        overrides["training.steps"] = steps
    if precision is not None:
        overrides["training.precision"] = precision
    runs = specs_of(recipe, parse_seeds(seeds), overrides)
    _tell(train_runs(runs, lab, device, watcher(as_json)), as_json)


@app.command()
def resume(run: RunName, device: Device = "auto", lab: LabFolder = None, as_json: JsonFlag = False) -> None:
    """Go on with a run from its newest checkpoint, or from the start."""
    from lmlab.apps.console import watcher
    from lmlab.studies.session import load, train_runs

    begun = load(run, lab)
    _tell(train_runs([(begun.row.label, begun.spec)], lab, device, watcher(as_json)), as_json)


@app.command()
def cost(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE")],
    tokens: Annotated[int | None, typer.Option("--tokens", help="T [default: the length of an example].")] = None,
    assignments: Annotated[list[str] | None, typer.Option("--set", help="key.path=value; may be repeated.")] = None,
    as_json: JsonFlag = False,
    lab: LabFolder = None,  # noqa: ARG001  (every command takes it; this one needs none)
) -> None:
    """Parameters, floating-point operations and sequential matrix products, with their closed forms."""
    from lmlab.apps.console import output, show, table
    from lmlab.core.config import parse_assignment
    from lmlab.models.cost import cost as cost_of
    from lmlab.studies.session import specs_of

    ((_, spec),) = specs_of(recipe, overrides=dict(parse_assignment(text) for text in assignments or []))
    task = spec.task
    found = cost_of(spec.model, task.symbols, task.length, task.length if tokens is None else tokens)
    document = {"recipe": recipe, **found.to_json()}

    def render() -> None:
        rows = [(term.part, term.formula, f"{term.value:,}") for term in found.terms]
        rows += [("total", "", f"{found.total:,}"), ("without embedding", "", f"{found.total - found.embedding:,}")]
        output.print(table(f"{recipe}: parameters", ("part", "formula", "count"), rows, numeric=("count",)))
        forms, counted = document["formulas"], found.counted or {}
        rows = [
            (name, forms["flops"].get(name, "forward + backward"), f"{value:,}", _counted(counted, name))
            for name, value in document["flops"].items()
        ]
        columns = ("operations", "formula", "closed form", "counted")
        output.print(table(f"{found.tokens:,} tokens, classifier apart", columns, rows, numeric=columns[2:]))
        sequential = document["sequential_matmuls"]
        rows = [(name, forms["sequential_matmuls"][name], f"{value:,}") for name, value in sequential.items()]
        output.print(table("matrix products in sequence", ("of", "formula", "count"), rows, numeric=("count",)))

        cells = [(name, "–" if size is None else f"{size / 2**20:,.2f}") for name, size in found.memory().items()]
        output.print(table("memory in fp32, one sequence", ("of", "MiB"), cells, numeric=("MiB",)))

    show(document, as_json, render)


def _counted(counted: dict[str, int], name: str) -> str:
    value = counted.get(f"{name}_without_classifier")
    return "–" if value is None else f"{value:,}"


def _tell(runs: list[Run], as_json: bool) -> None:
    """The outcome of training; an interrupted run ends the command with the line that goes on with it."""
    from lmlab.apps.console import notices, number, output, show, table

    document = {
        "runs": [
            {"run": run.id, "seed": run.seed, "status": run.status, "steps": run.row.step, "final": run.final()}
            for run in runs
        ]
    }

    def render() -> None:
        rows = [
            (run.id, run.row.label, run.seed, _status(run), f"{run.row.step:,}", *(_final(run, number))) for run in runs
        ]
        columns = ("run", "recipe", "seed", "status", "steps", "L_train", "L_val", "A_train", "A_val")
        output.print(table("", columns, rows, numeric=columns[4:]))

    show(document, as_json, render)
    if any(run.status in ("interrupted", "waiting") for run in runs):
        first = next(run for run in runs if run.status in ("interrupted", "waiting"))
        notices.print(f"Stopped at step {first.row.step:,}. Go on with: lmlab resume {first.id}", highlight=False)
        raise typer.Exit(130)


def _status(run: Run) -> str:
    return f"{run.status} ({run.row.note})" if run.row.note else run.status


def _final(run: Run, number: Any) -> list[str]:
    final = run.final()
    return [number(final.get(split, {}).get(metric)) for metric in ("loss", "accuracy") for split in ("train", "val")]


def main() -> None:
    """Run the command line; every LabError and every wrong option is one line and exit status 2."""
    try:
        status = app(standalone_mode=False, prog_name="lmlab")
    except LabError as error:
        status = _complain(str(error))
    except (typer.Abort, KeyboardInterrupt):
        status = 130
    except Exception as error:
        # Some versions of typer carry their own copy of click: its errors are known by what they can do.
        if not hasattr(error, "format_message"):
            raise
        message, context = error.format_message(), getattr(error, "ctx", None)  # type: ignore[attr-defined]
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help, to be read as it stands
            print(message, file=sys.stderr)
            sys.exit(2)
        hint = f" See: {context.command_path} --help" if context else ""
        status = _complain(f"{message}{hint}")
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str) -> int:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return 2
