from math import sqrt

import pytest
import torch
from torch.nn import functional as F

from lmlab.models.initial import initialise
from lmlab.models.norms import LayerNorm, RMSNorm


def filled(norm, seed=0):
    """A norm whose weights are not the trivial ones."""
    random = torch.Generator().manual_seed(seed)
    for parameter in norm.double().parameters():
        parameter.data = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
    return norm


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5), (0, 5)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_layer_norm_is_that_of_pytorch(shape, scale):
    norm, x = filled(LayerNorm(5)), torch.randn(shape, dtype=torch.float64) * scale + 3
    expected = F.layer_norm(x, (5,), norm.weight, norm.bias, eps=1e-5)
    torch.testing.assert_close(norm(x), expected, rtol=1e-12, atol=1e-12)


def test_layer_norm_of_a_constant_is_its_bias():
    norm = filled(LayerNorm(4))
    torch.testing.assert_close(norm(torch.full((2, 4), 7.0, dtype=torch.float64)), norm.bias.expand(2, 4))


def test_rms_norm_is_its_formula():
    norm, x = filled(RMSNorm(5)), torch.randn(2, 3, 5, dtype=torch.float64)
    y = norm(x)
    for b in range(2):
        for s in range(3):
            numbers = x[b, s].tolist()
            root = sqrt(sum(number**2 for number in numbers) / 5 + 1e-5)
            expected = [n / root * w for n, w in zip(numbers, norm.weight.tolist(), strict=True)]
            assert y[b, s].tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_a_fresh_norm_gives_unit_mean_square(kind):
    norm = kind(64)
    initialise(norm, seed=0)
    y = norm(torch.randn(10, 64) * 50)
    torch.testing.assert_close(y.square().mean(-1), torch.ones(10), rtol=1e-4, atol=0)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_gradients_are_right(kind):
    norm, x = filled(kind(4)), torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm, (x,))
