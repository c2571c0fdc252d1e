"""The options of generation, the filters one by one and together, and that draws follow the distribution."""

from math import inf, nan

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmlab.core.errors import ConfigError, UnknownName
from lmlab.models.sampling import (
    EVERY,
    Sampling,
    candidates,
    choose,
    draw,
    penalised,
    random_start,
    uniform_words,
)

DOUBLE = torch.float64
scores = st.lists(st.floats(-20, 20), min_size=1, max_size=12)


def distribution(logits, **options):
    """What is drawn from, by id."""
    probabilities, ids = candidates(torch.tensor([logits], dtype=DOUBLE), Sampling(**options))
    return torch.zeros_like(probabilities).scatter(1, ids, probabilities)[0]


def expected(logits, temperature, top_k, top_p):
    """The same in plain Python: keep the k best, of these the fewest that reach p."""
    weight = torch.tensor(logits, dtype=DOUBLE).div(temperature).softmax(0).tolist()
    best = sorted(range(len(logits)), key=lambda i: (-weight[i], i))[:top_k]
    total, kept, mass = sum(weight[i] for i in best), [], 0.0
    for i in best:
        if mass / total >= top_p and top_p < 1:
            break
        kept.append(i)
        mass += weight[i]
    return [weight[i] / sum(weight[j] for j in kept) if i in kept else 0.0 for i in range(len(logits))]


@given(scores, st.floats(0.1, 5), st.integers(1, 14), st.sampled_from([0.013, 0.31, 0.77, 0.99, 1.0]))
def test_the_filters_equal_their_definition(logits, temperature, top_k, top_p):
    logits = [round(x, 2) for x in logits]
    found = distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    torch.testing.assert_close(found, torch.tensor(expected(logits, temperature, top_k, top_p), dtype=DOUBLE))


def test_nothing_filtered_is_the_softmax():
    logits = torch.randn(4, 9)
    probabilities, ids = candidates(logits, Sampling())
    torch.testing.assert_close(probabilities, logits.double().softmax(-1).gather(1, ids))
    assert (probabilities.diff() <= 0).all()


def test_top_k_keeps_exactly_k_also_among_equals_and_at_most_all():
    assert distribution([1.0, 1.0, 1.0, 1.0], top_k=2).tolist() == [0.5, 0.5, 0, 0]
    assert distribution([0.0, 5.0, 1.0], top_k=1).tolist() == [0, 1, 0]
    torch.testing.assert_close(distribution([0.0, 5.0], top_k=9), distribution([0.0, 5.0]))


def test_top_p_keeps_the_fewest_that_reach_it_and_always_one():
    logits = torch.tensor([0.5, 0.25, 0.125, 0.125]).log().tolist()
    assert distribution(logits, top_p=1e-9).tolist() == [1, 0, 0, 0]
    assert (distribution(logits, top_p=0.49) > 0).sum() == 1
    assert (distribution(logits, top_p=0.51) > 0).sum() == 2
    assert (distribution(logits, top_p=0.76) > 0).sum() == 3
    assert (distribution(logits, top_p=1.0) > 0).sum() == 4


def test_top_p_counts_what_top_k_left():
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log().tolist()
    assert (distribution(logits, top_p=0.5) > 0).sum() == 2
    assert (distribution(logits, top_p=0.5, top_k=2) > 0).sum() == 1  # 0.4 of the 0.7 that is left


@pytest.mark.parametrize("temperature", [1e-300, 1e-9, 1e9, 1e300])
def test_extreme_temperatures_are_greedy_or_uniform(temperature):
    found = distribution([1.0, 3.0, 2.0, -inf], temperature=temperature)
    want = [0.0, 1.0, 0.0, 0.0] if temperature < 1 else [1 / 3, 1 / 3, 1 / 3, 0.0]
    torch.testing.assert_close(found, torch.tensor(want, dtype=DOUBLE))


def test_the_penalty_makes_seen_symbols_less_probable_whatever_their_sign():
    logits = torch.tensor([[2.0, -2.0, 2.0, -2.0]])
    seen = torch.tensor([[True, True, False, False]])
    assert penalised(logits, seen, 2.0).tolist() == [[1.0, -4.0, 2.0, -2.0]]
    assert penalised(logits, seen, 1.0).tolist() == logits.tolist()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(lambda p: sum(p) > 1e-3), st.integers(0, 2**32 - 1))
def test_a_draw_is_the_inverse_of_the_cumulative_distribution(weights, word):
    probabilities = torch.tensor([sorted(weights, reverse=True)], dtype=DOUBLE)
    ids = torch.arange(len(weights)).flip(0).unsqueeze(0) + 10
    found = int(draw(probabilities, ids, torch.tensor([word])))
    rank = ids[0].tolist().index(found)
    point = word / 2**32 * float(probabilities.sum())
    assert probabilities[0, rank] > 0
    assert float(probabilities[0, :rank].sum()) <= point + 1e-12
    assert point < float(probabilities[0, : rank + 1].sum()) + 1e-12


def test_shares_begin_with_their_lower_end():
    probabilities, ids = torch.tensor([[0.5, 0.25, 0.25]] * 4, dtype=DOUBLE), torch.tensor([[7, 8, 9]] * 4)
    words = torch.tensor([2**31 - 1, 2**31, 3 * 2**30 - 1, 3 * 2**30])
    assert draw(probabilities, ids, words).tolist() == [7, 8, 8, 9]


@pytest.mark.parametrize("word", [0, 2**32 - 1])
def test_the_ends_of_the_range_never_draw_what_was_filtered_away(word):
    options = Sampling(top_k=3)
    scores = torch.tensor([[-inf, 0.0, 0.0, 0.0, 0.0, -inf]])
    assert int(choose(scores, options, torch.tensor([word]))) == (1 if word == 0 else 3)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.6}, {"top_k": 3}, {"top_p": 0.8, "temperature": 2.0}])
def test_frequencies_follow_the_distribution(options):
    """Pearson's χ² over 20,000 rows; its 99.9 % quantile is 22.5 for 6 degrees of freedom."""
    draws, logits = 20_000, torch.tensor([1.0, -1.0, 0.5, 2.0, -3.0, 0.0, 1.5])
    options = Sampling(**options, seed=5)
    words = uniform_words(options.seed, torch.arange(draws), position=3)
    found = choose(logits.expand(draws, -1), options, words).bincount(minlength=7).double()
    want = distribution(logits.tolist(), **options.given()) * draws
    assert found[want == 0].sum() == 0
    assert float(((found - want).square() / want)[want > 0].sum()) < 22.5


def test_frequencies_follow_the_distribution_along_a_row_too():
    words = torch.cat([uniform_words(0, torch.tensor([2]), position) for position in range(4000)])
    share = words.double().div(2**32)
    counts = share.mul(10).long().bincount(minlength=10).double()
    assert float((counts - 400).square().sum() / 400) < 27.9  # 99.9 % for 9 degrees of freedom
    assert abs(float(torch.corrcoef(torch.stack((share[1:], share[:-1])))[0, 1])) < 0.05


def test_words_depend_on_seed_row_and_position_and_nothing_else():
    numbers = torch.arange(50)
    words = uniform_words(1, numbers, 4)
    assert torch.equal(words[7:8], uniform_words(1, torch.tensor([7]), 4))
    assert torch.equal(words, uniform_words(1, numbers, 4))
    for other in (uniform_words(2, numbers, 4), uniform_words(1, numbers, 5), uniform_words(1, numbers + 50, 4)):
        assert (words != other).all()


def test_zero_temperature_takes_the_first_of_the_best():
    scores = torch.tensor([[0.0, 2.0, 2.0], [1.0, 0.0, -inf]])
    assert choose(scores, Sampling(temperature=0), torch.tensor([2**32 - 1, 0])).tolist() == [1, 0]


def test_a_random_start_is_uniform_over_what_is_allowed_and_no_end():
    options = Sampling(forbidden=(0, 1), stop=(2,), seed=3)
    found = torch.tensor([random_start(options, 6, number) for number in range(3000)])
    counts = found.bincount(minlength=6)
    assert counts[:3].sum() == 0
    assert float((counts[3:] - 1000).double().square().sum() / 1000) < 13.8  # 99.9 % for 2 degrees of freedom
    assert random_start(options, 6, 11) == int(found[11])
    with pytest.raises(ConfigError, match="--prompt is needed"):
        random_start(Sampling(forbidden=(0,), stop=(1,)), 2, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 0}, "--max-tokens must be between 1 and 1000000; got 0."),
        ({"temperature": -0.1}, "--temperature must be at least 0; got -0.1. 0 is greedy."),
        ({"temperature": nan}, "--temperature must be at least 0; got nan. 0 is greedy."),
        ({"temperature": inf}, "--temperature must be at least 0; got inf. 0 is greedy."),
        ({"top_k": 0}, f"--top-k must be between 1 and {EVERY}; got 0."),
        ({"top_p": 0.0}, "--top-p must be above 0 and at most 1; got 0.0. 1 keeps everything."),
        ({"top_p": 1.01}, "--top-p must be above 0 and at most 1; got 1.01. 1 keeps everything."),
        ({"repetition_penalty": 0.0}, "--repetition-penalty must be above 0; got 0.0. 1 is no penalty."),
        ({"length_penalty": -1.0}, "--length-penalty must be at least 0; got -1.0."),
        ({"beams": 0}, "--beams must be between 1 and 1000; got 0."),
        ({"window": -1}, "--window must be at least 0; got -1. 0 is no window."),
        ({"beams": 4, "temperature": 0.7}, "--temperature has no meaning with --beams 4, which searches"),
        ({"beams": 4, "top_k": 5}, "--top-k has no meaning with --beams 4, which searches"),
        ({"top_k": "3"}, "--top-k must be a valid integer; got '3'."),
        ({"past_window": "grow"}, "--past-window must be 'slide', 'cached' or 'stop'; got 'grow'."),
    ],
)
def test_a_broken_rule_is_one_line_in_the_words_of_the_command_line(options, message):
    with pytest.raises(ConfigError) as error:
        Sampling(**options)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_unknown_options_are_named():
    with pytest.raises(UnknownName, match="Did you mean top_k"):
        Sampling(topk=3)


def test_ids_are_checked_against_the_vocabulary():
    assert Sampling(forbidden=1, stop=[2]).allowed(4).tolist() == [True, False, True, True]
    with pytest.raises(ConfigError, match="--forbidden must leave a symbol"):
        Sampling(forbidden=(0, 1)).allowed(2)
    for name in ("forbidden", "stop"):
        for wrong in (-1, 2):
            with pytest.raises(ConfigError, match=rf"--{name} must be ids of the vocabulary \(0 … 1\); got {wrong}"):
                Sampling(**{name: (0, wrong)}).allowed(2)
