import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from lmlab.models.attention import MultiHeadAttention, attention_weights, merge_heads, rotate, split_heads
from lmlab.models.initial import initialise
from lmlab.models.model import Reading


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


@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("before", [0, 3])
def test_both_paths_agree(key_heads, rotary, before):
    """Plain products and PyTorch's fused attention, whole and in pieces, to 1e-6 in float32."""
    module = MultiHeadAttention(16, 4, True, key_heads=key_heads, rotary=rotary)
    initialise(module, 0)
    x = torch.randn(2, 9, 16)
    results = {}
    for path in ("products", "fused"):
        module.path = path
        _, past = module(x[:, :before]) if before else (None, None)
        results[path] = module(x[:, before:], past)[0]
    torch.testing.assert_close(results["products"], results["fused"], rtol=0, atol=1e-6)


def test_the_fused_path_still_shows_its_weights_to_who_looks():
    module = MultiHeadAttention(8, 2, True)
    initialise(module, 0)
    module.path = "fused"
    with Reading(module) as seen:
        module(torch.randn(1, 5, 8))
    assert seen["weights"][0].shape == (1, 2, 5, 5)


def test_rotary_scores_depend_on_distance_alone():
    q, k = torch.randn(1, 1, 1, 8, dtype=torch.float64), torch.randn(1, 1, 1, 8, dtype=torch.float64)
    scores = [(rotate(q, 5 + shift) @ rotate(k, 2 + shift).transpose(-1, -2)).item() for shift in (0, 1, 40)]
    assert scores == pytest.approx([scores[0]] * 3, abs=1e-12)
    assert (rotate(q, 5) @ rotate(k, 3).transpose(-1, -2)).item() != pytest.approx(scores[0], abs=1e-6)


def test_rotary_turns_pairs_and_keeps_lengths():
    x = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    turned = rotate(x, 7)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(rotate(x[:, :, :1], 0), x[:, :, :1])  # position 0 is not turned


def test_grouped_queries_share_keys_in_order():
    """Heads 0 and 1 read key head 0, heads 2 and 3 key head 1: the same as full heads with repeated weights."""
    grouped, full = MultiHeadAttention(8, 4, False, key_heads=2), MultiHeadAttention(8, 4, False)
    initialise(grouped, 0)
    q, k, v = grouped.queries_keys_values.weight.detach().split((8, 4, 4))
    repeat = lambda part: part.view(2, 2, 8).repeat_interleave(2, dim=0).reshape(8, 8)  # noqa: E731
    with torch.no_grad():
        full.queries_keys_values.weight.copy_(torch.cat((q, repeat(k), repeat(v))))
        full.output.weight.copy_(grouped.output.weight)
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(grouped(x)[0], full(x)[0])
