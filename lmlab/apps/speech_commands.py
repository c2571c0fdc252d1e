"""`lmlab generate`, `predict`, `score`: what a trained run says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lmlab.apps.options import JsonFlag, LabFolder, RunName

Prompt = Annotated[str, typer.Option("--prompt", help="What comes before; empty: a random symbol.")]


def generate(
    run: RunName,
    prompt: Prompt = "",
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="At most so many new tokens.")] = 100,
    temperature: Annotated[float, typer.Option("--temperature", help="0: always the most probable symbol.")] = 1.0,
    top_k: Annotated[int | None, typer.Option("--top-k", help="Only the k most probable symbols.")] = None,
    top_p: Annotated[float, typer.Option("--top-p", help="Only the most probable that have this share.")] = 1.0,
    repetition_penalty: Annotated[float, typer.Option("--repetition-penalty", help="Above 1: fewer repeats.")] = 1.0,
    beams: Annotated[int, typer.Option("--beams", help="Search with so many hypotheses instead of drawing.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same text.")] = 0,
    stop: Annotated[str, typer.Option("--stop", help="End before this text.")] = "",
    past_window: Annotated[str, typer.Option("--past-window", help="slide (exact), cached or stop.")] = "slide",
    streaming: Annotated[bool, typer.Option("--stream", help="Print tokens as they come.")] = False,
    lab: LabFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """Continue a prompt."""
    from lmlab.apps.console import show
    from lmlab.models.sampling import EVERY, Sampling
    from lmlab.runs.voice import Voice
    from lmlab.studies.session import load

    options = Sampling(
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        repetition_penalty=repetition_penalty,
        beams=beams,
        seed=seed,
        past_window=past_window,  # type: ignore[arg-type]
        top_k=EVERY if top_k is None else top_k,
    )
    voice = Voice(load(run, lab))
    if streaming and not as_json:
        sys.stdout.write(prompt)
        for piece in voice.stream(prompt, options, stop):
            sys.stdout.write(piece.text)
            sys.stdout.flush()
        sys.stdout.write("\n")
        return
    said = voice.generate(prompt, options, stop)
    blank = " " if prompt and voice.separated else ""
    show(said, as_json, lambda: print(f"{prompt}{blank}{said['text']}"))


def predict(
    run: RunName,
    prompt: Prompt = "",
    steps: Annotated[int, typer.Option("--steps", help="How many steps ahead.")] = 1,
    top: Annotated[int, typer.Option("--top", help="How many symbols to show of each.")] = 5,
    lab: LabFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """The distribution at every step, each going on from the most probable symbol of the one before."""
    from lmlab.apps.console import output, show, table
    from lmlab.runs.voice import Voice
    from lmlab.studies.session import load

    found = Voice(load(run, lab)).predict(prompt, steps, top)
    cells = [
        (
            index,
            repr(step["token"]),
            f"{step['probability']:.4f}",
            "  ".join(f"{s!r} {p:.3f}" for s, p in step["top"][1:]),
        )
        for index, step in enumerate(found["steps"], start=1)
    ]
    columns = ("step", "token", "probability", "next best")
    show(found, as_json, lambda: output.print(table("", columns, cells, numeric=("step", "probability"))))


def score(
    run: RunName,
    text: Annotated[str | None, typer.Option("--text", help="The text to score.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="A file to score.")] = None,
    stride: Annotated[int, typer.Option("--stride", help="For long texts [default: half a window].")] = 0,
    lab: LabFolder = None,
    as_json: JsonFlag = False,
) -> None:
    """Log-probability, loss per token, perplexity and bits per byte of a text."""
    from lmlab.apps.console import number, output, show, table
    from lmlab.core.errors import ConfigError
    from lmlab.data.files import read_text
    from lmlab.runs.voice import Voice
    from lmlab.studies.session import load

    if (text is None) == (file is None):
        raise ConfigError("--text", "or --file must be given, one of them", text, "Example: --text 'Once upon a time'")
    found = Voice(load(run, lab)).score(text if file is None else read_text(file), stride)  # type: ignore[arg-type]
    cells = [(name, number(value)) for name, value in found.items()]
    show(found, as_json, lambda: output.print(table("", ("", "value"), cells, numeric=("value",))))
