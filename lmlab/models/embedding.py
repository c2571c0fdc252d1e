"""Tokens → vectors: a table of embeddings, and positions where the model has no order of its own."""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.core.errors import DataError
from lmlab.core.randomness import fold, words
from lmlab.models.initial import Rule, normal
from lmlab.models.model import Keyed

Positions = Literal["sinusoidal", "learned", "rotary", "none"]
Exponent = Literal["2k/d", "k/d"]

WORD_DROPOUT_SITE = 10_000
"""Far from the sites of a model's layers, which count from 0."""


class Lookup(torch.autograd.Function):
    """C[tokens] whose gradient is the same every time.   weight (V, D), tokens (…) → (…, D)

    The gradient of a row is the sum over its occurrences. On a GPU the ready-made kernels add them with atomics, in
    any order; a product with the one-hot matrix adds them in a fixed one, and costs little for small vocabularies.
    (`F.embedding` under `vmap` also forgets its padding index.)
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: Tensor, tokens: Tensor, padding: int | None) -> Tensor:  # noqa: ARG004
        return F.embedding(tokens, weight)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int | None], output: Tensor) -> None:  # noqa: ARG004
        weight, tokens, ctx.padding = inputs
        ctx.symbols = weight.shape[0]
        ctx.save_for_backward(tokens)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        (grad,), (tokens,) = grad_outputs, ctx.saved_tensors
        tokens, grad = tokens.reshape(-1), grad.reshape(-1, grad.shape[-1])
        symbols = torch.arange(ctx.symbols, device=tokens.device)
        if ctx.padding is not None:
            symbols = torch.where(symbols == ctx.padding, -1, symbols)  # its row matches nothing and gets no gradient
        if grad.device.type == "cuda":
            return (symbols.unsqueeze(1) == tokens).to(grad.dtype) @ grad, None, None
        total = grad.new_zeros(ctx.symbols, grad.shape[-1]).index_add(0, tokens, grad)
        return torch.where(symbols.unsqueeze(1) < 0, 0.0, total), None, None


class TokenEmbedding(Keyed):
    """x = C[tokens].   tokens (B, S) → (B, S, D). The padding symbol's row is zero and gets no gradient here.

    Word-level dropout (Gal and Ghahramani, 2016): while training, a dropped symbol vanishes wherever it occurs in the
    pass, and the others are scaled by 1/(1 − p).
    """

    def __init__(
        self, vocabulary: int, width: int, padding: int | None, std: float = 1.0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        self.padding, self.dropout = padding, dropout
        self.initial: dict[str, Rule] = {"weight": normal(std, zero_row=padding)}

    def forward(self, tokens: Tensor) -> Tensor:
        x = cast(Tensor, Lookup.apply(self.weight, tokens, self.padding))
        if self.dropout == 0 or not self.training:
            return x
        # The mask of a symbol depends on the symbol alone, so it can be drawn where the symbol stands.
        kept = words(fold(self.key, WORD_DROPOUT_SITE), tokens) >= round(self.dropout * 2**32)
        return x * (kept.to(x.dtype) / (1 - self.dropout)).unsqueeze(-1)

    def extra_repr(self) -> str:
        return (
            f"{self.weight.shape[0]} symbols → {self.weight.shape[1]}, padding={self.padding}, dropout={self.dropout}"
        )


def sinusoids(length: int, width: int, exponent: Exponent = "2k/d", *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Fixed positions (Vaswani et al., 2017): PE[pos, 2k] = sin(pos / 10000^e), PE[pos, 2k+1] = cos(pos / 10000^e).

    e = 2k/d as in the paper; document 000 prints k/d, which is offered too.   → (length, width)
    """
    k = torch.arange((width + 1) // 2, dtype=torch.float64)
    power = (2 * k if exponent == "2k/d" else k) / width
    angle = torch.arange(length, dtype=torch.float64).unsqueeze(1) / 10000**power
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)[:, :width].to(dtype)


class Embedding(nn.Module):
    """Token embedding plus position.   tokens (B, S), offset (how many came before) → (B, S, D)

    Rotary positions are not added here: they turn queries and keys inside attention.
    """

    fixed: Tensor

    def __init__(
        self,
        vocabulary: int,
        width: int,
        length: int,
        padding: int | None,
        positions: Positions = "none",
        exponent: Exponent = "2k/d",
        std: float = 1.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.tokens = TokenEmbedding(vocabulary, width, padding, std, dropout)
        self.positions: Positions = positions
        self.exponent: Exponent = exponent
        self.width = width
        self.initial: dict[str, Rule] = {}
        if positions == "sinusoidal":
            self.register_buffer("fixed", sinusoids(length, width, exponent), persistent=False)
        elif positions == "learned":
            self.learned = nn.Parameter(torch.empty(length, width))
            self.initial["learned"] = normal(std)

    def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
        x = self.tokens(tokens)
        end = offset + tokens.shape[-1]
        match self.positions:
            case "sinusoidal":
                table = self.fixed
                if end > len(table):  # sinusoids have no last position: make more when asked
                    # Rounded as the table was made, so that pieces equal the whole in every precision.
                    table = sinusoids(end, self.width, self.exponent).to(table)
                return x + table[offset:end]
            case "learned":
                if end > len(self.learned):
                    raise DataError(
                        f"the model has learned {len(self.learned)} positions; got {end} tokens. Shorten the text."
                    )
                return x + self.learned[offset:end]
        return x
