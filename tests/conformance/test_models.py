"""What every registered model must do. A model added to the registry is tested here without further ado."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_model, save_model
from torch.func import functional_call, stack_module_state, vmap

from lmlab.core.device import cpu_survives_bf16
from lmlab.engine.losses import loss_and_accuracy
from lmlab.models.model import Dropout, LanguageModel, build, models

VOCABULARY, LENGTH, BATCH = 11, 7, 3
SMALL = {"layers": 2, "width": 8}
OPTIONS = {
    "lstm": [{"hidden": 6}, {"init": "pytorch", "layers": 3}, {"tie": True}, {"bias": False, "layers": 1}],
    "gpt": [
        {"heads": 2, "norm": "rms", "norm_first": True},
        {"positions": "learned", "activation": "relu"},
        {"positions": "none", "tie": True},
        {"exponent": "k/d", "bias": False, "feedforward": 5},
        {"positions": "rotary", "activation": "swiglu", "key_heads": 2, "norm": "rms", "norm_first": True},
        {"init": "normal", "feedforward_bias": True, "classifier_bias": False, "norm_first": True},
        {"activation": "gelu-tanh", "embedding_dropout": 0.1},
    ],
    "rnn": [{"hidden": 6}, {"bias": False, "layers": 1}, {"tie": True, "layers": 3}],
    "gru": [{"hidden": 6}, {"bias": True, "layers": 1}, {"tie": True, "layers": 3}],
}
CASES = [
    pytest.param(models[name](name=name, **{**SMALL, **options}), id="-".join([name, *map(str, options)]))
    for name in models
    for options in ({}, *OPTIONS.get(name, []))
]
every_model = pytest.mark.parametrize("config", CASES)


def made(config, seed=0, dtype=torch.float64, padding=VOCABULARY - 1) -> LanguageModel:
    return build(config, VOCABULARY, LENGTH, padding, seed=seed, dtype=dtype).eval()


def some_tokens(batch=BATCH, length=LENGTH):
    return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(batch * length))


def close(one, other):
    torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


@every_model
def test_tokens_become_logits(config):
    logits, _ = made(config)(some_tokens())
    assert logits.shape == (BATCH, LENGTH, VOCABULARY)
    assert torch.isfinite(logits).all()


@every_model
@pytest.mark.parametrize("length", [1, 3])
def test_short_sequences_and_single_examples(config, length):
    """A prefix alone has the logits it has inside a longer sequence, and an example those it has in a batch."""
    model = made(config)
    whole, _ = model(some_tokens())
    close(model(some_tokens()[:, :length])[0], whole[:, :length])
    close(model(some_tokens()[1:2])[0], whole[1:2])


@every_model
def test_logits_never_depend_on_later_tokens(config):
    model, tokens = made(config), some_tokens()
    before, _ = model(tokens)
    for position in range(1, LENGTH):
        changed = tokens.clone()
        changed[:, position:] = (changed[:, position:] + 1) % VOCABULARY
        after, _ = model(changed)
        assert torch.equal(after[:, :position], before[:, :position])
        assert not torch.allclose(after[:, position], before[:, position])  # but on the present one


@every_model
@settings(max_examples=12)
@given(cuts=st.sets(st.integers(1, LENGTH - 1)))
def test_a_sequence_in_any_pieces_equals_the_whole(config, cuts):
    model, tokens = made(config), some_tokens()
    whole, last = model(tokens)
    state, pieces = None, []
    edges = [0, *sorted(cuts), LENGTH]
    for start, end in pairwise(edges):
        logits, state = model(tokens[:, start:end], state)
        pieces.append(logits)
    close(torch.cat(pieces, dim=1), whole)
    for one, other in zip(state, last, strict=True):
        for own, expected in zip(one, other, strict=True):
            close(own, expected)


@every_model
def test_a_state_can_be_gone_on_from_twice(config):
    """Beam search goes on from one state in several ways: a call must not change the state it is given."""
    model, tokens = made(config), some_tokens()
    _, state = model(tokens[:, :4])
    first, _ = model(tokens[:, 4:], state)
    model((tokens[:, 4:] + 1) % VOCABULARY, state)
    again, _ = model(tokens[:, 4:], state)
    assert torch.equal(first, again)


@every_model
def test_looking_changes_nothing_and_leaves_no_hook(config):
    model, tokens = made(config), some_tokens()
    before, _ = model(tokens)
    seen = model.look(tokens)
    assert torch.equal(seen.logits, before)
    assert torch.equal(model(tokens)[0], before)
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


@every_model
def test_what_is_seen_has_the_shapes_of_the_contract(config):
    model, tokens = made(config), some_tokens()
    seen = model.look(tokens)
    width = getattr(config, "hidden", config.width)
    assert seen.hidden_states.shape == (BATCH, config.layers, LENGTH, width)
    if config.name != "rnn":  # an Elman network has neither
        assert (seen.attentions is None) == bool(seen.gates)  # the one or the other
    if seen.attentions is not None:
        assert seen.attentions.shape == (BATCH, config.layers, config.heads, LENGTH, LENGTH)
        close(seen.attentions.sum(-1), torch.ones(BATCH, config.layers, config.heads, LENGTH, dtype=torch.float64))
        assert torch.count_nonzero(seen.attentions.triu(1)) == 0
    for gate in seen.gates.values():
        assert gate.shape == (BATCH, config.layers, LENGTH, width)


@every_model
def test_the_last_hidden_state_is_what_the_classifier_reads(config):
    model, tokens = made(config), some_tokens()
    seen = model.look(tokens)
    top = getattr(model, "final_norm", torch.nn.Identity())(seen.hidden_states[:, -1])
    close(model.classifier(top), seen.logits)


@every_model
def test_saved_and_loaded_weights_give_the_same_logits(config, tmp_path):
    model, other, tokens = made(config, seed=1), made(config, seed=2), some_tokens()
    assert not torch.allclose(other(tokens)[0], model(tokens)[0])
    save_model(model, str(tmp_path / "weights.safetensors"))
    load_model(other, str(tmp_path / "weights.safetensors"))
    assert torch.equal(other(tokens)[0], model(tokens)[0])


@every_model
def test_a_stack_of_models_equals_each_alone(config):
    """In training, with dropout: each row has its own weights, inputs and key."""
    config = type(config)(**{**config.to_json(), "dropout": 0.3})
    members = [made(config, seed=seed).train() for seed in range(3)]
    tokens = torch.stack([some_tokens() + seed for seed in range(3)]) % VOCABULARY
    keys = torch.tensor([5, 6, 7])
    sites = [name for name, module in members[0].named_modules() if isinstance(module, Dropout)]
    parameters, _ = stack_module_state(members)

    def one(row, key, inputs):
        named = {f"{site}.key": key for site in sites}
        return functional_call(members[0], {**row, **named}, (inputs,))[0]

    stacked = vmap(one)(parameters, keys, tokens)
    stacked.square().mean().backward()
    for r, member in enumerate(members):
        for site in sites:
            member.get_submodule(site).key.copy_(keys[r])
        alone = member(tokens[r])[0]
        close(stacked[r], alone)
        alone.square().mean().div(3).backward()
        for name, parameter in member.named_parameters():
            close(parameters[name].grad[r], parameter.grad)


@every_model
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_equal_finite_differences(config, dropout):
    config = type(config)(**{**config.to_json(), "dropout": dropout})
    model = made(config, padding=None).train()
    names, parameters = zip(*model.named_parameters(), strict=True)
    tokens, weights = some_tokens(), torch.ones(BATCH, LENGTH, dtype=torch.float64)

    def loss(*values):
        logits, _ = functional_call(model, dict(zip(names, values, strict=True)), (tokens,))
        return loss_and_accuracy(logits, tokens.roll(-1, 1), weights)[0]

    values = tuple(p.detach().requires_grad_() for p in parameters)
    assert torch.autograd.gradcheck(loss, values, fast_mode=True, atol=1e-6)


@every_model
def test_every_weight_is_used_and_padding_is_not(config):
    model, padding = made(config), VOCABULARY - 1
    model(some_tokens())[0].square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    if model.classifier.weight is not model.embedding.tokens.weight:
        assert torch.count_nonzero(model.embedding.tokens.weight[padding]) == 0
        assert torch.count_nonzero(model.embedding.tokens.weight.grad[padding]) == 0


@every_model
def test_the_config_gives_itself_back(config):
    assert type(config)(**config.to_json()) == config
    assert models[config.name] is type(config)


@every_model
def test_the_compiler_can_follow(config):
    """Traced whole by torch.compile, forward and backward, and equal."""
    torch._dynamo.reset()  # the compiler remembers, and has a limit on how many models of a class it will
    model, tokens = made(config, dtype=torch.float32), some_tokens()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    logits, _ = compiled(tokens)
    torch.testing.assert_close(logits, model(tokens)[0])
    logits.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@every_model
@pytest.mark.skipif(not cpu_survives_bf16(), reason="bf16 products do not work on this CPU")
def test_bf16_is_the_same_but_rounded(config):
    model, tokens = made(config, dtype=torch.float32), some_tokens()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded, _ = model(tokens)
    torch.testing.assert_close(rounded.float(), model(tokens)[0], rtol=0.2, atol=0.2)
