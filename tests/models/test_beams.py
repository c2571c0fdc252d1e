"""Beam search against trying everything, against greedy decoding, and against itself with other widths."""

from itertools import product

import pytest
import torch

from lmlab.models.beams import beam_search
from lmlab.models.decoding import generate
from lmlab.models.model import build, models
from lmlab.models.sampling import Sampling
from lmlab.models.scoring import score_sequence

VOCABULARY, STOP = 4, 3
every_model = pytest.mark.parametrize("name", list(models))


def made(name="gpt", seed=0, vocabulary=VOCABULARY, **options):
    config = models[name](name=name, **{"layers": 1, "width": 8, **options})
    model = build(config, vocabulary, 6, seed=seed, dtype=torch.float64).eval()
    with torch.no_grad():
        model.get_parameter("classifier.weight").mul_(3)
    return model


def everything(length, forbidden=()):
    """All continuations: those that end with STOP, and those that reach the length without it."""
    symbols = [token for token in range(VOCABULARY) if token not in forbidden]
    for size in range(1, length + 1):
        for tokens in product(symbols, repeat=size):
            if STOP not in tokens[:-1] and (tokens[-1] == STOP or size == length):
                yield list(tokens)


@every_model
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("forbidden", [(), (1,)])
def test_a_beam_as_wide_as_the_search_finds_the_true_maximum(name, penalty, forbidden):
    for seed in range(3):
        model = made(name, seed)
        prompt = [seed % 3, 2]
        leaves = list(everything(4, forbidden))
        worth = [score_sequence(model, prompt + leaf, 2).logprob / len(leaf) ** penalty for leaf in leaves]
        best = max(range(len(leaves)), key=worth.__getitem__)
        options = Sampling(max_tokens=4, beams=256, stop=(STOP,), forbidden=forbidden, length_penalty=penalty)
        found = beam_search(model, prompt, options)
        assert found.unroll()[0] == leaves[best]
        assert found.score(penalty) == pytest.approx(worth[best], abs=1e-9)


@every_model
@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("options", [{}, {"window": 3}, {"window": 3, "past_window": "cached"}, {"forbidden": (1,)}])
def test_one_beam_is_greedy(name, penalty, options):
    for seed in range(4):
        model = made(name, seed)
        options = {**options, "max_tokens": 10, "stop": (STOP,)}
        tokens, logprobs = beam_search(model, [1], Sampling(**options, length_penalty=penalty)).unroll()
        (greedy,) = generate(model, [[1]], Sampling(**options, temperature=0))
        assert tuple(tokens) == greedy.tokens
        assert logprobs == pytest.approx(greedy.logprobs, abs=1e-9)


def test_wider_beams_find_better_continuations_here():
    model = made(seed=2, vocabulary=9)
    totals = [beam_search(model, [1], Sampling(max_tokens=8, beams=beams)).total for beams in (1, 2, 8, 64)]
    assert totals == sorted(totals)
    assert totals[-1] > totals[0]


@every_model
def test_generate_searches_when_asked_for_beams(name):
    model = made(name)
    options = Sampling(max_tokens=6, beams=3, stop=(STOP,), window=4)
    prompts = [[1], [2, 0, 1], []]
    for found in generate(model, prompts, options):
        best = beam_search(model, list(found.prompt), options)
        assert (list(found.tokens), list(found.logprobs)) == best.unroll()
        assert sum(found.logprobs) == pytest.approx(best.total)
        assert found.finished == (found.tokens[-1] == STOP)


def test_log_probabilities_add_up_to_the_models_own():
    model = made()
    found = beam_search(model, [1], Sampling(max_tokens=6, beams=3, forbidden=(0,)))
    tokens, logprobs = found.unroll()
    score = score_sequence(model, [1, *tokens])
    assert found.total == pytest.approx(score.logprob, abs=1e-9)
    assert [-x for x in logprobs] == pytest.approx(score.nlls.tolist(), abs=1e-9)


def test_equal_hypotheses_keep_their_order():
    """With nothing to tell symbols apart the lowest ids win, with any number of beams."""
    model = made()
    with torch.no_grad():
        for parameter in (model.classifier.weight, model.classifier.bias):
            parameter.zero_()
    for beams in (1, 2, 5):
        assert beam_search(model, [1], Sampling(max_tokens=3, beams=beams)).unroll()[0] == [0, 0, 0]


def test_a_window_that_stops_ends_the_search():
    found = beam_search(made(), [1, 2], Sampling(max_tokens=50, beams=2, window=4, past_window="stop"))
    assert found.length == 3


def test_length_normalisation_prefers_longer_continuations():
    model = made(seed=1)
    with torch.no_grad():  # ending is the likeliest single step
        model.classifier.bias[STOP] += 1.5
    lengths = [
        beam_search(model, [1], Sampling(max_tokens=6, beams=beams, stop=(STOP,), length_penalty=penalty)).length
        for beams, penalty in ((200, 0.0), (200, 3.0), (1, 3.0))
    ]
    assert lengths[0] == 1
    assert lengths[1] > 1
    assert lengths[2] == 1  # what has ended keeps its place: one beam stays greedy


def test_what_has_ended_keeps_its_place():
    """Four symbols, four beams, the likeliest of which ends at once: three are left to go on, and never more."""
    model = made(seed=1)
    with torch.no_grad():
        model.classifier.bias[STOP] += 1.5
    rows = []
    model.register_forward_pre_hook(lambda _, inputs: rows.append(inputs[0].shape[0]))
    beam_search(model, [1], Sampling(max_tokens=6, beams=4, stop=(STOP,), length_penalty=3.0))
    assert rows[:2] == [1, 3]
    assert rows[1:] == sorted(rows[1:], reverse=True)
