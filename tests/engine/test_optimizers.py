"""A stack of runs with hyper-parameters of their own against one torch.optim optimizer per run."""

import pytest
import torch

from lmlab.engine.optimizers import MOMENTS, Hyper, clipped, propose

RUNS, SIZE, STEPS = 4, 7, 12
LR = [1e-3, 1e-2, 0.1, 0.5]
BETAS = [(0.9, 0.999), (0.9, 0.98), (0.0, 0.5), (0.5, 0.0)]
MOMENTUM = [0.0, 0.5, 0.9, 0.99]
DECAY = [0.0, 0.1, 1.0, 0.25]


def column(values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


HYPER = Hyper(
    lr=column(LR),
    beta1=column([b for b, _ in BETAS]),
    beta2=column([b for _, b in BETAS]),
    momentum=column(MOMENTUM),
    weight_decay=column(DECAY),
    clip=column([1.0] * RUNS),
)
TORCH = {
    "sgd": lambda p, r: torch.optim.SGD(p, lr=LR[r], weight_decay=DECAY[r]),
    "momentum": lambda p, r: torch.optim.SGD(p, lr=LR[r], momentum=MOMENTUM[r], weight_decay=DECAY[r]),
    "adam": lambda p, r: torch.optim.Adam(p, lr=LR[r], betas=BETAS[r], weight_decay=DECAY[r]),
    "adamw": lambda p, r: torch.optim.AdamW(p, lr=LR[r], betas=BETAS[r], weight_decay=DECAY[r]),
}


def stacked(name, theta, gradients, rates=None):
    moments = {moment: torch.zeros_like(theta) for moment in MOMENTS[name]}
    for k, gradient in enumerate(gradients, start=1):
        lr = HYPER.lr if rates is None else HYPER.lr * rates[k - 1]
        theta, moments = propose(name, theta, gradient, moments, HYPER, lr, torch.tensor(k))
    return theta


@pytest.fixture
def start():
    return torch.randn(RUNS, SIZE, dtype=torch.float64)


@pytest.fixture
def gradients():
    return torch.randn(STEPS, RUNS, SIZE, dtype=torch.float64)


@pytest.mark.parametrize("name", TORCH)
def test_each_row_is_a_torch_optimizer_of_its_own(name, start, gradients):
    theta = stacked(name, start, gradients)
    for run in range(RUNS):
        weight = start[run].clone().requires_grad_()
        optimizer = TORCH[name]([weight], run)
        for gradient in gradients:
            weight.grad = gradient[run].clone()
            optimizer.step()
        torch.testing.assert_close(theta[run], weight.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", TORCH)
def test_a_schedule_changes_the_rate_of_each_update(name, start, gradients):
    rates = torch.linspace(1, 0.1, STEPS, dtype=torch.float64)
    theta = stacked(name, start, gradients, rates)
    weight = start[1].clone().requires_grad_()
    optimizer = TORCH[name]([weight], 1)
    for gradient, rate in zip(gradients, rates, strict=True):
        optimizer.param_groups[0]["lr"] = LR[1] * rate.item()
        weight.grad = gradient[1].clone()
        optimizer.step()
    torch.testing.assert_close(theta[1], weight.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", TORCH)
def test_a_row_does_not_feel_its_neighbours(name, start, gradients):
    spoilt = gradients.clone()
    spoilt[3, 1] = float("nan")
    theta, other = stacked(name, start, gradients), stacked(name, start, spoilt)
    healthy = [0, 2, 3]
    assert torch.equal(theta[healthy], other[healthy])
    assert other[1].isnan().all()


@pytest.mark.parametrize("name", TORCH)
def test_proposing_changes_nothing(name, start, gradients):
    moments = {moment: torch.rand_like(start) for moment in MOMENTS[name]}
    before = [tensor.clone() for tensor in (start, gradients[0], *moments.values())]
    new, updated = propose(name, start, gradients[0], moments, HYPER, HYPER.lr, torch.tensor(3))
    assert not torch.equal(new, start)
    assert list(updated) == list(moments)
    for tensor, value in zip((start, gradients[0], *moments.values()), before, strict=True):
        assert torch.equal(tensor, value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_row_is_clipped_to_its_own_limit(dtype):
    gradient = torch.randn(5, 40, dtype=dtype) * torch.tensor([[1e-3], [0.1], [1], [10], [1e4]], dtype=dtype)
    limits = [1.0, 0.2, 0.5, 1.0, 3.0]
    result, norms = clipped(gradient, torch.tensor(limits, dtype=dtype).unsqueeze(1))
    for row in range(5):
        weight = torch.zeros(40, dtype=dtype, requires_grad=True)
        weight.grad = gradient[row].clone()
        norm = torch.nn.utils.clip_grad_norm_([weight], limits[row])
        torch.testing.assert_close(result[row], weight.grad)
        torch.testing.assert_close(norms[row, 0], norm)
        assert result[row].norm() <= limits[row] * (1 + 1e-5)


def test_no_limit_leaves_the_gradient_as_it_is():
    gradient = torch.randn(2, 5) * 1e6
    result, _ = clipped(gradient, torch.full((2, 1), float("inf")))
    assert torch.equal(result, gradient)


def test_a_zero_gradient_stays_zero():
    result, norm = clipped(torch.zeros(1, 5), torch.ones(1, 1))
    assert torch.count_nonzero(result) == 0
    assert norm.item() == 0
