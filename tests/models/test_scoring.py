"""Scores against the definition, one token at a time; windows, strides and what is carried on."""

from math import exp, log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.core.errors import ConfigError, DataError
from lmlab.models import scoring
from lmlab.models.model import build, models
from lmlab.models.scoring import Score, score_long, score_sequence, score_sequences

VOCABULARY, LENGTH = 7, 6
every_model = pytest.mark.parametrize("name", list(models))


def made(name="gpt", **options):
    config = models[name](name=name, **{"layers": 2, "width": 8, **options})
    return build(config, VOCABULARY, LENGTH, dtype=torch.float64).eval()


def text(length, seed=0):
    return torch.randint(VOCABULARY, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def one_at_a_time(model, tokens, first=1, context=lambda place: place):
    """−log p of each token, its context fed anew: the `context(place)` tokens before it."""
    nlls = []
    for place in range(first, len(tokens)):
        before = torch.tensor([tokens[place - context(place) : place]])
        nlls.append(-float(model(before)[0][0, -1].detach().log_softmax(-1)[tokens[place]]))
    return nlls


def close(score, nlls):
    assert score.nlls.tolist() == pytest.approx(nlls, abs=1e-9)


@every_model
@pytest.mark.parametrize("first", [1, 4, 8])
def test_a_sequence_is_scored_token_by_token(name, first):
    model, tokens = made(name), text(9)
    score = score_sequence(model, tokens, first)
    nlls = one_at_a_time(model, tokens, first)
    close(score, nlls)
    assert score.tokens == 9 - first
    assert score.logprob == pytest.approx(-sum(nlls))
    assert score.nll == pytest.approx(sum(nlls) / len(nlls))
    assert score.perplexity == pytest.approx(exp(sum(nlls) / len(nlls)))


@pytest.mark.parametrize("name", list(models))
def test_probabilities_of_all_sequences_of_a_length_add_up_to_one(name):
    model = made(name)
    pairs = [[0, a, b] for a in range(VOCABULARY) for b in range(VOCABULARY)]
    assert sum(exp(score.logprob) for score in score_sequences(model, pairs)) == pytest.approx(1)


@every_model
def test_a_sequence_read_in_pieces_scores_the_same(name, monkeypatch):
    model, tokens = made(name), text(40)
    whole = score_sequence(model, tokens)
    monkeypatch.setattr(scoring, "PIECE", 7)
    close(score_sequence(model, tokens), whole.nlls.tolist())
    monkeypatch.setattr(scoring, "TOKENS_AT_ONCE", 1)
    close(score_sequence(model, tokens), whole.nlls.tolist())


@every_model
def test_sequences_of_any_lengths_are_scored_as_each_alone(name, monkeypatch):
    model = made(name)
    sequences = [text(length, seed) for seed, length in enumerate([5, 3, 5, 9, 3, 5])]
    for at_once in (4096, 10):
        monkeypatch.setattr(scoring, "TOKENS_AT_ONCE", at_once)
        for tokens, score in zip(sequences, score_sequences(model, sequences, 2), strict=True):
            close(score, one_at_a_time(model, tokens, 2))


def reach(place, targets, window, stride):
    """How many tokens before `place` the window that scores it shows: it ends at the next stop of its walk."""
    end = window
    while end < place:
        end += stride
    return place - max(0, min(end, targets) - window)


@every_model
@settings(max_examples=12)
@given(data=st.data())
def test_a_long_text_is_scored_once_per_token_in_the_widest_window(name, data):
    model = made(name)
    tokens = text(data.draw(st.integers(2, 30)), seed=3)
    window = data.draw(st.integers(1, 8))
    stride = data.draw(st.integers(1, window))
    first = data.draw(st.integers(1, len(tokens) - 1))
    found = score_long(model, tokens, window, stride, first)
    close(found, one_at_a_time(model, tokens, first, lambda place: reach(place, len(tokens) - 1, window, stride)))


def test_every_token_sees_at_least_the_window_less_the_stride():
    for targets in range(1, 40):
        for window, stride in ((8, 8), (8, 3), (8, 1), (5, 4)):
            seen = [reach(place, targets, window, stride) for place in range(1, targets + 1)]
            assert all(n >= min(place, window - stride + 1) for place, n in enumerate(seen, 1))
            assert max(seen) <= window


@every_model
def test_a_stride_of_one_gives_everyone_the_full_window(name):
    model, tokens = made(name), text(25)
    close(score_long(model, tokens, 6, 1), one_at_a_time(model, tokens, 1, lambda place: min(place, 6)))


@every_model
def test_a_text_within_the_window_is_a_sequence(name):
    model, tokens = made(name), text(6)
    close(score_long(model, tokens, 100, 50), score_sequence(model, tokens).nlls.tolist())


def test_windows_are_read_in_batches_of_any_size(monkeypatch):
    model, tokens = made(), text(50)
    whole = score_long(model, tokens, 6, 2)
    assert whole.tokens == 49
    for at_once in (1, 6, 13):
        monkeypatch.setattr(scoring, "TOKENS_AT_ONCE", at_once)
        close(score_long(model, tokens, 6, 2), whole.nlls.tolist())


@every_model
def test_a_carried_state_sees_all_that_came_before(name):
    model, tokens = made(name), text(30)
    close(score_long(model, tokens, 6, 3, carry=True), one_at_a_time(model, tokens))


def test_learned_positions_need_windows():
    model, tokens = made(positions="learned"), text(20)
    assert score_sequence(model, tokens[:7]).tokens == 6
    with pytest.raises(DataError, match="learned 6 positions; the text needs 7"):
        score_sequence(model, tokens[:8])
    with pytest.raises(DataError, match=r"learned 6 positions; .* score_long, or --window 6"):
        score_long(model, tokens, 6, 3, carry=True)
    assert score_long(model, tokens, 6, 3).tokens == 19
    with pytest.raises(ConfigError, match="--window must be at least 1 and at most the 6 positions"):
        score_long(model, tokens, 7, 3)


def test_numbers_follow_their_definitions():
    score = Score(torch.tensor([log(2), log(8)], dtype=torch.float64))
    assert score.nll == pytest.approx(2 * log(2))
    assert score.perplexity == pytest.approx(4)
    assert score.bits_per_byte(len("aé".encode())) == pytest.approx(4 / 3)
    assert score.to_json(3) == {
        "logprob": pytest.approx(-log(16)),
        "tokens": 2,
        "nll": pytest.approx(2 * log(2)),
        "perplexity": pytest.approx(4),
        "bits_per_byte": pytest.approx(4 / 3),
    }
    assert score.to_json(0)["bits_per_byte"] is None
    assert "2 tokens" in repr(score)
    beyond = Score(torch.tensor([1e6], dtype=torch.float64))
    assert beyond.perplexity == float("inf")
    assert beyond.to_json(1)["perplexity"] is None
    with pytest.raises(DataError, match="at least one byte"):
        score.bits_per_byte(0)


def test_the_model_is_left_as_it_was():
    model = made("lstm", dropout=0.5).train()
    score = score_sequence(model, text(9))
    assert model.training
    close(score_sequence(model.eval(), text(9)), score.nlls.tolist())


def test_what_cannot_be_scored_is_refused():
    model = made()
    with pytest.raises(DataError, match="nothing to score: the text has 1 tokens"):
        score_sequence(model, [1])
    with pytest.raises(DataError, match="nothing to score"):
        score_long(model, [], 4, 2)
    with pytest.raises(ConfigError, match="first must be at least 1"):
        score_sequence(model, [1, 2], 0)
    with pytest.raises(DataError, match="token 7 is outside"):
        score_sequence(model, [1, 7])
    with pytest.raises(ConfigError, match=r"--stride must be between 1 and the window \(4\); got 5"):
        score_long(model, [1, 2], 4, 5)
    with pytest.raises(ConfigError, match="--stride must be between 1"):
        score_long(model, [1, 2], 4, 0)
    with pytest.raises(ConfigError, match="--window must be at least 1"):
        score_long(model, [1, 2], 0, 1)
    with torch.no_grad():
        model.classifier.weight.fill_(torch.nan)
    with pytest.raises(DataError, match="diverged"):
        score_sequence(model, [1, 2])
