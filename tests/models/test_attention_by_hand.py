"""The hand-derived gradients against autograd and against finite differences."""

from math import sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmlab.core.errors import DataError
from lmlab.models.attention import attention_weights
from lmlab.models.attention_by_hand import AttentionByHand

DOUBLE = torch.float64
sizes = st.integers(1, 6)


def drawn(B, T, D, D_k, D_v, seed=0):
    random = torch.Generator().manual_seed(seed)
    shapes = [(D, D_k), (D, D_k), (D, D_v), (B, T, D), (B, T, D_v)]
    return [torch.randn(shape, generator=random, dtype=DOUBLE) for shape in shapes]


def close(one, other):
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@given(sizes, sizes, sizes, sizes, sizes, st.booleans(), st.integers(0, 99))
def test_every_value_and_gradient_is_autograds(B, T, D, D_k, D_v, causal, seed):
    W_k, W_q, W_v, X, gradient = drawn(B, T, D, D_k, D_v, seed)
    ours = AttentionByHand(W_k, W_q, W_v, causal)
    X_new = ours.forward(X)
    dLdX = ours.backward(gradient)

    X, W_k, W_q, W_v = (leaf.requires_grad_() for leaf in (X, W_k, W_q, W_v))
    K, Q, V = X @ W_k, X @ W_q, X @ W_v
    A_w = Q @ K.transpose(1, 2)
    scores = A_w / sqrt(D_k)
    if causal:
        scores = scores + torch.full((T, T), float("-inf"), dtype=DOUBLE).triu(1)
    A_sig = torch.softmax(scores, dim=2)
    expected = A_sig @ V
    middle = {"A_sig": A_sig, "A_w": A_w, "V": V, "K": K, "Q": Q, "Wq": W_q, "Wk": W_k, "Wv": W_v, "X": X}
    gradients = torch.autograd.grad(expected, list(middle.values()), gradient)

    for name, value in {"K": K, "Q": Q, "V": V, "A_w": A_w, "A_sig": A_sig, "X_new": expected}.items():
        close(getattr(ours, name), value.detach())
    assert X_new is ours.X_new
    assert dLdX is ours.dLdX
    for name, value in zip(middle, gradients, strict=True):
        close(getattr(ours, f"dLd{name}"), value)


def test_gradients_are_finite_differences():
    W_k, W_q, W_v, X, gradient = drawn(2, 3, 4, 2, 5)
    ours = AttentionByHand(W_k, W_q, W_v)
    ours.forward(X)
    dLdX = ours.backward(gradient)
    step = 1e-6
    for place in [(0, 0, 0), (1, 2, 3), (0, 1, 2)]:
        loss = []
        for sign in (1, -1):
            moved = X.clone()
            moved[place] += sign * step
            loss.append(float((AttentionByHand(W_k, W_q, W_v).forward(moved) * gradient).sum()))
        assert float(dLdX[place]) == pytest.approx((loss[0] - loss[1]) / (2 * step), abs=1e-7)


def test_causal_weights_are_those_of_the_models():
    W_k, W_q, W_v, X, _ = drawn(2, 5, 4, 3, 3)
    ours = AttentionByHand(W_k, W_q, W_v, causal=True)
    ours(X)
    close(ours.A_sig.unsqueeze(1), attention_weights(ours.Q.unsqueeze(1), ours.K.unsqueeze(1)))
    assert torch.count_nonzero(ours.A_sig.triu(1)) == 0


def test_one_example_needs_no_batch():
    W_k, W_q, W_v, X, gradient = drawn(1, 4, 3, 2, 5)
    whole, alone = AttentionByHand(W_k, W_q, W_v), AttentionByHand(W_k, W_q, W_v)
    close(alone.forward(X[0]), whole.forward(X)[0])
    close(alone.backward(gradient[0]), whole.backward(gradient)[0])
    close(alone.dLdWk, whole.dLdWk)


def test_nothing_is_recorded_for_autograd():
    W_k, W_q, W_v, X, gradient = (one.requires_grad_() for one in drawn(2, 3, 4, 2, 5))
    ours = AttentionByHand(W_k, W_q, W_v)
    ours.forward(X)
    ours.backward(gradient)
    assert not any(value.requires_grad for value in vars(ours).values() if isinstance(value, torch.Tensor))


def test_shapes_that_do_not_fit_are_named():
    W_k, W_q, W_v, X, _ = drawn(2, 3, 4, 2, 5)
    with pytest.raises(DataError, match=r"W_k and W_q .* got \(4, 2\) and \(4, 5\)"):
        AttentionByHand(W_k, W_v, W_v)
    with pytest.raises(DataError, match=r"W_v must be .* got \(3, 5\)"):
        AttentionByHand(W_k, W_q, W_v[1:])
    ours = AttentionByHand(W_k, W_q, W_v)
    with pytest.raises(DataError, match="call forward first"):
        ours.backward(X)
    with pytest.raises(DataError, match=r"X must be .* 4; got \(2, 3, 3\)"):
        ours.forward(X[..., 1:])
    ours.forward(X)
    with pytest.raises(DataError, match=r"\(2, 3, 5\); got \(2, 3, 4\)"):
        ours.backward(X)
