import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from lmlab.models.attention import MultiHeadAttention, attention_weights, merge_heads, split_heads
from lmlab.models.initial import initialise


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(1, 5))
def test_heads_are_slices_of_the_columns(batch, length, heads, size):
    """y[b, h, s, l] = x[b, s, head_size · h + l], and merging undoes it."""
    x = torch.arange(batch * length * heads * size).view(batch, length, heads * size)
    y = split_heads(x, heads)
    assert y.shape == (batch, heads, length, size)
    for b in range(batch):
        for h in range(heads):
            for s in range(length):
                for l in range(size):  # noqa: E741
                    assert y[b, h, s, l] == x[b, s, size * h + l]
    assert torch.equal(merge_heads(y), x)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_attention_equals_pytorchs(length):
    q, k, v = torch.randn(3, 2, 3, length, 4, dtype=torch.float64)
    weights = attention_weights(q, k)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(weights @ v, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, length, dtype=torch.float64))
    assert torch.count_nonzero(weights.triu(1)) == 0


def test_queries_are_the_last_positions_of_the_keys():
    """With keys of five positions, queries of the last two see four and five of them."""
    q, k = torch.randn(1, 1, 5, 4, dtype=torch.float64), torch.randn(1, 1, 5, 4, dtype=torch.float64)
    torch.testing.assert_close(attention_weights(q[:, :, 3:], k), attention_weights(q, k)[:, :, 3:])


def test_large_scores_do_not_overflow():
    q = torch.full((1, 1, 3, 4), 1e4)
    assert torch.isfinite(attention_weights(q, q)).all()


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("bias", [True, False])
def test_the_module_equals_pytorchs(heads, bias):
    ours = MultiHeadAttention(8, heads, bias)
    initialise(ours, seed=1)
    ours.double()
    theirs = torch.nn.MultiheadAttention(8, heads, bias=bias, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.queries_keys_values.weight)
        theirs.out_proj.weight.copy_(ours.output.weight)
        if bias:
            theirs.in_proj_bias.copy_(ours.queries_keys_values.bias)
            theirs.out_proj.bias.copy_(ours.output.bias)
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected, _ = theirs(x, x, x, attn_mask=mask, need_weights=False)
    torch.testing.assert_close(ours(x)[0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("bias", "count"), [(True, 4 * (128**2 + 128)), (False, 4 * 128**2)])
def test_the_number_of_parameters_is_the_closed_form(bias, count):
    assert sum(p.numel() for p in MultiHeadAttention(128, 4, bias).parameters()) == count


def test_keys_and_values_grow_with_the_pieces():
    attention = MultiHeadAttention(8, 2, True)
    initialise(attention, seed=0)
    x = torch.randn(3, 5, 8)
    _, past = attention(x[:, :2])
    assert past[0].shape == past[1].shape == (3, 2, 2, 4)
    y, past = attention(x[:, 2:], past)
    assert past[0].shape == (3, 2, 5, 4)
    torch.testing.assert_close(y, attention(x)[0][:, 2:])
