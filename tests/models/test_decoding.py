"""Generation against the slow definition that recomputes everything, for every registered model."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.core.errors import ConfigError, DataError
from lmlab.models.decoding import generate, predict, self_fed, starts, stream
from lmlab.models.model import build, models
from lmlab.models.sampling import Sampling, random_start, uniform_words

VOCABULARY, LENGTH = 7, 6
every_model = pytest.mark.parametrize("name", list(models))


def made(name="gpt", dtype=torch.float64, **options):
    config = models[name](name=name, **{"layers": 2, "width": 8, **options})
    model = build(config, VOCABULARY, LENGTH, dtype=dtype).eval()
    with torch.no_grad():  # sharper than fresh weights: symbols with clearly different probabilities
        model.get_parameter("classifier.weight").mul_(3)
    return model


def slowly(model, prompt, options, number=0):
    """One row, everything computed anew for every token, one probability at a time."""
    row, tokens, logprobs = list(prompt), [], []
    while len(tokens) < options.max_tokens:
        if options.window and options.past_window == "stop" and len(row) > options.window:
            break
        context = row[-options.window :] if options.window else row
        logits = model(torch.tensor([context]))[0][0, -1].detach()
        scores = {token: float(logits[token]) for token in range(VOCABULARY)}
        for token in set(row):
            factor = options.repetition_penalty
            scores[token] = scores[token] / factor if scores[token] > 0 else scores[token] * factor
        allowed = sorted(set(range(VOCABULARY)) - set(options.forbidden), key=lambda token: (-scores[token], token))
        token = allowed[0]
        if options.temperature:
            allowed = allowed[: options.top_k]
            shares = torch.tensor([scores[token] / options.temperature for token in allowed]).double().softmax(0)
            kept = [i for i in range(len(allowed)) if float(shares[:i].sum()) < options.top_p or options.top_p == 1]
            point = int(uniform_words(options.seed, torch.tensor([number]), len(row))) / 2**32
            point *= float(shares[kept].sum())
            token = next(allowed[i] for i in kept if float(shares[: i + 1].sum()) > point)
        tokens.append(token)
        logprobs.append(float(logits.log_softmax(-1)[token]))
        row.append(token)
        if token in options.stop:
            break
    return tuple(tokens), tuple(logprobs)


def agrees(found, tokens, logprobs):
    assert found.tokens == tokens
    assert found.logprobs == pytest.approx(logprobs, abs=1e-5)


@every_model
@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0},
        {"seed": 3},
        {"temperature": 0.7, "top_k": 4, "top_p": 0.8, "repetition_penalty": 1.3, "forbidden": (1,), "stop": (2, 6)},
        {"window": 4},
        {"window": 1, "temperature": 0, "repetition_penalty": 2.0},
        {"window": 4, "past_window": "stop"},
    ],
    ids=lambda options: "-".join(map(str, options)),
)
def test_generating_with_the_state_equals_recomputing_everything(name, options):
    model, options = made(name), Sampling(max_tokens=15, **options)
    prompts = [[1], [3, 4, 5], [6, 0, 2, 2], [0, 5, 0], [2, 1, 4]]
    for number, (prompt, found) in enumerate(zip(prompts, generate(model, prompts, options), strict=True)):
        agrees(found, *slowly(model, prompt, options, number))
        assert found.prompt == tuple(prompt)
        assert found.finished == (found.tokens[-1] in options.stop)


@every_model
@settings(max_examples=8)
@given(
    prompts=st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=9), min_size=1, max_size=5),
    window=st.sampled_from([0, 3, 6]),
    past_window=st.sampled_from(["slide", "cached"]),
    temperature=st.sampled_from([0, 1]),
)
def test_a_row_becomes_what_it_becomes_alone(name, prompts, window, past_window, temperature):
    model = made(name, torch.float32)
    options = Sampling(max_tokens=8, window=window, past_window=past_window, temperature=temperature, stop=(4,))
    numbers = [10 + 3 * row for row in range(len(prompts))]
    together = generate(model, prompts, options, numbers)
    for prompt, number, found in zip(prompts, numbers, together, strict=True):
        (alone,) = generate(model, [prompt], options, [number])
        assert alone.prompt == found.prompt
        agrees(found, alone.tokens, alone.logprobs)


@every_model
@pytest.mark.parametrize("options", [{}, {"temperature": 0.5, "stop": (1,)}, {"beams": 3, "stop": (1,)}, {"window": 3}])
def test_a_stream_is_the_same_tokens_as_they_come(name, options):
    model, options = made(name), Sampling(max_tokens=6, **options)
    prompts = [[1, 2], [3], [], [5, 6]]
    rows = {row: ([], []) for row in range(4)}
    for row, token, logprob in stream(model, prompts, options):
        rows[row][0].append(token)
        rows[row][1].append(logprob)
    for row, found in enumerate(generate(model, prompts, options)):
        agrees(found, *map(tuple, rows[row]))


def test_all_rows_of_a_stream_grow_together():
    steps = list(stream(made(), [[1, 2], [3], [5, 6]], Sampling(max_tokens=3)))
    assert [step.row for step in steps] == [0, 2, 1] * 3


def test_a_stream_neither_keeps_gradients_off_nor_the_model_out_of_training():
    model = made("lstm").train()
    tokens = stream(model, [[1]], Sampling(max_tokens=3))
    next(tokens)
    assert torch.is_grad_enabled()
    assert model.training


@every_model
@pytest.mark.parametrize("past_window", ["slide", "cached"])
def test_going_on_in_parts_equals_going_on_at_once(name, past_window):
    model = made(name)
    (whole,) = generate(model, [[1, 2]], Sampling(max_tokens=20, window=5, past_window=past_window), [7])
    for cut in (1, 5, 13):
        rest = Sampling(max_tokens=20 - cut, window=5, past_window=past_window)
        (found,) = generate(model, [[1, 2, *whole.tokens[:cut]]], rest, [7])
        agrees(found, whole.tokens[cut:], whole.logprobs[cut:])


def fed(model):
    """How many tokens each call of the model was given."""
    calls = []
    model.register_forward_pre_hook(lambda _, inputs: calls.append(inputs[0].shape[1]))
    return calls


@every_model
def test_every_token_is_fed_once_and_the_last_not_at_all(name):
    model = made(name)
    calls = fed(model)
    generate(model, [[1, 2, 3]], Sampling(max_tokens=10))
    assert calls == [3] + [1] * 9
    calls.clear()
    generate(model, [[1, 2, 3]], Sampling(max_tokens=6, window=4))
    assert calls == [3, 1, 4, 4, 4, 4]
    calls.clear()
    generate(model, [[1, 2, 3]], Sampling(max_tokens=8, window=4, past_window="cached"))
    assert calls == [3, 1, 2, 1, 1, 2, 1, 1]


def test_the_same_seed_gives_the_same_text_and_another_seed_another():
    model = made()
    texts = [generate(model, [[1]] * 4, Sampling(max_tokens=20, seed=seed)) for seed in (0, 0, 1)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    assert len({found.tokens for found in texts[0]}) == 4  # rows with the same prompt differ


def test_tokens_are_drawn_as_often_as_they_are_probable():
    """Pearson's χ² of 4,000 first tokens; its 99.9 % quantile is 22.5 for 6 degrees of freedom."""
    model = made()
    found = generate(model, [[1, 2]] * 4000, Sampling(max_tokens=1))
    counts = torch.tensor([one.tokens[0] for one in found]).bincount(minlength=VOCABULARY)
    want = model(torch.tensor([[1, 2]]))[0][0, -1].detach().softmax(-1) * 4000
    assert float(((counts - want).square() / want).sum()) < 22.5


def test_log_probabilities_are_the_models_own_whatever_was_filtered():
    model = made()
    options = Sampling(max_tokens=5, temperature=0.3, top_k=2, repetition_penalty=1.5, forbidden=(0,), seed=2)
    (found,) = generate(model, [[1]], options)
    inputs = torch.tensor([[1, *found.tokens]])
    own = model(inputs[:, :-1])[0].log_softmax(-1).gather(2, inputs[:, 1:, None]).flatten().tolist()
    assert found.logprobs == pytest.approx(own, abs=1e-9)


def test_forbidden_symbols_never_come_and_stop_symbols_end_a_row():
    model = made()
    found = generate(model, [[1]] * 50, Sampling(max_tokens=8, forbidden=(0, 3), stop=(5,)))
    assert all(not {0, 3} & set(one.tokens) for one in found)
    assert all(5 not in one.tokens[:-1] for one in found)
    assert {one.finished for one in found} == {True, False}
    assert all(one.finished == (one.tokens[-1] == 5) for one in found)
    assert all(len(one.tokens) == 8 for one in found if not one.finished)


def test_a_forbidden_stop_symbol_stops_nothing():
    """Document 003: a fixed number of symbols, none of them special."""
    (found,) = generate(made(), [[1]], Sampling(max_tokens=30, forbidden=(5,), stop=(5,)))
    assert len(found.tokens) == 30
    assert not found.finished


def test_no_prompt_starts_from_a_random_symbol():
    model, options = made(), Sampling(max_tokens=4, forbidden=(0,), seed=9)
    found = generate(model, [[], [2], []], options)
    assert [one.prompt for one in found] == [(random_start(options, 7, 0),), (2,), (random_start(options, 7, 2),)]
    assert starts(model, [[], [2], []], options) == [list(one.prompt) for one in found]
    assert generate(model, [one.prompt for one in found], options) == found


def test_learned_positions_end_and_a_window_goes_past_them():
    model = made(positions="learned")
    (found,) = generate(model, [[1, 2]], Sampling(max_tokens=5))
    assert len(found.tokens) == 5
    with pytest.raises(DataError, match="learned 6 positions; a prompt of 2 and 6 new tokens need 7"):
        generate(model, [[1, 2]], Sampling(max_tokens=6))
    with pytest.raises(DataError, match="learned 6 positions"):
        generate(model, [[1, 2] * 5], Sampling(max_tokens=1))
    for past_window in ("slide", "cached"):
        (found,) = generate(model, [[1, 2] * 5], Sampling(max_tokens=20, window=6, past_window=past_window))
        assert len(found.tokens) == 20
    (found,) = generate(model, [[1, 2]], Sampling(max_tokens=20, window=6, past_window="stop"))
    assert len(found.tokens) == 5  # the window holds six, and names one more


@pytest.mark.parametrize("beams", [1, 2])
def test_what_cannot_be_done_is_refused_before_the_first_step(beams):
    model = made(positions="learned")
    with pytest.raises(ConfigError, match="--forbidden must leave a symbol"):
        stream(model, [[1]], Sampling(forbidden=tuple(range(7)), beams=beams))
    with pytest.raises(ConfigError, match="--stop must be ids"):
        stream(model, [[1]], Sampling(stop=(7,), beams=beams))
    with pytest.raises(ConfigError, match="--window must be at most the 6"):
        stream(model, [[1]], Sampling(window=9, beams=beams))
    with pytest.raises(DataError, match="token 8 is outside"):
        stream(model, [[1], [8]], Sampling(max_tokens=2, beams=beams))
    with pytest.raises(DataError, match="learned 6 positions"):
        stream(model, [[1], [2] * 9], Sampling(max_tokens=2, beams=beams))


def test_nothing_asked_is_nothing_generated():
    assert generate(made(), []) == []


@every_model
@pytest.mark.parametrize("window", [0, 3])
def test_a_prediction_is_the_distribution_at_every_step(name, window):
    model = made(name)
    found = predict(model, [1, 2, 3], 5, top=3, window=window)
    row = [1, 2, 3]
    for guess, logits, distribution in zip(found.steps, found.logits, found.distributions, strict=True):
        want = model(torch.tensor([row[-window:] if window else row]))[0][0, -1].detach()
        torch.testing.assert_close(logits, want)
        torch.testing.assert_close(distribution, want.softmax(-1))
        best = want.softmax(-1).sort(descending=True)
        assert [token for token, _ in guess.top] == best.indices[:3].tolist()
        assert [p for _, p in guess.top] == pytest.approx(best.values[:3].tolist())
        assert (guess.token, guess.probability) == guess.top[0]
        row.append(guess.token)
    torch.testing.assert_close(found.scores, found.logits[-1])
    (greedy,) = generate(model, [[1, 2, 3]], Sampling(max_tokens=5, temperature=0, window=window))
    assert list(greedy.tokens) == row[3:]


def test_predictions_of_a_batch_are_those_of_each_prompt():
    """Document 003's `predict`: raw scores of the last step, one row per prompt."""
    model = made()
    prompts = torch.randint(VOCABULARY, (4, 5))
    together = self_fed(model, prompts, 3)
    assert together.shape == (4, 3, VOCABULARY)
    for row, scores in zip(prompts.tolist(), together, strict=True):
        torch.testing.assert_close(predict(model, row, 3).logits, scores)
    assert self_fed(model, prompts, 9, window=6, past_window="stop").shape == (4, 2, VOCABULARY)


def test_a_prediction_shows_no_more_symbols_than_there_are():
    assert len(predict(made(), [1], 1, top=99).steps[0].top) == VOCABULARY


def test_predictions_refuse_what_makes_no_sense():
    model = made(positions="learned")
    with pytest.raises(ConfigError, match="--steps must be between 1"):
        predict(model, [1], 0)
    with pytest.raises(ConfigError, match="--top must be at least 1"):
        predict(model, [1], 1, top=0)
    with pytest.raises(DataError, match="at least one token"):
        predict(model, [], 1)
    with pytest.raises(DataError, match="token 9 is outside"):
        predict(model, [9], 1)
    with pytest.raises(DataError, match="learned 6 positions"):
        predict(model, [1], 7)
