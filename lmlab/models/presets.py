"""The named architectures of the documents, and two that people expect today, as settings of the models.

| preset | document | parameters |
|---|---|---|
| `lstm_000` | 000 | 272,420 (36 symbols) |
| `gpt_000` | 000 | 404,516 (36 symbols) |
| `tiny_transformer` | 002 | 326,784 (500 symbols) |
| `causal_decoder` | 003 | its sizes are not given there |
| `elman_004`, `gru_004` | 004 | |
| `transformer_004` | 004 | 222,592 with one layer, 1,606,912 with eight (92 symbols, 100 positions) |
"""

from __future__ import annotations

from lmlab.models.decoder import DecoderConfig
from lmlab.models.recurrent import ElmanConfig, GRUConfig, LSTMConfig


def lstm_000() -> LSTMConfig:
    """Two layers of 128 (document 000)."""
    return LSTMConfig()


def gpt_000() -> DecoderConfig:
    """Two post-norm layers of 128 with 4 heads, sinusoids, a feed-forward without biases (document 000)."""
    return DecoderConfig()


def tiny_transformer() -> DecoderConfig:
    """Two pre-norm layers of 128 with one head, RMSNorm, sinusoids, a separate head without bias (document 002)."""
    return DecoderConfig(
        width=128,
        layers=2,
        heads=1,
        feedforward=128,
        feedforward_bias=True,
        classifier_bias=False,
        norm="rms",
        norm_first=True,
        norm_eps=1e-8,
    )


def causal_decoder(width: int = 128, layers: int = 2, heads: int = 4) -> DecoderConfig:
    """Pre-norm LayerNorm, ReLU, sinusoids, tied head, word-level dropout (document 003; the sizes are ours)."""
    return DecoderConfig(
        width=width,
        layers=layers,
        heads=heads,
        activation="relu",
        feedforward_bias=True,
        norm_first=True,
        tie=True,
        dropout=0.1,
        embedding_dropout=0.02,  # of 31 symbols: at 0.1 three letters are missing in most passes, and little is learnt
    )


def elman_004(layers: int = 1) -> ElmanConfig:
    """Embeddings of 64 and a hidden state of 256 (document 004); more layers for its multi-layer network."""
    return ElmanConfig(width=64, hidden=256, layers=layers)


def gru_004(width: int = 64, hidden: int = 256) -> GRUConfig:
    """The same sizes with a GRU; document 004 also has one of 32 and 192."""
    return GRUConfig(width=width, hidden=hidden)


def transformer_004(layers: int = 1) -> DecoderConfig:
    """GPT-2's block: pre-norm LayerNorm, GELU, learned positions, tied head, no attention biases (document 004)."""
    return DecoderConfig(
        width=128,
        layers=layers,
        heads=4,
        bias=False,
        feedforward_bias=True,
        classifier_bias=False,
        norm_first=True,
        positions="learned",
        tie=True,
        init="normal",
    )


def gpt2(width: int = 768, layers: int = 12, heads: int = 12) -> DecoderConfig:
    """GPT-2 (Radford et al., 2019)."""
    return DecoderConfig(
        width=width,
        layers=layers,
        heads=heads,
        activation="gelu-tanh",
        feedforward_bias=True,
        classifier_bias=False,
        norm_first=True,
        positions="learned",
        tie=True,
        init="normal",
    )


def llama(
    width: int = 288, layers: int = 6, heads: int = 6, key_heads: int = 6, feedforward: int = 768
) -> DecoderConfig:
    """Llama (Touvron et al., 2023): rotary positions, RMSNorm, SwiGLU, grouped queries, no biases."""
    return DecoderConfig(
        width=width,
        layers=layers,
        heads=heads,
        key_heads=key_heads,
        feedforward=feedforward,
        activation="swiglu",
        bias=False,
        norm="rms",
        norm_first=True,
        positions="rotary",
        init="normal",
    )
