"""A trained run that speaks: generate, predict and score in text instead of ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from typing import Any

from lmlab.core.errors import DataError
from lmlab.data.arithmetic import ArithmeticTokenizer
from lmlab.data.corpus_bpe import CorpusBPE
from lmlab.models.decoding import predict, starts, stream
from lmlab.models.recurrent import RecurrentConfig
from lmlab.models.sampling import Sampling
from lmlab.models.scoring import Score, score_long
from lmlab.runs.run import Run


@dataclass(frozen=True)
class Said:
    """A piece of a continuation: its text and the token behind it; nan for text that had to wait for no token more."""

    text: str
    token: int
    logprob: float


class Voice:
    """A run's model with its tokenizer and the marks its sequences begin and end with."""

    def __init__(self, run: Run, step: int | None = None) -> None:
        self.model, self.tokenizer = run.model(step), run.tokenizer()
        self.speech = run.spec.task.speech(self.tokenizer)
        # A recurrent model remembers as far as it can; attention sees what it was trained to see.
        self.recurrent = isinstance(run.spec.model, RecurrentConfig)
        self.window = 0 if self.recurrent else run.spec.task.length
        room = self.model.get_parameter("embedding.tokens.weight").shape[0]
        if len(self.tokenizer.vocabulary) > room:
            raise DataError(
                f"the tokenizer of run {run.id} has {len(self.tokenizer.vocabulary)} symbols, its model {room}: "
                "they do not belong together."
            )

    @property
    def separated(self) -> bool:
        """Symbols are words: a blank stands between them."""
        return isinstance(self.tokenizer, ArithmeticTokenizer)

    def ids(self, prompt: str) -> list[int]:
        """What the model reads for a prompt; symbols outside the vocabulary are refused by name."""
        return [*self.speech.before, *self.tokenizer.encode(prompt)] if prompt or self.speech.before else []

    def stream(self, prompt: str, options: Sampling, stop_text: str = "") -> Iterator[Said]:
        """The continuation, token by token; it ends at the task's end mark or where `stop_text` would appear."""
        options = options.model_copy(
            update={
                "stop": self.speech.stop,
                "forbidden": (*options.forbidden, *self.speech.hidden),
                "window": options.window or self.window,
            }
        )
        prompts = starts(self.model, [self.ids(prompt)], options)
        said: list[int] = []
        if not prompt and not self.speech.before:
            yield Said(self.tokenizer.decode(prompts[0]), prompts[0][0], 0.0)  # the random symbol it starts from
        shown = 0
        for step in stream(self.model, prompts, options):
            if step.token in self.speech.stop:
                break
            said.append(step.token)
            text = self.tokenizer.decode(said)
            if stop_text and stop_text in text:
                said_before = text[: text.index(stop_text)]
                if len(said_before) > shown:
                    yield Said(said_before[shown:], step.token, step.logprob)
                return
            # What might be the beginning of the stop text waits until it is clear that it is not.
            ready = len(text) - _overlap(text, stop_text)
            yield Said(text[shown:ready], step.token, step.logprob)
            shown = max(shown, ready)
        if said and len(rest := self.tokenizer.decode(said)) > shown:
            yield Said(rest[shown:], said[-1], float("nan"))

    def generate(self, prompt: str, options: Sampling, stop_text: str = "") -> dict[str, Any]:
        """{"text", "tokens", "logprobs"} of the continuation."""
        pieces = list(self.stream(prompt, options, stop_text))
        tokens = [piece for piece in pieces if not isnan(piece.logprob)]
        return {
            "prompt": prompt,
            "text": "".join(piece.text for piece in pieces),
            "tokens": [self.tokenizer.decode([piece.token]) for piece in tokens],
            "logprobs": [piece.logprob for piece in tokens],
        }

    def predict(self, prompt: str, steps: int, top: int = 5) -> dict[str, Any]:
        """{"steps": [{"token", "probability", "top"}]}: each step goes on from the most probable symbol before it."""
        found = predict(self.model, self.ids(prompt), steps, top, window=self.window)
        symbol = self.tokenizer.vocabulary
        return {
            "steps": [
                {
                    "token": symbol[guess.token],
                    "probability": guess.probability,
                    "top": [[symbol[token], probability] for token, probability in guess.top],
                }
                for guess in found.steps
            ]
        }

    def score(self, text: str, stride: int = 0) -> dict[str, Any]:
        """{"logprob", "tokens", "nll", "perplexity", "bits_per_byte"} of a complete text with its end mark.

        Where nothing comes before a text, its first token has no context and is not scored.
        """
        if isinstance(self.tokenizer, CorpusBPE):  # it knows lines, but no line break
            lines = text.splitlines()
            text, ids = "".join(lines), self.tokenizer.encode_corpus(lines)
        else:
            ids = [*self.ids(text), *self.speech.after]
        if len(ids) < 2:
            raise DataError("there is nothing to score: the text needs at least two symbols.")
        window = self.window or len(ids)
        found: Score = score_long(self.model, ids, window, stride or max(1, window // 2), carry=self.recurrent)
        unscored = "" if self.speech.before else self.tokenizer.decode(ids[:1])
        return found.to_json(len(text.encode()) - (len(unscored.encode()) if text.startswith(unscored) else 0))


def _overlap(text: str, end: str) -> int:
    """How much of the end of `text` is a beginning of `end`."""
    return next((size for size in range(min(len(text), len(end)), 0, -1) if end.startswith(text[-size:])), 0)
