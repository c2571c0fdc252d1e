"""The named architectures have the sizes their documents print."""

import pytest
import torch

from lmlab.models.presets import (
    causal_decoder,
    elman_004,
    gpt2,
    gpt_000,
    gru_004,
    llama,
    lstm_000,
    tiny_transformer,
    transformer_004,
)


@pytest.mark.parametrize(
    ("config", "vocabulary", "length", "parameters"),
    [
        (lstm_000(), 36, 6, 272_420),
        (gpt_000(), 36, 6, 404_516),
        (tiny_transformer(), 500, 50, 326_784),
        (transformer_004(), 92, 100, 222_592),
        (transformer_004(layers=8), 92, 100, 1_606_912),
        (gru_004(width=32, hidden=192), 92, 100, 149_724),
        # GPT-2 small and the 15-million-parameter Llama of llama2.c, counted with tied and separate heads.
        (gpt2(), 50_257, 1024, 124_439_808),
        (llama(), 32_000, 256, 2 * 32_000 * 288 + 6 * (4 * 288**2 + 3 * 288 * 768 + 2 * 288) + 288),
    ],
)
def test_parameters_are_counted_exactly(config, vocabulary, length, parameters):
    with torch.device("meta"):
        model = config.build(vocabulary, length, None)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_an_elman_network_may_have_layers():
    assert len(elman_004(layers=3).build(9, 5, None).recurrent.cells) == 3


def test_the_decoder_of_document_003_drops_words_and_ties():
    config = causal_decoder()
    assert (config.tie, config.activation, config.norm_first) == (True, "relu", True)
    assert config.embedding_dropout > 0
