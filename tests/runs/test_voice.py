"""A trained run in text: what it continues, predicts and scores, and that it needs its text no more."""

import math

import pytest
import torch

from lmlab.core.errors import DataError
from lmlab.data.characters import CharacterTokenizer
from lmlab.data.tokenizer_files import save_tokenizer
from lmlab.models.sampling import Sampling
from lmlab.runs.voice import Voice
from lmlab.studies.session import train

SMALL = {"model.width": 16, "training.eval_first": 0}


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """One run of each kind of task, trained a little."""
    lab = tmp_path_factory.mktemp("lab")
    text = lab / "text.txt"
    text.write_text("the cat sat on the mat and the dog sat on the cat. " * 40, encoding="utf-8")
    runs = {
        "arithmetic": train("arithmetic-gpt", steps=20, overrides={**SMALL, "task.p": 5}, lab=lab / "lab")[0],
        "text": train(
            "stories-gru",
            steps=60,
            overrides={**SMALL, "task.path": str(text), "task.window": 12, "training.lr": 0.02, "model.hidden": 24},
            lab=lab / "lab",
        )[0],
        "transcripts": train(
            "transcripts", steps=20, overrides={**SMALL, "task.count": 60, "task.window": 30}, lab=lab / "lab"
        )[0],
    }
    text.unlink()  # what was learnt from a file must outlive the file
    return {name: Voice(run) for name, run in runs.items()}


def test_a_text_model_says_what_it_read(spoken):
    said = spoken["text"].generate("the cat ", Sampling(max_tokens=30, temperature=0.0))
    assert len(said["tokens"]) == len(said["logprobs"]) == 30
    assert "".join(said["tokens"]) == said["text"]
    assert "sat" in said["text"] or "the" in said["text"]


@pytest.mark.parametrize("name", ["arithmetic", "text", "transcripts"])
def test_streaming_says_the_same(spoken, name):
    prompt = {"arithmetic": "1 + 2 =", "text": "the ", "transcripts": "THE "}[name]
    options = Sampling(max_tokens=15, seed=3)
    pieces = list(spoken[name].stream(prompt, options))
    assert "".join(piece.text for piece in pieces) == spoken[name].generate(prompt, options)["text"]


def test_marks_are_never_said(spoken):
    for seed in range(5):
        text = spoken["transcripts"].generate("", Sampling(max_tokens=40, temperature=2.0, seed=seed))["text"]
        assert "<" not in text
        symbols = spoken["arithmetic"].generate("1 +", Sampling(max_tokens=8, temperature=3.0, seed=seed))["tokens"]
        assert not {"BOS", "PAD", "EOS"} & set(symbols)


def test_it_ends_before_a_text(spoken):
    whole = spoken["text"].generate("the cat ", Sampling(max_tokens=40, temperature=0.0))["text"]
    end = whole[10:12]
    cut = spoken["text"].generate("the cat ", Sampling(max_tokens=40, temperature=0.0), stop_text=end)["text"]
    assert cut == whole[: whole.index(end)]


def test_without_a_prompt_it_starts_anywhere(spoken):
    firsts = {spoken["text"].generate("", Sampling(max_tokens=3, seed=seed))["text"][0] for seed in range(12)}
    assert len(firsts) > 3


def test_a_prediction_is_a_distribution_at_every_step(spoken):
    steps = spoken["arithmetic"].predict("1 + 2 =", steps=2, top=3)["steps"]
    assert len(steps) == 2
    for step in steps:
        assert step["top"][0] == [step["token"], step["probability"]]
        assert 1 >= step["top"][0][1] >= step["top"][1][1] >= step["top"][2][1] >= 0


def test_a_score_is_the_probability_of_the_complete_sequence(spoken):
    """Against one token at a time, with the end marker, by hand."""
    voice = spoken["transcripts"]
    ids = [voice.speech.before[0], *voice.tokenizer.encode("HELLO"), voice.speech.after[0]]
    total = 0.0
    for end in range(1, len(ids)):
        logits, _ = voice.model(torch.tensor([ids[:end]]))
        total += logits[0, -1].double().log_softmax(-1)[ids[end]].item()
    found = voice.score("hello")
    assert found["tokens"] == 6
    assert found["logprob"] == pytest.approx(total, abs=1e-4)
    assert found["perplexity"] == pytest.approx(math.exp(-total / 6), rel=1e-4)
    assert found["bits_per_byte"] == pytest.approx(-total / math.log(2) / 5, rel=1e-4)


def test_the_first_symbol_of_a_text_has_no_context_and_is_not_scored(spoken):
    found = spoken["text"].score("the cat")
    assert found["tokens"] == 6
    assert found["bits_per_byte"] == pytest.approx(-found["logprob"] / math.log(2) / 6)


@pytest.mark.parametrize(("name", "prompt", "named"), [("text", "thé", "é"), ("arithmetic", "1 + x =", "x")])
def test_symbols_outside_the_vocabulary_are_named(spoken, name, prompt, named):
    with pytest.raises(DataError, match=named):
        spoken[name].generate(prompt, Sampling())


def test_nothing_cannot_be_scored(spoken):
    with pytest.raises(DataError, match="nothing to score"):
        spoken["text"].score("t")


def test_a_tokenizer_of_another_run_is_refused(tmp_path):
    """More symbols than the model has rows for: the two do not belong together."""
    (run,) = train(
        "stories-gru", steps=1, overrides={**SMALL, "task.characters": 3000, "task.window": 12}, lab=tmp_path / "lab"
    )
    save_tokenizer(CharacterTokenizer.train("".join(map(chr, range(32, 400)))), run.lab.tokenizer_path(run.id))
    with pytest.raises(DataError, match="they do not belong together"):
        Voice(run)


def test_a_tokenizer_file_that_is_damaged_is_refused(tmp_path):
    (run,) = train(
        "stories-gru", steps=1, overrides={**SMALL, "task.characters": 3000, "task.window": 12}, lab=tmp_path / "lab"
    )
    path = run.lab.tokenizer_path(run.id)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError):
        Voice(run)
