"""Text from a model: `generate` and `stream` continue prompts, `predict` shows the distribution at every step.

Recurrent and attention models alike go on from their state, one token a call. Prompts of different lengths need no
padding: rows of equal length share a batch, each group on its own, so that every row becomes what it becomes alone.

Log-probabilities are those of the model's own distribution (temperature 1, nothing penalised or filtered), whatever
the choice was made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from lmlab.core.errors import ConfigError, DataError
from lmlab.models.beams import beam_search
from lmlab.models.continuation import Continuation, PastWindow, check_room, check_tokens, device_of, symbols
from lmlab.models.model import LanguageModel
from lmlab.models.sampling import Sampling, choose, penalised, random_start, uniform_words


class Step(NamedTuple):
    """One new token: which prompt it continues, what it is, log p of it under the model."""

    row: int
    token: int
    logprob: float


@dataclass(frozen=True)
class Generated:
    """The continuation of one prompt."""

    tokens: tuple[int, ...]
    """The new tokens; a stop symbol, where one came, is the last of them."""
    logprobs: tuple[float, ...]
    finished: bool
    """A stop symbol ended it, rather than a limit."""
    prompt: tuple[int, ...]
    """What was continued: the prompt, or the random symbol that took the place of an empty one."""


def generate(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    options: Sampling | None = None,
    numbers: Sequence[int] | None = None,
) -> list[Generated]:
    """Continue every prompt.

    `numbers` are the rows' own numbers, which their randomness depends on: 0, 1, 2 … unless given. A prompt
    continued alone under the same number becomes what it becomes among others.
    """
    options = options or Sampling()
    prompts = starts(model, prompts, options, numbers)
    found: list[list[Step]] = [[] for _ in prompts]
    for step in stream(model, prompts, options, numbers):
        found[step.row].append(step)
    return [
        Generated(
            tokens=tuple(step.token for step in steps),
            logprobs=tuple(step.logprob for step in steps),
            finished=steps[-1].token in options.stop,
            prompt=tuple(prompt),
        )
        for prompt, steps in zip(prompts, found, strict=True)
    ]


def stream(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    options: Sampling | None = None,
    numbers: Sequence[int] | None = None,
) -> Iterator[Step]:
    """The same tokens as `generate`, as they come; a search (beams) gives a row's tokens when its search has ended.

    What cannot be done is refused by the call itself, not by the first step. `starts` tells how empty prompts begin.
    """
    options = options or Sampling()
    numbers = _numbered(prompts, numbers)
    prompts = starts(model, prompts, options, numbers)
    for prompt in prompts:
        check_room(model, len(prompt), options.max_tokens, options.window, options.past_window)
    return _searched(model, prompts, options) if options.beams > 1 else _drawn(model, prompts, options, numbers)


def starts(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    options: Sampling,
    numbers: Sequence[int] | None = None,
) -> list[list[int]]:
    """The prompts, a random symbol in place of each empty one."""
    vocabulary = symbols(model)
    options.allowed(vocabulary)
    check_tokens(model, prompts)
    return [
        list(prompt) or [random_start(options, vocabulary, number)]
        for prompt, number in zip(prompts, _numbered(prompts, numbers), strict=True)
    ]


def _numbered(prompts: Sequence[Sequence[int]], numbers: Sequence[int] | None) -> Sequence[int]:
    return range(len(prompts)) if numbers is None else numbers


def _searched(model: LanguageModel, prompts: list[list[int]], options: Sampling) -> Iterator[Step]:
    for row, prompt in enumerate(prompts):
        for token, logprob in zip(*beam_search(model, prompt, options).unroll(), strict=True):
            yield Step(row, token, logprob)


def _drawn(model: LanguageModel, prompts: list[list[int]], options: Sampling, numbers: Sequence[int]) -> Iterator[Step]:
    """The groups take turns, so that every row grows by a token per round."""
    lengths: dict[int, list[int]] = {}
    for row, prompt in enumerate(prompts):
        lengths.setdefault(len(prompt), []).append(row)
    groups = [_together(model, rows, prompts, options, numbers) for rows in lengths.values()]
    while groups:
        going = []
        for group in groups:
            steps = next(group, None)
            if steps is not None:
                yield from steps
                going.append(group)
        groups = going


def _together(
    model: LanguageModel, rows: list[int], prompts: list[list[int]], options: Sampling, numbers: Sequence[int]
) -> Iterator[list[Step]]:
    """Rows with prompts of one length: a list of steps, one per row that still grows, for every new token."""
    device, vocabulary = device_of(model), symbols(model)
    forbidden = ~options.allowed(vocabulary).to(device)
    tokens = torch.tensor([prompts[row] for row in rows], device=device)
    own_numbers = torch.tensor([numbers[row] for row in rows], device=device)
    seen = torch.zeros(len(rows), vocabulary, dtype=torch.bool, device=device).scatter(1, tokens, True)
    progress = Continuation(model, tokens, options.window, options.past_window)
    for left in reversed(range(options.max_tokens)):
        logits = progress.logits_BV.double()
        scores = penalised(logits, seen, options.repetition_penalty).masked_fill(forbidden, -inf)
        chosen = choose(scores, options, uniform_words(options.seed, own_numbers, progress.length))
        logprobs = logits.log_softmax(-1).gather(1, chosen.unsqueeze(1)).squeeze(1)
        steps = [Step(*step) for step in zip(rows, chosen.tolist(), logprobs.tolist(), strict=True)]
        yield steps
        seen = seen.scatter(1, chosen.unsqueeze(1), True)
        going = [place for place, step in enumerate(steps) if step.token not in options.stop]
        if not going or not left or progress.full:
            return
        if len(going) < len(rows):
            places = torch.tensor(going, device=device)
            progress.select(places)
            seen, own_numbers, chosen = seen[places], own_numbers[places], chosen[places]
            rows = [rows[place] for place in going]
        progress.append(chosen)


class Guess(NamedTuple):
    """One step of a prediction."""

    token: int
    """The most probable symbol, which the next step goes on from."""
    probability: float
    top: tuple[tuple[int, float], ...]
    """The most probable symbols with their probabilities, in descending order."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model expects after a prompt, step by step (document 003)."""

    steps: tuple[Guess, ...]
    logits: Tensor
    """The raw scores of every step: (steps, V)."""

    @property
    def scores(self) -> Tensor:
        """The raw scores of the last step, no softmax applied: (V,)."""
        return self.logits[-1]

    @property
    def distributions(self) -> Tensor:
        """The full distribution of every step: (steps, V) in float64."""
        return self.logits.double().softmax(-1)


def predict(
    model: LanguageModel,
    prompt: Sequence[int],
    steps: int,
    top: int = 5,
    *,
    window: int = 0,
    past_window: PastWindow = "slide",
) -> Prediction:
    """The distribution at each of `steps` steps, each going on from the most probable symbol of the one before."""
    if not 1 <= steps <= 1_000_000:
        raise ConfigError("--steps", "must be between 1 and 1000000", steps)
    if top < 1:
        raise ConfigError("--top", "must be at least 1", top)
    if not prompt:
        raise DataError("a prediction needs a prompt of at least one token.")
    check_tokens(model, [prompt])
    tokens = torch.tensor([list(prompt)], device=device_of(model))
    logits = self_fed(model, tokens, steps, window=window, past_window=past_window)[0]
    ids = logits.sort(dim=-1, descending=True, stable=True).indices[:, :top]
    probabilities = logits.double().softmax(-1).gather(-1, ids)
    guesses = []
    for own, probable in zip(ids.tolist(), probabilities.tolist(), strict=True):
        guesses.append(Guess(own[0], probable[0], tuple(zip(own, probable, strict=True))))
    return Prediction(tuple(guesses), logits)


def self_fed(
    model: LanguageModel, prompts_BP: Tensor, steps: int, *, window: int = 0, past_window: PastWindow = "slide"
) -> Tensor:
    """The raw scores of `steps` steps after prompts of equal length, each step fed the most probable symbol of the one
    before.   prompts (B, P) → (B, steps, V); with past_window="stop", fewer steps where the window ends."""
    check_room(model, prompts_BP.shape[1], steps, window, past_window)
    progress = Continuation(model, prompts_BP.to(device_of(model)), window, past_window)
    found = [progress.logits_BV]
    while len(found) < steps and not progress.full:
        progress.append(found[-1].argmax(-1))
        found.append(progress.logits_BV)
    return torch.stack(found, dim=1)
