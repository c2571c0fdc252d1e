"""Loss and accuracy against loops over examples, tokens and symbols."""

from math import exp, log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmlab.engine.losses import loss_and_accuracy, reduce


@st.composite
def batches(draw):
    """logits (B, S, V) as lists of numbers, targets and weights (B, S); each example has a counted token."""
    B, S, V = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(2, 5))
    number = st.floats(-20, 20)
    logits = draw(st.lists(st.lists(st.lists(number, min_size=V, max_size=V, unique=True), min_size=S, max_size=S),
                           min_size=B, max_size=B))  # fmt: skip
    targets = draw(st.lists(st.lists(st.integers(0, V - 1), min_size=S, max_size=S), min_size=B, max_size=B))
    weights = draw(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=S, max_size=S), min_size=B, max_size=B))
    for row in weights:
        row[draw(st.integers(0, S - 1))] = 1.0
    return logits, targets, weights


def surprise(scores: list[float], target: int) -> float:
    top = max(scores)
    return log(sum(exp(score - top) for score in scores)) + top - scores[target]


def counted(example):
    """(−log p, right?) of every counted token of one example."""
    logits, targets, weights = example
    return [
        (surprise(scores, target), scores.index(max(scores)) == target)
        for scores, target, weight in zip(logits, targets, weights, strict=True)
        if weight
    ]


def tensors(logits, targets, weights):
    double = torch.float64
    return torch.tensor(logits, dtype=double), torch.tensor(targets), torch.tensor(weights, dtype=double)


@given(batches())
def test_arithmetic_averages_examples_and_wants_all_tokens_right(batch):
    """The mean over an example's tokens first, then over examples (document 000, problem 3)."""
    losses, rights = [], []
    for example in zip(*batch, strict=True):
        tokens = counted(example)
        losses.append(sum(loss for loss, _ in tokens) / len(tokens))
        rights.append(float(all(right for _, right in tokens)))
    for reduction, expected in (
        ("mean", (sum(losses) / len(losses), sum(rights) / len(rights))),
        ("sum", (sum(losses), sum(rights))),
        ("none", (losses, rights)),
    ):
        loss, accuracy = loss_and_accuracy(*tensors(*batch), "example", reduction)
        assert loss.tolist() == pytest.approx(expected[0], abs=1e-12)
        assert accuracy.tolist() == pytest.approx(expected[1], abs=1e-12)


@given(batches())
def test_text_averages_tokens(batch):
    """Total −log p over total counted tokens; the share of tokens that are right."""
    tokens = [token for example in zip(*batch, strict=True) for token in counted(example)]
    total, right = sum(loss for loss, _ in tokens), sum(right for _, right in tokens)
    for reduction, expected in (
        ("mean", (total / len(tokens), right / len(tokens))),
        ("sum", (total, right)),
    ):
        loss, accuracy = loss_and_accuracy(*tensors(*batch), "token", reduction)
        assert loss.item() == pytest.approx(expected[0], abs=1e-12)
        assert accuracy.item() == pytest.approx(expected[1], abs=1e-12)


@given(batches())
def test_text_per_example_is_the_mean_of_its_tokens(batch):
    loss, accuracy = loss_and_accuracy(*tensors(*batch), "token", "none")
    for i, example in enumerate(zip(*batch, strict=True)):
        tokens = counted(example)
        assert loss[i].item() == pytest.approx(sum(loss for loss, _ in tokens) / len(tokens), abs=1e-12)
        assert accuracy[i].item() == pytest.approx(sum(right for _, right in tokens) / len(tokens), abs=1e-12)


@pytest.mark.parametrize("family", ["example", "token"])
@given(batch=batches(), padding=st.integers(1, 3))
def test_rows_that_only_pad_a_batch_change_nothing(family, batch, padding):
    logits, targets, weights = tensors(*batch)
    short = loss_and_accuracy(logits, targets, weights, family)
    more = (torch.cat((part, torch.ones(padding, *part.shape[1:], dtype=part.dtype))) for part in (logits, targets))
    padded = loss_and_accuracy(*more, torch.cat((weights, torch.zeros(padding, weights.shape[1]))), family)
    for one, other in zip(short, padded, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_the_two_families_differ_where_examples_have_unequal_lengths():
    """The warning of document 000: averaging tokens is not averaging examples."""
    logits = torch.zeros(2, 2, 3)
    logits[0, :, 0] = 2.0
    targets, weights = torch.zeros(2, 2, dtype=torch.int64), torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    sure, blank = log(1 + 2 * exp(-2)), log(3)
    assert loss_and_accuracy(logits, targets, weights, "example")[0].item() == pytest.approx((sure + blank) / 2)
    assert loss_and_accuracy(logits, targets, weights, "token")[0].item() == pytest.approx((2 * sure + blank) / 3)


def test_large_logits_do_not_overflow():
    logits = torch.tensor([[[1e4, 0.0], [0.0, 1e4]]])
    loss, accuracy = loss_and_accuracy(logits, torch.tensor([[0, 0]]), torch.ones(1, 2))
    assert loss.item() == pytest.approx(5000)
    assert accuracy.item() == 0


def test_an_untrained_guess_costs_the_logarithm_of_the_vocabulary():
    loss, _ = loss_and_accuracy(torch.zeros(3, 4, 36), torch.randint(36, (3, 4)), torch.ones(3, 4))
    assert loss.item() == pytest.approx(log(36), rel=1e-6)


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction must be mean, sum or none; got 'median'"):
        reduce(torch.ones(2), torch.ones(2), "median")
