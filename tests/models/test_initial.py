"""Initial weights: the distributions that are promised, from streams that depend on nothing but seed and name."""

from math import sqrt

import pytest
import torch
from torch import nn

from lmlab.models.decoder import DecoderConfig
from lmlab.models.initial import initialise
from lmlab.models.model import build
from lmlab.models.recurrent import LSTMConfig


def weights(config, seed=0, vocabulary=36, length=6, padding=35):
    return dict(build(config, vocabulary, length, padding, seed=seed).named_parameters())


def assert_uniform(weight: torch.Tensor, bound: float) -> None:
    """Inside ±bound, close to the bound on both sides, and as spread as U(−bound, bound) is."""
    assert -bound <= weight.min() < -0.97 * bound
    assert bound >= weight.max() > 0.97 * bound
    assert weight.std().item() == pytest.approx(bound / sqrt(3), rel=0.05)


@pytest.mark.parametrize("config", [LSTMConfig(), DecoderConfig()], ids=["lstm", "gpt"])
def test_embeddings_are_standard_normal_with_a_zero_row_for_pad(config):
    table = weights(config)["embedding.tokens.weight"]
    assert torch.count_nonzero(table[35]) == 0
    others = table[:35]
    assert others.mean().item() == pytest.approx(0, abs=4 / sqrt(others.numel()))
    assert others.std().item() == pytest.approx(1, rel=0.05)
    assert others.abs().max() > 2.5  # a normal distribution has tails


def test_without_padding_no_row_is_zero():
    assert weights(LSTMConfig(), padding=None)["embedding.tokens.weight"].abs().sum(1).min() > 0


@pytest.mark.parametrize(("width", "hidden"), [(128, 128), (32, 96)])
def test_lstm_gates_are_xavier_over_input_and_hidden(width, hidden):
    drawn = weights(LSTMConfig(width=width, hidden=hidden))
    for layer, inputs in enumerate((width, hidden)):
        bound = sqrt(6 / (inputs + 2 * hidden))
        assert_uniform(drawn[f"recurrent.cells.{layer}.weight_input"], bound)
        assert_uniform(drawn[f"recurrent.cells.{layer}.weight_hidden"], bound)
        assert torch.count_nonzero(drawn[f"recurrent.cells.{layer}.bias"]) == 0


def test_lstm_gates_can_be_drawn_as_linear_layers_are():
    drawn = weights(LSTMConfig(width=64, hidden=128, init="pytorch"))
    for layer, inputs in enumerate((64, 128)):
        for name in ("weight_input", "weight_hidden", "bias"):
            assert_uniform(drawn[f"recurrent.cells.{layer}.{name}"], 1 / sqrt(inputs + 128))


@pytest.mark.parametrize("config", [LSTMConfig(), DecoderConfig()], ids=["lstm", "gpt"])
def test_classifiers_are_drawn_as_linear_layers_are(config):
    drawn = weights(config)
    assert_uniform(drawn["classifier.weight"], 1 / sqrt(128))
    assert drawn["classifier.bias"].abs().max() <= 1 / sqrt(128)
    assert drawn["classifier.bias"].abs().max() > 0.8 / sqrt(128)


def test_decoder_layers_are_linear_layers_and_norms_do_nothing_yet():
    drawn = weights(DecoderConfig(norm_first=True))
    for layer in range(2):
        block = f"blocks.{layer}"
        for name in ("queries_keys_values", "output"):
            assert_uniform(drawn[f"{block}.attention.{name}.weight"], 1 / sqrt(128))
            assert drawn[f"{block}.attention.{name}.bias"].abs().max() <= 1 / sqrt(128)
            assert torch.count_nonzero(drawn[f"{block}.attention.{name}.bias"]) > 100
        assert_uniform(drawn[f"{block}.feedforward.up.weight"], 1 / sqrt(128))
        assert_uniform(drawn[f"{block}.feedforward.down.weight"], 1 / sqrt(512))
    norms = {name: weight for name, weight in drawn.items() if "norm" in name}
    assert len(norms) == 2 * 4 + 2
    for name, weight in norms.items():
        assert (weight == (1 if name.endswith("weight") else 0)).all()


def test_learned_positions_are_normal():
    table = weights(DecoderConfig(positions="learned"), length=100)["embedding.learned"]
    assert table.shape == (100, 128)
    assert table.std().item() == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("config", [LSTMConfig(width=16), DecoderConfig(width=16)], ids=["lstm", "gpt"])
def test_a_seed_is_a_set_of_weights(config):
    before = torch.get_rng_state()
    first = weights(config, seed=3)
    torch.manual_seed(12345)
    again, other = weights(config, seed=3), weights(config, seed=4)
    torch.set_rng_state(before)
    assert all(torch.equal(first[name], again[name]) for name in first)
    drawn = [name for name in first if first[name].std() > 0]
    assert drawn
    assert not any(torch.equal(first[name], other[name]) for name in drawn)


@pytest.mark.parametrize("kind", [LSTMConfig, DecoderConfig], ids=["lstm", "gpt"])
def test_another_layer_leaves_all_other_weights_as_they_were(kind):
    two, three = weights(kind(width=16)), weights(kind(width=16, layers=3))
    assert set(two) < set(three)
    assert all(torch.equal(two[name], three[name]) for name in two)


def test_layers_of_one_model_differ():
    drawn = weights(DecoderConfig(width=16))
    assert not torch.equal(drawn["blocks.0.feedforward.up.weight"], drawn["blocks.1.feedforward.up.weight"])


def test_a_tied_matrix_is_drawn_as_the_embedding_is():
    tied, free = weights(LSTMConfig(width=16, tie=True)), weights(LSTMConfig(width=16))
    assert torch.equal(tied["embedding.tokens.weight"], free["embedding.tokens.weight"])
    assert "classifier.weight" not in tied


def test_drawing_in_double_precision_gives_the_same_numbers():
    single = build(LSTMConfig(width=16), 10, 6, seed=1)
    double = build(LSTMConfig(width=16), 10, 6, seed=1, dtype=torch.float64)
    for one, other in zip(single.parameters(), double.parameters(), strict=True):
        assert other.dtype == torch.float64
        assert torch.equal(one.double(), other)


def test_a_parameter_without_a_rule_is_named():
    with pytest.raises(NotImplementedError, match=r"Linear\.weight has no initial rule"):
        initialise(nn.Sequential(nn.Linear(2, 2)), seed=0)
