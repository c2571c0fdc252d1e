"""Dropout by hashing, places to look at, and the registry of models."""

import pytest
import torch
from torch import nn

from lmlab.models.decoder import DecoderConfig
from lmlab.models.model import Dropout, Place, Reading, build, models
from lmlab.models.recurrent import LSTMConfig


def dropped(x, p=0.25, site=0, key=1):
    layer = Dropout(p, site).train()
    layer.key.fill_(key)
    return layer(x)


def test_both_models_of_document_000_are_known():
    assert models["lstm"] is LSTMConfig
    assert models["gpt"] is DecoderConfig


def test_a_mask_is_the_same_for_the_same_key_whatever_was_drawn_before():
    x = torch.ones(50, 6, 8)
    first = dropped(x)
    torch.rand(3)
    assert torch.equal(first, dropped(x))
    assert torch.equal(first == 0, dropped(torch.randn(50, 6, 8)) == 0)


def test_keys_and_sites_have_masks_of_their_own():
    x = torch.ones(50, 6, 8)
    masks = [dropped(x, key=key, site=site) != 0 for key in (1, 2) for site in (0, 1)]
    for i, one in enumerate(masks):
        for other in masks[:i]:  # independent masks agree where both keep or both drop
            assert (one == other).float().mean().item() == pytest.approx(0.75**2 + 0.25**2, abs=0.04)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_rate_and_the_scale(p):
    y = dropped(torch.ones(200, 500), p)
    kept = y != 0
    assert kept.float().mean().item() == pytest.approx(1 - p, abs=0.005)  # five standard deviations of 10⁵ draws: 0.008
    torch.testing.assert_close(y[kept], torch.full((int(kept.sum()),), 1 / (1 - p)))
    assert y.mean().item() == pytest.approx(1, abs=0.06)


def test_every_unit_is_dropped_at_the_rate():
    """No unit is favoured over many keys."""
    kept = sum((dropped(torch.ones(4, 8), 0.5, key=key) != 0).float() for key in range(1000)) / 1000
    assert (kept - 0.5).abs().max() < 5 * 0.5 / 1000**0.5


def test_dropout_passes_everything_outside_training_and_at_rate_zero():
    x = torch.randn(5, 6)
    assert torch.equal(Dropout(0.5, 0).eval()(x), x)
    assert torch.equal(Dropout(0.0, 0).train()(x), x)


def test_a_padded_batch_keeps_the_masks_of_its_first_rows():
    x = torch.ones(9, 6, 8)
    assert torch.equal(dropped(x)[:4], dropped(x[:4]))


def test_only_kept_units_get_a_gradient():
    x = torch.randn(6, 8, requires_grad=True)
    y = dropped(x, 0.5)
    y.sum().backward()
    torch.testing.assert_close(x.grad, (y != 0) * 2.0)


def test_dropout_has_nothing_to_store():
    assert Dropout(0.5, 0).state_dict() == {}


class Twice(nn.Module):
    """Passes one place twice and another once."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = Place(), Place()

    def forward(self, x):
        return self.outer(self.inner(self.inner(x) + 1))


def test_a_reading_collects_every_passage_in_order():
    with Reading(model := Twice()) as seen:
        model(torch.tensor(1.0))
    assert [x.item() for x in seen["inner"]] == [1, 2]
    assert [x.item() for x in seen["outer"]] == [2]


def test_a_reading_leaves_no_hook_even_after_an_error():
    model = Twice()
    with pytest.raises(RuntimeError, match="stop"), Reading(model):
        raise RuntimeError("stop")
    assert not any(module._forward_hooks for module in model.modules())


def test_a_place_can_be_replaced_from_outside():
    model = Twice()
    model.inner.register_forward_hook(lambda _module, _inputs, _output: torch.tensor(10.0))
    assert model(torch.tensor(1.0)).item() == 10


def test_build_gives_the_asked_for_type():
    assert build(LSTMConfig(width=4), 5, 3).classifier.weight.dtype == torch.float32
    model = build(DecoderConfig(width=4), 5, 3, dtype=torch.float64)
    assert model(torch.tensor([[1, 2]]))[0].dtype == torch.float64


@pytest.mark.parametrize("kind", [LSTMConfig, DecoderConfig], ids=["lstm", "gpt"])
def test_a_tied_classifier_reads_the_embedding(kind):
    """Changing the table changes both ends at once, and both ends send it gradients."""
    model = build(kind(width=4, tie=True), 6, 3)
    assert model.classifier.weight is model.embedding.tokens.weight
    tokens = torch.tensor([[1, 1, 1]])
    before = model(tokens)[0].detach()
    with torch.no_grad():
        model.embedding.tokens.weight[5] += torch.arange(4)  # a token that is not in the input: only its logit moves
    after = model(tokens)[0]
    assert not torch.allclose(after[..., 5], before[..., 5])
    torch.testing.assert_close(after[..., :5], before[..., :5])
    after[..., 5].sum().backward()
    assert (model.embedding.tokens.weight.grad.abs().sum(1) > 0).tolist() == [False, True, False, False, False, True]
