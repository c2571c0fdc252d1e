"""Beam search: a most probable continuation, looked for with several hypotheses side by side.

At every length the K best of all one-token extensions live on. One that ends (with a stop symbol) keeps its place
among the K, so the search narrows as hypotheses end; one beam is greedy decoding, and a beam as wide as the number of
continuations tries them all. Hypotheses compare by

    log p(tokens | prompt) / length^penalty

with the model's own probabilities; forbidden symbols are left out without making the others more probable.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch

from lmlab.models.continuation import Continuation, check_room, check_tokens, device_of, symbols
from lmlab.models.model import LanguageModel
from lmlab.models.sampling import Sampling


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A continuation, written as its last token and the continuation before it."""

    token: int = -1
    logprob: float = 0.0
    total: float = 0.0
    """log p of all its tokens."""
    length: int = 0
    before: Hypothesis | None = None

    def then(self, token: int, logprob: float) -> Hypothesis:
        return Hypothesis(token, logprob, self.total + logprob, self.length + 1, self)

    def score(self, penalty: float) -> float:
        return self.total / self.length**penalty

    def unroll(self) -> tuple[list[int], list[float]]:
        """Its tokens and their log-probabilities, the first one first."""
        tokens, logprobs, end = [], [], self
        while end.before is not None:
            tokens.append(end.token)
            logprobs.append(end.logprob)
            end = end.before
        return tokens[::-1], logprobs[::-1]


def beam_search(model: LanguageModel, prompt: list[int], options: Sampling) -> Hypothesis:
    """The best continuation found, of those that end with a stop symbol or reach the limit."""
    check_tokens(model, [prompt])
    check_room(model, len(prompt), options.max_tokens, options.window, options.past_window)
    device, vocabulary = device_of(model), symbols(model)
    forbidden = ~options.allowed(vocabulary).to(device)
    progress = Continuation(model, torch.tensor([prompt], device=device), options.window, options.past_window)
    live, ended = [Hypothesis()], []
    while True:
        logprobs = progress.logits_BV.double().log_softmax(-1).masked_fill(forbidden, -inf)
        totals = logprobs + torch.tensor([one.total for one in live], device=device, dtype=torch.float64).unsqueeze(1)
        best = totals.flatten().sort(descending=True, stable=True).indices[: options.beams - len(ended)]
        kept, parents = [], []
        for pick, logprob in zip(best.tolist(), logprobs.flatten()[best].tolist(), strict=True):
            if logprob == -inf:
                break
            parent, token = divmod(pick, vocabulary)
            child = live[parent].then(token, logprob)
            if token in options.stop:
                ended.append(child)
            else:
                kept.append(child)
                parents.append(parent)
        live = kept
        if not live or live[0].length == options.max_tokens or progress.full or _decided(live, ended, options):
            return max(ended + live, key=lambda one: one.score(options.length_penalty))
        progress.select(torch.tensor(parents, device=device))
        progress.append(torch.tensor([one.token for one in live], device=device))


def _decided(live: list[Hypothesis], ended: list[Hypothesis], options: Sampling) -> bool:
    """Nothing that lives can overtake: log p only falls, so at best it stays and is spread over the greatest length."""
    reach = live[0].total / options.max_tokens**options.length_penalty
    return any(one.score(options.length_penalty) >= reach for one in ended)
