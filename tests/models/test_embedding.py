from math import cos, sin

import pytest
import torch
from torch.func import functional_call, vmap
from torch.nn import functional as F

from lmlab.core.errors import DataError
from lmlab.models.embedding import Embedding, TokenEmbedding, sinusoids
from lmlab.models.initial import initialise


@pytest.mark.parametrize("width", [1, 6, 7, 128])
@pytest.mark.parametrize("exponent", ["2k/d", "k/d"])
def test_sinusoids_are_the_scalar_formula(width, exponent):
    table = sinusoids(20, width, exponent, dtype=torch.float64)
    assert table.shape == (20, width)
    for position in range(20):
        for i in range(width):
            k = i // 2
            angle = position / 10000 ** ((2 * k if exponent == "2k/d" else k) / width)
            assert table[position, i].item() == pytest.approx(sin(angle) if i % 2 == 0 else cos(angle), abs=1e-12)


def test_the_papers_exponent_is_the_default():
    assert torch.equal(sinusoids(9, 8), sinusoids(9, 8, "2k/d"))
    assert not torch.equal(sinusoids(9, 8), sinusoids(9, 8, "k/d"))


def made(positions, length=6, padding=None, **options):
    embedding = Embedding(10, 8, length, padding, positions, **options)
    initialise(embedding, seed=0)
    return embedding


def test_an_embedding_is_the_row_of_its_token():
    embedding, tokens = made("none"), torch.tensor([[3, 1], [9, 3]])
    table = embedding.tokens.weight
    x = embedding(tokens)
    for b in range(2):
        for s in range(2):
            assert torch.equal(x[b, s], table[tokens[b, s]])


@pytest.mark.parametrize("exponent", ["2k/d", "k/d"])
def test_sinusoidal_positions_are_added(exponent):
    tokens = torch.tensor([[3, 3, 3], [1, 2, 3]])
    embedding = made("sinusoidal", exponent=exponent)
    expected = embedding.tokens.weight[tokens] + sinusoids(3, 8, exponent)
    torch.testing.assert_close(embedding(tokens), expected)
    assert [name for name, _ in embedding.named_parameters()] == ["tokens.weight"]  # fixed, not trained
    assert list(embedding.state_dict()) == ["tokens.weight"]  # and not stored


def test_learned_positions_are_added():
    tokens, embedding = torch.tensor([[3, 3, 3]]), made("learned")
    torch.testing.assert_close(embedding(tokens)[0] - embedding.tokens.weight[3], embedding.learned[:3])


def test_learned_positions_end_somewhere():
    embedding = made("learned")
    count = len(embedding.learned)
    with pytest.raises(DataError, match=f"learned {count} positions; got {count + 1} tokens"):
        embedding(torch.tensor([[3]]), offset=count)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_an_offset_counts_what_came_before(positions):
    tokens, embedding = torch.tensor([[1, 2, 3, 4, 5]]), made(positions)
    assert torch.equal(embedding(tokens[:, 3:], offset=3), embedding(tokens)[:, 3:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sinusoids_go_on_past_the_length_trained_on(dtype):
    tokens = torch.zeros(1, 40, dtype=torch.int64)
    short, long = made("sinusoidal", length=4).to(dtype), made("sinusoidal", length=40).to(dtype)
    assert torch.equal(short(tokens), long(tokens))
    assert torch.equal(short(tokens[:, :1], offset=39), long(tokens)[:, 39:])


def test_padding_is_zero_and_gets_no_gradient():
    table = TokenEmbedding(5, 3, padding=4)
    initialise(table, seed=0)
    table(torch.tensor([[0, 4, 4, 1]])).sum().backward()
    assert torch.count_nonzero(table.weight[4]) == 0
    assert table.weight.grad.abs().sum(1).tolist() == [3, 3, 0, 0, 0]


DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("padding", [None, 0, 4])
def test_gradients_are_those_of_pytorchs_embedding_in_a_stack_too(padding, device):
    """Each row sums over its occurrences; the padding row gets nothing; rows of a stack stay apart."""
    weights = torch.randn(2, 5, 3, dtype=torch.float64, device=device, requires_grad=True)
    tokens = torch.randint(5, (2, 4, 6), device=device)
    factors = torch.randn(2, 4, 6, 3, dtype=torch.float64, device=device)
    expected = torch.stack([F.embedding(t, w, padding_idx=padding) for t, w in zip(tokens, weights, strict=True)])
    (gradient,) = torch.autograd.grad((expected * factors).sum(), weights)

    table = TokenEmbedding(5, 3, padding).to(device)
    stacked = vmap(lambda weight, t: functional_call(table, {"weight": weight}, (t,)))(weights, tokens)
    assert torch.equal(stacked, expected)
    torch.testing.assert_close(torch.autograd.grad((stacked * factors).sum(), weights)[0], gradient)
    for run in range(2):
        alone = functional_call(table, {"weight": weights[run]}, (tokens[run],))
        (own,) = torch.autograd.grad((alone * factors[run]).sum(), weights)
        torch.testing.assert_close(own[run], gradient[run])


def test_a_dropped_word_vanishes_everywhere_in_a_pass():
    embedding = TokenEmbedding(50, 4, None, dropout=0.4)
    initialise(embedding, 0)
    embedding.key.fill_(12345)
    tokens = torch.arange(50).repeat(3, 2)
    x = embedding.train()(tokens)
    kept = x.abs().sum(-1) > 0
    assert (kept == kept[:1, :50].repeat(3, 2)).all()  # the same symbols, wherever they stand
    assert 15 <= kept[0, :50].sum() <= 45
    torch.testing.assert_close(x[kept], embedding.weight[tokens][kept] / 0.6)
    torch.testing.assert_close(embedding.eval()(tokens), embedding.weight[tokens])
