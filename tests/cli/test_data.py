"""`lmlab data …`: what there is, what it looks like, and where to put what cannot be fetched."""

import hashlib

import pytest

from lmlab.data.corpora import corpora


def test_every_corpus_is_listed(lmlab):
    listed = lmlab("data", "list", "--json").json["corpora"]
    assert [entry["name"] for entry in listed] == list(corpora)
    assert {entry["name"] for entry in listed if entry["here"]} == {"stories", "utterances"}


def test_a_corpus_made_here_is_shown(lmlab):
    shown = lmlab("data", "show", "stories", "--json").json
    assert len(shown["sample"]) > 300
    assert lmlab("data", "show", "utterances").out.count("\n") > 3


def test_what_is_not_here_says_where_to_put_it(lmlab, here):
    shown = lmlab("data", "show", "tinyshakespeare")
    assert shown.status == 0
    assert "1,115,394" in shown.out
    assert not (here / "lab").exists()


def test_a_file_put_there_by_hand_is_checked(lmlab, here):
    (here / "lab" / "data").mkdir(parents=True)
    (here / "lab" / "data" / "tinyshakespeare.txt").write_text("not Shakespeare", encoding="utf-8")
    refused = lmlab("data", "fetch", "tinyshakespeare")
    assert refused.status == 2
    assert refused.err.startswith("error: ")
    assert refused.err.count("\n") == 1
    assert hashlib.sha256(b"not Shakespeare").hexdigest()[:8] in refused.err or "tinyshakespeare.txt" in refused.err


@pytest.mark.parametrize("command", ["show", "fetch"])
def test_an_unknown_corpus_is_refused_with_the_nearest_names(lmlab, command):
    refused = lmlab("data", command, "storys")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "stories" in refused.err
