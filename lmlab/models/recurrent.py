"""Recurrent models: cells, the multi-layer stack that serves all of them, and the language model around it.

A cell splits its work in two, because only half of it is sequential: `project` maps the inputs of all time
steps in one matrix product, `step` adds the part that needs the previous state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self, cast

import torch
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.core.errors import ConfigError
from lmlab.models.embedding import Embedding
from lmlab.models.initial import Rule, linear, xavier_gate, zeros
from lmlab.models.layers import classifier
from lmlab.models.model import Dropout, Internals, LanguageModel, ModelConfig, Place, Reading, models

LayerState = tuple[Tensor, ...]
"""(h,) or (h, c), each (B, D_h)."""


class Cell(nn.Module):
    """Base of the cells: weights of `parts` stacked gates, and the places one can look at.

    project: x (B, S, D_in) → (B, S, parts · D_h), all time steps at once
    step:    projected (B, parts · D_h), state → new state, whose first tensor is the output
    """

    parts: ClassVar[int]
    states: ClassVar[int] = 1
    places: ClassVar[tuple[str, ...]] = ()

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.weight_input = nn.Parameter(torch.empty(self.parts * hidden, inputs))
        self.weight_hidden = nn.Parameter(torch.empty(self.parts * hidden, hidden))
        self.bias: nn.Parameter | None = None
        self.initial: dict[str, Rule] = {"weight_input": linear(inputs), "weight_hidden": linear(hidden)}
        for name in self.places:
            self.add_module(name, Place())

    def project(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight_input, self.bias)

    def step(self, projected: Tensor, state: LayerState) -> LayerState:
        raise NotImplementedError

    def forward(self, x: Tensor, state: LayerState) -> LayerState:
        """One time step from its raw input.   x (B, D_in)"""
        return self.step(self.project(x), state)


class ElmanCell(Cell):
    """Elman network (1990).   h' = tanh(W_ih x + b_ih + W_hh h + b_hh)      x (B, D_in), h (B, D_h) → (B, D_h)

    Two biases, as two linear layers have; they only ever act as their sum.
    """

    parts: ClassVar[int] = 1

    def __init__(self, inputs: int, hidden: int, bias: bool) -> None:
        super().__init__(inputs, hidden)
        self.bias = nn.Parameter(torch.empty(hidden)) if bias else None
        self.bias_hidden = nn.Parameter(torch.empty(hidden)) if bias else None
        self.initial |= {"bias": linear(inputs), "bias_hidden": linear(hidden)}

    def step(self, projected: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        return (torch.tanh(projected + F.linear(h, self.weight_hidden, self.bias_hidden)),)


class GRUCell(Cell):
    """Gated recurrent unit (Cho et al., 2014), with the reset gate applied to the product, as document 004 has it.

        r = σ(W_xr x + W_hr h)      reset gate           n = tanh(W_xn x + r ⊙ W_hn h)     new content
        z = σ(W_xz x + W_hz h)      update gate          h' = (1 − z) ⊙ n + z ⊙ h

    x (B, D_in), h (B, D_h) → (B, D_h). The gates share one matrix, rows in the order r z n; biases, where asked for,
    are those of the inputs' part.
    """

    parts: ClassVar[int] = 3
    places: ClassVar[tuple[str, ...]] = ("reset_gate", "update_gate", "candidate")
    reset_gate: Place
    update_gate: Place
    candidate: Place

    def __init__(self, inputs: int, hidden: int, bias: bool) -> None:
        super().__init__(inputs, hidden)
        self.bias = nn.Parameter(torch.empty(3 * hidden)) if bias else None
        self.initial["bias"] = linear(inputs)

    def step(self, projected: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        x_r, x_z, x_n = projected.chunk(3, dim=-1)
        h_r, h_z, h_n = F.linear(h, self.weight_hidden).chunk(3, dim=-1)
        r = self.reset_gate(torch.sigmoid(x_r + h_r))
        z = self.update_gate(torch.sigmoid(x_z + h_z))
        n = self.candidate(torch.tanh(x_n + r * h_n))
        return ((1 - z) * n + z * h,)


class LSTMCell(Cell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997; forget gate: Gers et al., 2000).

        i = σ(W_i x + U_i h + b_i)      input gate        c̃ = tanh(W_c x + U_c h + b_c)   candidate
        f = σ(W_f x + U_f h + b_f)      forget gate       c' = f ⊙ c + i ⊙ c̃             cell state
        o = σ(W_o x + U_o h + b_o)      output gate       h' = o ⊙ tanh(c')               hidden state

    x (B, D_in), h, c (B, D_h) → h', c' (B, D_h). The four gates share one matrix, rows in the order i f o c̃.
    Document 000's second form of the candidate prints σ; the first, tanh, is the LSTM's.
    """

    parts: ClassVar[int] = 4
    states: ClassVar[int] = 2
    places: ClassVar[tuple[str, ...]] = ("input_gate", "forget_gate", "output_gate", "candidate", "cell")
    input_gate: Place
    forget_gate: Place
    output_gate: Place
    candidate: Place
    cell: Place

    def __init__(self, inputs: int, hidden: int, bias: bool, init: Literal["xavier", "pytorch"]) -> None:
        super().__init__(inputs, hidden)
        self.bias = nn.Parameter(torch.empty(4 * hidden)) if bias else None
        rule = xavier_gate(inputs, hidden) if init == "xavier" else linear(inputs + hidden)
        self.initial = {"weight_input": rule, "weight_hidden": rule, "bias": zeros if init == "xavier" else rule}

    def step(self, projected: Tensor, state: LayerState) -> LayerState:
        h, c = state
        i, f, o, candidate = (projected + F.linear(h, self.weight_hidden)).chunk(4, dim=-1)
        i, f, o = self.input_gate(i.sigmoid()), self.forget_gate(f.sigmoid()), self.output_gate(o.sigmoid())
        c = self.cell(f * c + i * self.candidate(candidate.tanh()))
        return o * c.tanh(), c


class RecurrentStack(nn.Module):
    """Cells one above the other; dropout between layers, never after the last.

    x (B, S, D_in), state per layer → outputs of the top layer (B, S, D_h), state
    """

    def __init__(self, cells: Sequence[Cell], dropout: float) -> None:
        super().__init__()
        self.cells = nn.ModuleList(cells)
        self.dropouts = nn.ModuleList(Dropout(dropout, site) for site in range(len(cells) - 1))
        self.outputs = nn.ModuleList(Place() for _ in cells)

    def forward(self, x: Tensor, state: list[LayerState]) -> tuple[Tensor, list[LayerState]]:
        last = []
        for layer, cell in enumerate(cast("list[Cell]", self.cells)):
            memory, hidden = state[layer], []
            # unbind, not indexing: an indexed step costs a zero-filled gradient of the whole sequence.
            for projected in cell.project(x).unbind(1):
                memory = cell.step(projected, memory)
                hidden.append(memory[0])
            last.append(memory)
            x = self.outputs[layer](torch.stack(hidden, dim=1))
            if layer < len(self.dropouts):
                x = self.dropouts[layer](x)
        return x, last


class RecurrentModel(LanguageModel):
    """Embedding → recurrent stack → classifier (document 000's LSTMLM, document 004's recurrent models)."""

    def __init__(self, config: RecurrentConfig, vocabulary: int, padding: int | None) -> None:
        super().__init__()
        self.hidden = config.hidden
        self.embedding = Embedding(vocabulary, config.width, 0, padding, dropout=config.embedding_dropout)
        inputs = [config.width] + [config.hidden] * (config.layers - 1)
        self.recurrent = RecurrentStack([config.cell(size) for size in inputs], config.dropout)
        tied = self.embedding.tokens.weight if config.tie else None
        self.classifier = classifier(config.hidden, vocabulary, config.classifier_bias, tied)

    def forward(self, tokens: Tensor, state: list[LayerState] | None = None) -> tuple[Tensor, list[LayerState]]:
        x = self.embedding(tokens)
        x, last = self.recurrent(x, state or self._blank(x))
        return self.classifier(x), last

    def look(self, tokens: Tensor) -> Internals:
        with Reading(self) as seen:
            logits, _ = self(tokens)
        layers = range(len(self.recurrent.cells))
        hidden = torch.stack([seen[f"recurrent.outputs.{layer}"][0] for layer in layers], dim=1)
        gates = {
            name: torch.stack([torch.stack(seen[f"recurrent.cells.{layer}.{name}"], 1) for layer in layers], 1)
            for name in cast(Cell, self.recurrent.cells[0]).places
        }
        return Internals(logits, hidden, gates=gates)

    def _blank(self, x: Tensor) -> list[LayerState]:
        """Zero states on the device and in the type of the input."""
        blank = x.new_zeros(x.shape[0], self.hidden)
        return [(blank,) * cast(Cell, cell).states for cell in self.recurrent.cells]


class RecurrentConfig(ModelConfig):
    """What the recurrent models share."""

    derived: ClassVar = {**ModelConfig.derived, "hidden": lambda config: config.width}

    hidden: int = 128
    """D_h, the size of hidden and cell states; follows `width` unless set."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_ranges(hidden=(1, 65536))
        if self.tie and self.hidden != self.width:
            rule = f"needs model.hidden to be model.width ({self.width})"
            raise ConfigError(self.field("tie"), rule, self.hidden, "Unset hidden.")
        return self

    def cell(self, inputs: int) -> Cell:
        """A cell of one layer, for inputs of this size."""
        raise NotImplementedError

    def build(self, vocabulary: int, length: int, padding: int | None) -> RecurrentModel:  # noqa: ARG002
        return RecurrentModel(self, vocabulary, padding)


@models.register("rnn")
class ElmanConfig(RecurrentConfig):
    """The Elman network of document 004; more than one layer makes its multi-layer network."""

    name: Literal["rnn"] = "rnn"
    layers: int = 1

    def cell(self, inputs: int) -> ElmanCell:
        return ElmanCell(inputs, self.hidden, self.bias)


@models.register("gru")
class GRUConfig(RecurrentConfig):
    """The GRU of document 004: no biases in its gates, one in the classifier."""

    derived: ClassVar = {name: rule for name, rule in RecurrentConfig.derived.items() if name != "classifier_bias"}

    name: Literal["gru"] = "gru"
    layers: int = 1
    bias: bool = False
    """Biases in the gates."""
    classifier_bias: bool = True
    """A bias in the classifier."""

    def cell(self, inputs: int) -> GRUCell:
        return GRUCell(inputs, self.hidden, self.bias)


@models.register("lstm")
class LSTMConfig(RecurrentConfig):
    """The LSTM of document 000: two layers of 128, biases, no dropout."""

    name: Literal["lstm"] = "lstm"
    init: Literal["xavier", "pytorch"] = "xavier"
    """Gates Xavier-uniform with zero biases, or PyTorch's default for linear layers."""

    def cell(self, inputs: int) -> LSTMCell:
        return LSTMCell(inputs, self.hidden, self.bias, self.init)
