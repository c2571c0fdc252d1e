"""Rows on their way through a model: what is seen past the window, how much is fed, which rows go on."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmlab.core.errors import ConfigError, DataError
from lmlab.models.continuation import (
    Continuation,
    check_room,
    check_tokens,
    device_of,
    learned_positions,
    select_rows,
    symbols,
    visible,
)
from lmlab.models.decoder import DecoderConfig
from lmlab.models.model import build, models

VOCABULARY = 7
every_model = pytest.mark.parametrize("name", list(models))


def made(name="gpt", **options):
    config = models[name](name=name, **{"layers": 2, "width": 8, **options})
    return build(config, VOCABULARY, 6, dtype=torch.float64).eval()


def contexts(length, window, past_window):
    """What the model sees as a row grows token by token, told as a story rather than a formula."""
    seen = []
    for token in range(length):
        if window and len(seen) == window and past_window == "slide":
            seen = seen[1:]
        elif window and len(seen) == window and past_window == "cached":
            rest = max(1, window // 2) - 1  # the newer half, with the new token
            seen = seen[len(seen) - rest :]
        seen = [*seen, token]
    return seen


@given(st.integers(1, 60), st.integers(0, 12), st.sampled_from(["slide", "cached", "stop"]))
def test_what_is_seen_is_a_matter_of_the_length_alone(length, window, past_window):
    assert visible(length, window, past_window) == len(contexts(length, window, past_window))


@pytest.mark.parametrize("window", [1, 2, 3, 8, 51])
def test_a_cached_window_sees_at_least_its_newer_half_and_feeds_less_than_two_tokens_for_one(window):
    seen = [visible(length, window, "cached") for length in range(1, 40 * window)]
    assert max(seen) == window
    assert min(seen[window:]) >= max(1, window // 2)
    fed = sum(1 if now == before + 1 else now for before, now in zip(seen[window - 1 :], seen[window:], strict=False))
    assert fed < 2 * len(seen[window:])


@every_model
@pytest.mark.parametrize("window", [0, 1, 4])
@pytest.mark.parametrize("past_window", ["slide", "cached"])
@pytest.mark.parametrize("start", [1, 4, 9])
def test_scores_are_those_of_feeding_what_is_seen_at_once(name, window, past_window, start):
    model = made(name)
    rows = torch.randint(VOCABULARY, (3, 20))
    progress = Continuation(model, rows[:, :start], window, past_window)
    for length in range(start, 20):
        seen = len(contexts(length, window, past_window))
        expected = model(rows[:, length - seen : length])[0][:, -1]
        torch.testing.assert_close(progress.logits_BV, expected, rtol=1e-10, atol=1e-10)
        progress.append(rows[:, length])


@every_model
@pytest.mark.parametrize("window", [0, 3])
def test_rows_can_be_dropped_doubled_and_put_in_another_order(name, window):
    model = made(name)
    rows = torch.randint(VOCABULARY, (4, 5))
    progress = Continuation(model, rows, window)
    order = torch.tensor([2, 0, 2])
    progress.select(order)
    new = torch.tensor([1, 3, 5])
    grown = torch.cat((rows[order], new.unsqueeze(1)), dim=1)
    torch.testing.assert_close(progress.logits_BV, Continuation(model, rows[order], window).logits_BV)
    progress.append(new)
    torch.testing.assert_close(progress.logits_BV, Continuation(model, grown, window).logits_BV)


def test_any_nest_of_tensors_is_a_state():
    state = [(torch.arange(3), torch.arange(6).view(3, 2)), [torch.arange(3.0)]]
    (one, two), (three,) = select_rows(state, torch.tensor([2, 1]))
    assert one.tolist() == [2, 1]
    assert two.tolist() == [[4, 5], [2, 3]]
    assert three.tolist() == [2.0, 1.0]


def test_stop_is_full_when_the_window_is():
    model = made()
    progress = Continuation(model, torch.tensor([[1, 2]]), 3, "stop")
    assert not progress.full
    progress.append(torch.tensor([4]))
    assert progress.full
    assert not Continuation(model, torch.tensor([[1, 2, 3, 4]]), 3, "slide").full
    assert not Continuation(model, torch.tensor([[1, 2, 3, 4]]), 0, "stop").full


def test_dropout_and_gradients_are_off_and_the_mode_is_put_back():
    model = made("lstm", dropout=0.5).train()
    progress = Continuation(model, torch.tensor([[1, 2, 3]]))
    assert model.training
    assert all(module.training for module in model.modules())
    assert not progress.logits_BV.requires_grad
    torch.testing.assert_close(progress.logits_BV, model.eval()(torch.tensor([[1, 2, 3]]))[0][:, -1])


def test_a_diverged_model_is_told_so():
    model = made()
    with torch.no_grad():
        model.classifier.weight.fill_(torch.nan)
    with pytest.raises(DataError, match="diverged"):
        Continuation(model, torch.tensor([[1, 2]]))


def test_what_is_known_of_a_model():
    model = build(DecoderConfig(width=8, layers=1, positions="learned", tie=True), VOCABULARY, 6)
    assert (symbols(model), device_of(model).type, learned_positions(model)) == (VOCABULARY, "cpu", 6)
    assert all(learned_positions(made(name)) is None for name in models)


def test_tokens_outside_the_vocabulary_are_refused():
    check_tokens(made(), [[], [0, 6]])
    for wrong in (7, -1):
        with pytest.raises(DataError, match=rf"token {wrong} is outside .* 7 symbols"):
            check_tokens(made(), [[1], [2, wrong]])


def test_room_is_checked_before_any_work():
    model = made(positions="learned")
    check_room(model, 4, 3, 0, "slide")  # the last new token is not fed: 6 positions are enough
    check_room(model, 100, 100, 6, "slide")
    check_room(model, 100, 100, 6, "cached")
    check_room(model, 6, 100, 6, "stop")
    with pytest.raises(DataError, match=r"learned 6 positions; .* need 7\. Use --window 6 --past-window slide"):
        check_room(model, 4, 4, 0, "slide")
    with pytest.raises(DataError, match="more than the window of 5"):
        check_room(model, 6, 1, 5, "stop")
    with pytest.raises(ConfigError, match="--window must be at most the 6 positions"):
        check_room(model, 1, 1, 7, "slide")
    with pytest.raises(ConfigError, match="--window must be at least 0"):
        check_room(model, 1, 1, -1, "slide")
    check_room(made("lstm"), 1000, 1000, 0, "slide")
