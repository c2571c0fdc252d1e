"""What a model costs: parameters by part, floating-point operations, matrix products that must wait for each other.

A product of A×B and B×C counts 2ABC operations. Embeddings, the classifier, norms and biases are apart from the
closed forms; `counted` is what torch's operation counter sees in a real forward and backward pass, and shows the
classifier's share. T tokens, width D, hidden size H,
feed-forward F, K = D · key heads / heads, L layers, S positions, V symbols, b = 1 with biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from lmlab.core.errors import ConfigError
from lmlab.models.attention import MultiHeadAttention
from lmlab.models.decoder import DecoderConfig
from lmlab.models.model import ModelConfig
from lmlab.models.recurrent import ElmanConfig, RecurrentConfig

MAX_TOKENS = 1_000_000
MAX_COUNTED_TOKENS = 4096
MAX_COUNTED_STEPS = 256
"""Counting runs the model; a recurrent one takes a step per token, about 15 ms each."""


@dataclass(frozen=True)
class Term:
    """One part of a closed form."""

    part: str
    formula: str
    value: int


@dataclass(frozen=True)
class Operations:
    """Closed forms for T tokens: formula and value of each."""

    forward: Term
    backward: Term
    generate: Term
    sequential: tuple[Term, Term, Term]  # forward, backward, generating T tokens


@dataclass(frozen=True)
class Cost:
    """Everything `lmlab cost` shows."""

    terms: tuple[Term, ...]
    tokens: int
    operations: Operations
    counted: dict[str, int] | None
    """None when T is too large to run."""
    activations: int | None
    """Numbers that a forward pass over T tokens keeps for the backward pass; None when T is too large to run."""

    @property
    def total(self) -> int:
        return sum(term.value for term in self.terms)

    @property
    def embedding(self) -> int:
        return sum(term.value for term in self.terms if term.part in ("embedding", "positions"))

    def to_json(self) -> dict[str, Any]:
        forward, backward = self.operations.forward.value, self.operations.backward.value
        sequential = dict(zip(("forward", "backward", "generate"), self.operations.sequential, strict=True))
        named = {"forward": self.operations.forward, "backward": self.operations.backward}
        return {
            "parameters": {
                "total": self.total,
                "embedding": self.embedding,
                "non_embedding": self.total - self.embedding,
                "parts": {term.part: {"formula": term.formula, "value": term.value} for term in self.terms},
            },
            "tokens": self.tokens,
            "flops": {
                "forward": forward,
                "backward": backward,
                "train": forward + backward,
                "generate": self.operations.generate.value,
            },
            "sequential_matmuls": {name: term.value for name, term in sequential.items()},
            "formulas": {
                "flops": {
                    **{name: term.formula for name, term in named.items()},
                    "generate": self.operations.generate.formula,
                },
                "sequential_matmuls": {name: term.formula for name, term in sequential.items()},
            },
            "counted": self.counted,
            "memory": self.memory(),
        }

    def memory(self) -> dict[str, int | None]:
        """Bytes in fp32: parameters, their gradients, AdamW's two moments, and activations of one sequence."""
        return {
            "parameters": 4 * self.total,
            "gradients": 4 * self.total,
            "optimizer": 8 * self.total,
            "activations": None if self.activations is None else 4 * self.activations,
        }


def cost(config: ModelConfig, vocabulary: int, length: int, tokens: int) -> Cost:
    """The cost of a model for `vocabulary` symbols and sequences of `length`, over `tokens` tokens."""
    if not 1 <= tokens <= MAX_TOKENS:
        raise ConfigError("--tokens", f"must be between 1 and {MAX_TOKENS}", tokens)
    counted, kept = None, None
    if tokens <= (MAX_COUNTED_STEPS if isinstance(config, RecurrentConfig) else MAX_COUNTED_TOKENS):
        counted, kept = _count(config, vocabulary, max(length, tokens), tokens)
    return Cost(tuple(parameter_terms(config, vocabulary, length)), tokens, operations(config, tokens), counted, kept)


@singledispatch
def parameter_terms(config: ModelConfig, vocabulary: int, length: int) -> list[Term]:
    """The closed form of a model's parameters, part by part."""
    raise NotImplementedError(f"no closed form for {type(config).__name__}")


@singledispatch
def operations(config: ModelConfig, tokens: int) -> Operations:
    """The closed forms of a model's operations."""
    raise NotImplementedError(f"no closed form for {type(config).__name__}")


@parameter_terms.register
def _(config: RecurrentConfig, vocabulary: int, length: int) -> list[Term]:  # noqa: ARG001
    D, H, L, V = config.width, config.hidden, config.layers, vocabulary
    g, b = _gates(config), int(config.bias) * (2 if isinstance(config, ElmanConfig) else 1)
    gates, bias = f"{g}H" if g > 1 else "H", "2b" if isinstance(config, ElmanConfig) else "b"
    return [
        Term("embedding", "V·D", V * D),
        Term("first layer", f"{gates}(D + H + {bias})", g * H * (D + H + b)),
        Term("other layers", f"(L − 1)·{gates}(2H + {bias})", (L - 1) * g * H * (2 * H + b)),
        _classifier(H, V, config),
    ]


@operations.register
def _(config: RecurrentConfig, tokens: int) -> Operations:
    D, H, L, T, g = config.width, config.hidden, config.layers, tokens, _gates(config)
    value = 2 * g * T * H * (D + H) + (L - 1) * 4 * g * T * H * H
    formula = f"{4 * g}·T·L·D²" if D == H else f"{2 * g}·T·H(D + H) + {4 * g}·T·(L − 1)·H²"
    return Operations(
        Term("forward", formula, value),
        Term("backward", f"2({formula})", 2 * value),
        Term("generate", formula, value),
        (Term("forward", "T·L", T * L), Term("backward", "2·T·L", 2 * T * L), Term("generate", "T·L", T * L)),
    )


@parameter_terms.register
def _(config: DecoderConfig, vocabulary: int, length: int) -> list[Term]:
    D, F, L, V, b = config.width, config.feedforward, config.layers, vocabulary, int(config.bias)
    K = config.key_heads * (D // config.heads)
    per_norm, name = (2 * D, "2D") if config.norm == "layer" else (D, "D")
    norms = 2 * L + int(config.norm_first)
    attention = "4L(D² + bD)" if K == D else "2L(D² + bD) + 2L(D·K + bK)"
    matrices, c = 3 if config.activation == "swiglu" else 2, int(config.feedforward_bias)
    biases = (matrices - 1) * F + D
    feedforward = f"{matrices}L·D·F" + (f" + L({'2F' if matrices == 3 else 'F'} + D)" if c else "")
    return [
        Term("embedding", "V·D", V * D),
        *([Term("positions", "S·D", length * D)] if config.positions == "learned" else []),
        Term("attention", attention, 2 * L * (D * D + b * D) + 2 * L * (D * K + b * K)),
        Term("feed-forward", feedforward, matrices * L * D * F + c * L * biases),
        Term("norms", f"{'(2L + 1)' if config.norm_first else '2L'}·{name}", norms * per_norm),
        _classifier(D, V, config),
    ]


@operations.register
def _(config: DecoderConfig, tokens: int) -> Operations:
    D, F, L, T = config.width, config.feedforward, config.layers, tokens
    K = config.key_heads * (D // config.heads)
    matrices = 3 if config.activation == "swiglu" else 2
    products = L * T * (4 * D * D + 4 * D * K + 2 * matrices * D * F)
    plain = F == 4 * D and K == D and matrices == 2
    short = "24·L·T·D²" if plain else f"L·T({'8D²' if K == D else '4D² + 4D·K'} + {2 * matrices}D·F)"
    forward = Term("forward", f"{short} + 4·L·T²·D", products + 4 * L * T * T * D)
    return Operations(
        forward,
        Term("backward", f"2({forward.formula})", 2 * forward.value),
        Term("generate", f"{short} + 2·L·T(T + 1)·D", products + 2 * L * T * (T + 1) * D),
        (Term("forward", "6L", 6 * L), Term("backward", "6L", 6 * L), Term("generate", "6·L·T", 6 * L * T)),
    )


def _gates(config: RecurrentConfig) -> int:
    """How many matrices of a layer act on its input: 1 (Elman), 3 (GRU) or 4 (LSTM)."""
    return config.cell(1).parts


def _classifier(width: int, V: int, config: ModelConfig) -> Term:
    b = int(config.classifier_bias)
    return Term("classifier", "bV (tied)" if config.tie else "V(H + b)", b * V if config.tie else V * (width + b))


def _count(config: ModelConfig, vocabulary: int, length: int, tokens: int) -> tuple[dict[str, int], int]:
    """Operations of one pass over one sequence, counted on tensors without data, and what autograd keeps of it."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage.nbytes() // tensor.element_size()  # views of one tensor are kept once
        return tensor

    with torch.device("meta"):
        model = config.build(vocabulary, length, None)
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                module.path = "products"  # the fused path counts only what it does not skip
        symbols = torch.zeros(1, tokens, dtype=torch.int64)
        weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
        with FlopCounterMode(display=False) as forward, saved_tensors_hooks(keep, lambda tensor: tensor):
            logits, _ = model(symbols)
        with FlopCounterMode(display=False) as backward:
            logits.sum().backward()
        hidden = model.get_submodule("classifier").weight.shape[1]  # type: ignore[union-attr]
    head = 2 * tokens * int(hidden) * vocabulary
    counted = {
        "forward": forward.get_total_flops(),
        "backward": backward.get_total_flops(),
        "classifier_forward": head,
        "forward_without_classifier": forward.get_total_flops() - head,
        "backward_without_classifier": backward.get_total_flops() - 2 * head,
    }
    return counted, sum(size for storage, size in kept.items() if storage not in weights)
