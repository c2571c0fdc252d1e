"""Closed forms against what real modules have and do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.core.errors import ConfigError
from lmlab.models.cost import Cost, cost
from lmlab.models.decoder import DecoderConfig
from lmlab.models.model import ModelConfig, build
from lmlab.models.recurrent import ElmanConfig, GRUConfig, LSTMConfig, RecurrentConfig

SYMBOLS = 36  # of arithmetic modulo 31


def recurrent(kind: type[RecurrentConfig]) -> st.SearchStrategy[RecurrentConfig]:
    @st.composite
    def configs(draw: st.DrawFn) -> RecurrentConfig:
        tie = draw(st.booleans())
        options = {} if tie else {"hidden": draw(st.integers(1, 24))}
        if draw(st.booleans()):
            options["classifier_bias"] = draw(st.booleans())
        width, layers, bias = draw(st.integers(1, 24)), draw(st.integers(1, 4)), draw(st.booleans())
        return kind(width=width, layers=layers, bias=bias, tie=tie, **options)

    return configs()


@st.composite
def decoders(draw: st.DrawFn) -> DecoderConfig:
    heads = draw(st.integers(1, 4))
    positions = draw(st.sampled_from(["sinusoidal", "learned", "rotary", "none"]))
    options = {}
    if draw(st.booleans()):
        options["feedforward"] = draw(st.integers(1, 50))
    if draw(st.booleans()):
        options["key_heads"] = draw(st.sampled_from([count for count in (1, 2, 3, 4) if heads % count == 0]))
    if draw(st.booleans()):
        options["classifier_bias"] = draw(st.booleans())
    return DecoderConfig(
        width=heads * draw(st.integers(1, 4)) * (2 if positions == "rotary" else 1),
        heads=heads,
        layers=draw(st.integers(1, 4)),
        bias=draw(st.booleans()),
        feedforward_bias=draw(st.booleans()),
        tie=draw(st.booleans()),
        norm=draw(st.sampled_from(["layer", "rms"])),
        norm_first=draw(st.booleans()),
        positions=positions,
        activation=draw(st.sampled_from(["gelu", "relu", "swiglu"])),
        **options,
    )


ALL = pytest.mark.parametrize(
    "configs",
    [recurrent(LSTMConfig), recurrent(GRUConfig), recurrent(ElmanConfig), decoders()],
    ids=["lstm", "gru", "rnn", "gpt"],
)


def part(found: Cost, name: str) -> int:
    return found.to_json()["parameters"]["parts"][name]["value"]


@ALL
@settings(max_examples=25)
@given(data=st.data(), vocabulary=st.integers(1, 40), length=st.integers(1, 9))
def test_the_closed_form_counts_the_parameters_of_the_module(configs, data, vocabulary, length):
    config = data.draw(configs)
    model = build(config, vocabulary, length)
    found = cost(config, vocabulary, length, tokens=1)
    assert found.total == sum(parameter.numel() for parameter in model.parameters())
    assert found.embedding == sum(parameter.numel() for parameter in model.embedding.parameters())


@settings(max_examples=25)
@given(decoders(), st.integers(1, 40))
def test_the_parts_of_a_decoder_are_those_of_its_modules(config, vocabulary):
    model, found = build(config, vocabulary, 6), cost(config, vocabulary, 6, tokens=1)
    named = {name: parameter.numel() for name, parameter in model.named_parameters()}
    for term, marks in {
        "attention": (".attention.",),
        "feed-forward": (".feedforward.",),
        "norms": ("_norm.",),
    }.items():
        assert part(found, term) == sum(count for name, count in named.items() if any(mark in name for mark in marks))


@ALL
@settings(max_examples=20)
@given(data=st.data(), vocabulary=st.integers(1, 40), tokens=st.integers(1, 12))
def test_the_closed_form_of_a_forward_pass_is_what_a_forward_pass_does(configs, data, vocabulary, tokens):
    found = cost(data.draw(configs), vocabulary, 4, tokens).to_json()
    assert found["counted"]["forward_without_classifier"] == found["flops"]["forward"]
    assert found["counted"]["forward"] > found["flops"]["forward"]


@pytest.mark.parametrize("config", [LSTMConfig(width=12), DecoderConfig(width=12, heads=3)])
def test_a_backward_pass_does_about_twice_as_much(config):
    found = cost(config, SYMBOLS, 6, 60).to_json()
    assert found["flops"]["backward"] == 2 * found["flops"]["forward"]
    assert found["flops"]["train"] == 3 * found["flops"]["forward"]
    # A recurrent model needs no gradient of its blank first state: a little less than twice.
    assert found["counted"]["backward_without_classifier"] == pytest.approx(found["flops"]["backward"], rel=0.02)


# --- the numbers of the documents ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "total", "without_embedding"),
    [(LSTMConfig(), 272_420, 267_812), (DecoderConfig(), 404_516, 399_908)],
)
def test_the_models_of_the_arithmetic_recipes(config: ModelConfig, total, without_embedding):
    parameters = cost(config, SYMBOLS, 6, tokens=6).to_json()["parameters"]
    assert (parameters["total"], parameters["non_embedding"]) == (total, without_embedding)
    assert parameters["embedding"] == SYMBOLS * 128


@pytest.mark.parametrize(("L", "d", "m"), [(2, 128, 4), (1, 8, 4), (3, 20, 2), (5, 12, 1)])
def test_the_documents_decoder_leaves_the_norms_out(L, d, m):
    found = cost(DecoderConfig(layers=L, width=d, feedforward=m * d), SYMBOLS, 6, tokens=1)
    assert part(found, "attention") + part(found, "feed-forward") == L * (4 * d**2 + 4 * d + 2 * d**2 * m)
    assert part(found, "norms") == L * 4 * d


def test_the_documents_decoder_of_two_layers_of_128():
    found = cost(DecoderConfig(), SYMBOLS, 6, tokens=1)
    products = part(found, "attention") + part(found, "feed-forward")
    assert products == 394_240
    assert products + part(found, "norms") == 395_264


@pytest.mark.parametrize(("kind", "forward"), [(ElmanConfig, 4), (GRUConfig, 12), (LSTMConfig, 16)])
@pytest.mark.parametrize(("T", "L", "D"), [(1, 1, 8), (6, 2, 128), (20, 3, 12)])
def test_operations_of_recurrent_models(kind, forward, T, L, D):
    found = cost(kind(layers=L, width=D), SYMBOLS, 6, T).to_json()
    assert found["tokens"] == T
    assert found["flops"] == {
        "forward": forward * T * L * D**2,
        "backward": 2 * forward * T * L * D**2,
        "train": 3 * forward * T * L * D**2,
        "generate": forward * T * L * D**2,
    }
    assert found["sequential_matmuls"] == {"forward": T * L, "backward": 2 * T * L, "generate": T * L}


@pytest.mark.parametrize(("T", "L", "D"), [(1, 1, 8), (6, 2, 128), (50, 3, 12)])
def test_operations_of_a_transformer(T, L, D):
    found = cost(DecoderConfig(layers=L, width=D), SYMBOLS, 6, T).to_json()
    forward = 24 * L * T * D**2 + 4 * L * T**2 * D
    assert found["flops"] == {
        "forward": forward,
        "backward": 2 * forward,
        "train": 3 * forward,
        "generate": 24 * L * T * D**2 + 2 * L * T * (T + 1) * D,
    }
    assert found["sequential_matmuls"] == {"forward": 6 * L, "backward": 6 * L, "generate": 6 * L * T}


# --- limits ----------------------------------------------------------------------------------------------------------


def test_more_tokens_than_can_be_run_are_still_reckoned():
    found = cost(DecoderConfig(), SYMBOLS, 6, 1_000_000).to_json()
    assert found["counted"] is None
    assert found["sequential_matmuls"]["generate"] == 12_000_000


@pytest.mark.parametrize("tokens", [0, -5, 1_000_001])
def test_a_number_of_tokens_that_makes_no_sense_is_refused(tokens):
    with pytest.raises(ConfigError, match=f"--tokens must be between 1 and 1000000; got {tokens}"):
        cost(DecoderConfig(), SYMBOLS, 6, tokens)


@pytest.mark.parametrize("config", [DecoderConfig(width=16, heads=2), LSTMConfig(width=16)])
def test_memory_of_weights_is_exact_and_activations_grow_with_the_text(config):
    short, long = cost(config, 20, 40, 10), cost(config, 20, 40, 20)
    assert short.memory()["parameters"] == 4 * sum(p.numel() for p in config.build(20, 40, None).parameters())
    assert short.memory()["optimizer"] == 2 * short.memory()["parameters"]
    kept = [each.memory()["activations"] for each in (short, long)]
    assert 10 * 16 * 4 * config.layers < kept[0] < 2000 * 16 * 4 * config.layers
    assert 1.9 < kept[1] / kept[0] < 4.1  # linear for a recurrent model, up to quadratic for attention
