"""Rows of tokens on their way through a model: what is known so far, the scores of what comes next.

A model that was trained on sequences of some length may be asked to go on beyond it. `visible` says how many of
a row's n tokens the model then sees; it depends on n alone, so going on in parts equals going on at once:

    no window     all n, with the state kept for ever
    "slide"       the last `window`: exact, computed anew for every token (O(window) each), as document 002 does
    "cached"      between window / 2 and window: when the window is full its older half is dropped, the state is made
                  anew from the rest and grows again. An approximation of "slide" that feeds less than two tokens for
                  every new one. (Cutting old keys out of the state instead would leave the others at positions that no
                  longer fit.)
    "stop"        all n; there is no going on once the window is full

Within these rules each call feeds one token and the state of the last call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from lmlab.core.errors import ConfigError, DataError
from lmlab.models.model import LanguageModel, State

PastWindow = Literal["slide", "cached", "stop"]


def visible(length: int, window: int, past_window: PastWindow) -> int:
    """How many of a row's `length` tokens, counted from the last, the model sees when it names the next."""
    if not window or length <= window or past_window == "stop":
        return length
    if past_window == "slide":
        return window
    kept = max(1, window // 2)
    return kept + (length - window - 1) % (window - kept + 1)


class Continuation:
    """Rows of equal length and the scores of their next tokens.   tokens (B, S) → logits (B, V)"""

    def __init__(
        self, model: LanguageModel, tokens_BS: Tensor, window: int = 0, past_window: PastWindow = "slide"
    ) -> None:
        self.model, self.window = model, window
        self.past_window: PastWindow = past_window
        self.length = tokens_BS.shape[1]
        self._recent = tokens_BS[:, -window:] if window else tokens_BS[:, :0]  # without a window nothing is fed twice
        self._seen = visible(self.length, window, past_window)
        self._feed(tokens_BS[:, -self._seen :], None)

    @property
    def full(self) -> bool:
        """Nothing more can be appended."""
        return self.past_window == "stop" and 0 < self.window <= self.length

    def append(self, tokens_B: Tensor) -> None:
        """The next token of every row is known."""
        self.length += 1
        if self.window:
            self._recent = torch.cat((self._recent, tokens_B.unsqueeze(1)), dim=1)[:, -self.window :]
        before, self._seen = self._seen, visible(self.length, self.window, self.past_window)
        if self._seen == before + 1:
            self._feed(tokens_B.unsqueeze(1), self._state)
        else:
            self._feed(self._recent[:, -self._seen :], None)

    def select(self, rows: Tensor) -> None:
        """Goes on with these rows only, in this order; a row may be taken more than once."""
        self._recent = self._recent.index_select(0, rows)
        self.logits_BV = self.logits_BV.index_select(0, rows)
        self._state = select_rows(self._state, rows)

    def _feed(self, tokens_BS: Tensor, state: State) -> None:
        with evaluating(self.model):
            logits, self._state = self.model(tokens_BS, state)
        self.logits_BV = finite(logits[:, -1])


def select_rows(state: State, rows: Tensor) -> State:
    """A state with other rows: every tensor of a state has the batch as its first axis."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    return type(state)(select_rows(part, rows) for part in state)


def finite(logits: Tensor) -> Tensor:
    """The logits, if they are numbers; a diverged model has nothing to say."""
    if not torch.isfinite(logits).all():
        raise DataError("the model's scores are not finite: its training has diverged. Use an earlier checkpoint.")
    return logits


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No gradients and no dropout inside the block; the model's mode is put back afterwards."""
    training = model.training
    if training:
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        if training:
            model.train()


def symbols(model: LanguageModel) -> int:
    """V, how many symbols the model knows."""
    return model.get_parameter("embedding.tokens.weight").shape[0]


def device_of(model: LanguageModel) -> torch.device:
    return model.get_parameter("embedding.tokens.weight").device


def learned_positions(model: LanguageModel) -> int | None:
    """Where learned positions end; None for a model that can go on for ever."""
    learned = getattr(model.get_submodule("embedding"), "learned", None)
    return None if learned is None else len(learned)


def check_tokens(model: LanguageModel, rows: Iterable[Sequence[int]]) -> None:
    """Every id is one of the model's symbols."""
    known = symbols(model)
    for row in rows:
        if len(row) and not 0 <= min(row) <= max(row) < known:
            wrong = next(token for token in row if not 0 <= token < known)
            raise DataError(f"token {wrong} is outside the model's vocabulary of {known} symbols (0 … {known - 1}).")


def check_room(model: LanguageModel, prompt: int, new: int, window: int, past_window: PastWindow) -> None:
    """A prompt of so many tokens can be continued by `new` ones: refused before any work if not."""
    last = learned_positions(model)
    if window < 0:
        raise ConfigError("--window", "must be at least 0", window, "0 is no window.")
    if last is not None and window > last:
        raise ConfigError("--window", f"must be at most the {last} positions the model has learned", window)
    if window and past_window == "stop" and prompt > window:
        raise DataError(
            f"the prompt has {prompt} tokens, more than the window of {window}. "
            "Shorten it, or use --past-window slide, which reads its end."
        )
    if not window and last is not None and prompt + new - 1 > last:  # the last new token is not fed
        raise DataError(
            f"the model has learned {last} positions; a prompt of {prompt} and {new} new tokens need "
            f"{prompt + new - 1}. Use --window {last} --past-window slide, or fewer tokens."
        )
