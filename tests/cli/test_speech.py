"""`lmlab generate`, `predict`, `score` on a trained run of every recipe, and what they refuse."""

import math

import pytest

from lmlab.studies.recipes import recipes

TINY = ("--set=model.width=8", "--set=training.eval_first=0", "--steps=3", "--device=cpu")
TASKS = {
    "arithmetic": ("--set=task.p=5",),
    "transcripts": ("--set=task.count=40", "--set=task.window=30"),
    "stories": ("--set=task.characters=4000", "--set=task.window=10", "--set=model.layers=1"),
    "shakespeare": ("--set=task.characters=4000", "--set=task.vocabulary=90", "--set=task.measured=20"),
}
PROMPTS = {"arithmetic": "1 + 2 =", "transcripts": "THE ", "stories": "The ", "shakespeare": "The "}


@pytest.fixture(scope="module")
def lab(lmlab, tmp_path_factory):
    """A lab with one run of every recipe, trained for three steps."""
    folder = tmp_path_factory.mktemp("lab")
    runs = {}
    for recipe in recipes:
        kind = recipe.partition("-")[0]
        done = lmlab("train", recipe, *TINY, *TASKS[kind], "--lab", folder, "--json")
        runs[recipe] = done.json["runs"][0]["run"]
    return folder, runs


@pytest.mark.parametrize("recipe", list(recipes))
def test_every_recipe_speaks(lmlab, lab, recipe):
    folder, runs = lab
    prompt = PROMPTS[recipe.partition("-")[0]]
    said = lmlab("generate", runs[recipe], "--prompt", prompt, "--max-tokens=6", "--lab", folder, "--json").json
    assert isinstance(said["text"], str)
    assert len(said["tokens"]) == len(said["logprobs"]) <= 6
    assert all(logprob <= 0 for logprob in said["logprobs"])
    steps = lmlab("predict", runs[recipe], "--prompt", prompt, "--steps=2", "--lab", folder, "--json").json["steps"]
    assert len(steps) == 2
    assert all(0 <= step["probability"] <= 1 and step["top"][0][0] == step["token"] for step in steps)
    text = {"arithmetic": "1 + 2 = 3", "transcripts": "the end"}.get(recipe.partition("-")[0], "The end")
    score = lmlab("score", runs[recipe], "--text", text, "--lab", folder, "--json").json
    assert score["logprob"] == pytest.approx(-score["nll"] * score["tokens"])
    assert score["perplexity"] == pytest.approx(math.exp(score["nll"]))
    assert score["bits_per_byte"] > 0


def test_the_same_seed_says_the_same_and_another_something_else(lmlab, lab):
    folder, runs = lab

    def say(seed):
        where = ("--prompt=The ", "--max-tokens=30", "--lab", folder)
        return lmlab("generate", runs["stories-gru"], "--seed", seed, *where).out

    assert say(1) == say(1) != say(2)


def test_beams_search_and_streams_stream(lmlab, lab):
    folder, runs = lab
    where = (runs["stories-gru"], "--prompt=The ", "--max-tokens=8", "--lab", folder)
    greedy = lmlab("generate", *where, "--temperature=0", "--json").json
    searched = lmlab("generate", *where, "--beams=4", "--json").json
    assert sum(searched["logprobs"]) >= sum(greedy["logprobs"]) - 1e-4
    assert lmlab("generate", *where, "--temperature=0", "--stream").out == f"The {greedy['text']}\n"


def test_a_file_is_scored(lmlab, lab, here):
    folder, runs = lab
    (here / "text.txt").write_text("The end of the day. " * 20, encoding="utf-8")
    found = lmlab("score", runs["stories-gru"], "--file", here / "text.txt", "--lab", folder, "--json").json
    assert found["tokens"] == 20 * 20 - 1


def test_validation_metrics_of_a_text_have_perplexity_and_bits_per_byte(lmlab, lab):
    folder, runs = lab
    rows = lmlab("runs", "metrics", runs["stories-gru"], "--lab", folder, "--json").json["rows"]
    last = {row["metric"]: row["value"] for row in rows if row["split"] == "val" and row["step"] == 3}
    assert last["perplexity"] == pytest.approx(math.exp(last["loss"]))
    assert last["bits_per_byte"] == pytest.approx(last["loss"] / math.log(2))  # every character is a byte here


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--temperature=-1",), "--temperature must be at least 0"),
        (("--top-p=0",), "--top-p must be above 0 and at most 1"),
        (("--top-p=1.5",), "--top-p must be above 0 and at most 1"),
        (("--top-k=0",), "--top-k must be between 1 and"),
        (("--beams=0",), "--beams must be between 1 and"),
        (("--max-tokens=0",), "--max-tokens must be between 1 and"),
        (("--past-window=jump",), "--past-window must be"),
        (("--prompt=é",), "symbols outside the vocabulary: 'é'"),
    ],
)
def test_what_cannot_be_said_is_refused_in_a_line(lmlab, lab, arguments, message):
    folder, runs = lab
    refused = lmlab("generate", runs["stories-gru"], *arguments, "--lab", folder)
    assert refused.status == 2
    assert refused.out == ""
    assert refused.err.startswith("error: ")
    assert message in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [(), ("--text=a", "--file=b"), ("--file=missing.txt",), ("--text=T",)])
def test_what_cannot_be_scored_is_refused_in_a_line(lmlab, lab, arguments):
    folder, runs = lab
    refused = lmlab("score", runs["stories-gru"], *arguments, "--lab", folder)
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("recipe", "changes", "parameters"),
    [
        ("shakespeare", (), 326_784),
        ("stories-transformer", ("--set=task.vocabulary=92",), 222_592),
        ("stories-transformer", ("--set=task.vocabulary=92", "--set=model.layers=8"), 1_606_912),
        ("stories-gru", ("--set=task.vocabulary=92", "--set=model.width=32", "--set=model.hidden=192"), 149_724),
    ],
)
def test_costs_are_those_the_documents_print(lmlab, recipe, changes, parameters):
    found = lmlab("cost", recipe, "--set=task.characters=50000", *changes, "--json").json
    assert found["parameters"]["total"] == parameters
    assert found["counted"]["forward_without_classifier"] == found["flops"]["forward"]


def test_a_play_is_scored_line_by_line(lmlab, lab, here):
    """The tokenizer of document 002 has no line break: lines are encoded as they were for training."""
    folder, runs = lab
    (here / "play.txt").write_text("The end.\nThe start.\n", encoding="utf-8")
    found = lmlab("score", runs["shakespeare"], "--file", here / "play.txt", "--lab", folder, "--json").json
    assert found["tokens"] > 3
    assert found["bits_per_byte"] > 0


def test_a_prompt_longer_than_the_positions_needs_sliding(lmlab, lab):
    folder, runs = lab
    where = (runs["stories-transformer"], "--prompt", "The end of the day. " * 3, "--max-tokens=3", "--lab", folder)
    refused = lmlab("generate", *where, "--past-window=stop")
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "slide" in refused.err
    assert len(lmlab("generate", *where, "--json").json["tokens"]) == 3
