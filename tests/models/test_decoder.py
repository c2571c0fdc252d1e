"""The decoder against PyTorch's encoder layers under a causal mask, its sizes, and what it refuses."""

import pytest
import torch
from torch.nn import functional as F

from lmlab.core.errors import ConfigError
from lmlab.models.decoder import DecoderConfig
from lmlab.models.embedding import sinusoids
from lmlab.models.model import build

DOUBLE = torch.float64


def as_pytorch(block, config):
    """The same layer built from PyTorch's modules; our feed-forward has no biases, so theirs are zero."""
    layer = torch.nn.TransformerEncoderLayer(
        config.width,
        config.heads,
        config.feedforward,
        dropout=0.0,
        activation=config.activation,
        batch_first=True,
        norm_first=config.norm_first,
        dtype=DOUBLE,
    )
    ours = {
        "self_attn.in_proj_weight": block.attention.queries_keys_values.weight,
        "self_attn.in_proj_bias": block.attention.queries_keys_values.bias,
        "self_attn.out_proj.weight": block.attention.output.weight,
        "self_attn.out_proj.bias": block.attention.output.bias,
        "linear1.weight": block.feedforward.up.weight,
        "linear2.weight": block.feedforward.down.weight,
        "norm1.weight": block.attention_norm.weight,
        "norm1.bias": block.attention_norm.bias,
        "norm2.weight": block.feedforward_norm.weight,
        "norm2.bias": block.feedforward_norm.bias,
    }
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.copy_(ours[name]) if name in ours else parameter.zero_()
    return layer


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_the_decoder_is_pytorchs_layers_under_a_causal_mask(norm_first, activation):
    config = DecoderConfig(width=8, heads=2, layers=3, norm_first=norm_first, activation=activation)
    model = build(config, 11, 6, seed=3, dtype=DOUBLE)
    with torch.no_grad():  # norms that do something
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    tokens = torch.randint(11, (2, 6))
    x = model.embedding.tokens.weight[tokens] + sinusoids(6, 8).double()
    mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
    for block in model.blocks:
        x = as_pytorch(block, config)(x, src_mask=mask)
    if norm_first:
        x = F.layer_norm(x, (8,), model.final_norm.weight, model.final_norm.bias)
    expected = F.linear(x, model.classifier.weight, model.classifier.bias)
    torch.testing.assert_close(model(tokens)[0], expected, rtol=1e-10, atol=1e-10)


def test_rms_norm_takes_the_place_of_layer_norm():
    rms = build(DecoderConfig(width=8, norm="rms"), 11, 6)
    assert not any("norm.bias" in name for name, _ in rms.named_parameters())
    tokens = torch.randint(11, (2, 6))
    layer = build(DecoderConfig(width=8), 11, 6)
    assert not torch.allclose(rms(tokens)[0], layer(tokens)[0])


def parameters(config, vocabulary=36):
    model = build(config, vocabulary, 6, 35)
    total = sum(p.numel() for p in model.parameters())
    return total, total - sum(p.numel() for p in model.embedding.parameters())


def test_document_000s_parameters():
    assert parameters(DecoderConfig()) == (404_516, 399_908)
    blocks = build(DecoderConfig(), 36, 6, 35).blocks
    assert sum(p.numel() for p in blocks.parameters()) == 395_264  # 394,240 of the closed form, and the norms


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("layers", "width", "multiplier"), [(1, 8, 4), (3, 8, 4), (2, 12, 3)])
def test_parameters_are_the_closed_form(layers, width, multiplier, bias):
    """L (4d² + 4d + 2d²m), two norms per layer, and the classifier."""
    blocks = layers * (4 * width**2 + (4 * width if bias else 0) + 2 * width**2 * multiplier)
    norms = layers * 2 * 2 * width
    head = 36 * width + (36 if bias else 0)
    config = DecoderConfig(layers=layers, width=width, feedforward=multiplier * width, bias=bias)
    assert parameters(config) == (blocks + norms + head + 36 * width, blocks + norms + head)


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ({"tie": True}, -36 * 128),
        ({"norm_first": True}, 2 * 128),
        ({"norm": "rms"}, -4 * 128),
        ({"positions": "learned"}, 6 * 128),
        ({"positions": "none"}, 0),
        ({"activation": "relu"}, 0),
        ({"heads": 8}, 0),
    ],
)
def test_what_an_option_adds(fields, more):
    assert parameters(DecoderConfig(**fields))[0] - parameters(DecoderConfig())[0] == more


def test_feedforward_follows_width_unless_set():
    assert DecoderConfig(width=48).feedforward == 192
    assert DecoderConfig(width=48, feedforward=50).feedforward == 50


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"width": 130}, "model.width must be a multiple of model.heads (4); got 130. Try 128 or 132."),
        ({"heads": 0}, "model.heads must be between 1 and model.width (128); got 0."),
        ({"width": 2}, "model.heads must be between 1 and model.width (2); got 4."),
        ({"feedforward": 0}, "model.feedforward must be between 1 and 1000000; got 0."),
        ({"dropout": 1.0}, "model.dropout must be at least 0 and below 1; got 1.0."),
        ({"dropout": float("nan")}, "model.dropout must be at least 0 and below 1; got nan."),
        ({"positions": "rotten"}, "model.positions must be 'sinusoidal', 'learned', 'rotary' or 'none'; got 'rotten'."),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(fields, message):
    with pytest.raises(ConfigError) as caught:
        DecoderConfig(**fields)
    assert str(caught.value) == message


def test_without_positions_order_does_not_matter_to_the_last_token():
    """Of one layer: from the second on, the causal mask itself tells positions apart."""
    tokens = torch.tensor([[1, 2, 3, 4], [3, 1, 2, 4]])
    blind = build(DecoderConfig(layers=1, width=8, positions="none"), 11, 4)(tokens)[0][:, -1]
    torch.testing.assert_close(blind[0], blind[1])
    for positions in ("sinusoidal", "learned"):
        seeing = build(DecoderConfig(layers=1, width=8, positions=positions), 11, 4)(tokens)[0][:, -1]
        assert not torch.allclose(seeing[0], seeing[1])


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_a_sequence_can_go_on_past_the_length_trained_on(dtype):
    model = build(DecoderConfig(width=8), 11, 4, dtype=dtype)
    tokens = torch.randint(11, (2, 9))
    whole, _ = model(tokens)
    state, pieces = None, []
    for part in tokens.split(2, dim=1):
        logits, state = model(part, state)
        pieces.append(logits)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-13
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=tolerance, atol=tolerance)


def test_dropout_acts_in_training_only():
    tokens = torch.randint(11, (4, 5))
    model, plain = build(DecoderConfig(width=8, dropout=0.5), 11, 5), build(DecoderConfig(width=8), 11, 5)
    assert not torch.allclose(model.train()(tokens)[0], plain(tokens)[0])
    assert torch.equal(model.eval()(tokens)[0], plain(tokens)[0])
