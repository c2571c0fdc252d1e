"""The catalogue, and what a corpus gives."""

import re
from hashlib import sha256

import pytest

from lmlab.core.errors import ConfigError, DataError, UnknownName
from lmlab.data import stories, utterances
from lmlab.data.corpora import Corpus, content_digest, corpora, corpus, without_marks


def test_the_catalogue_says_what_a_user_wants_to_know():
    assert list(corpora) == [
        "stories",
        "utterances",
        "tinyshakespeare",
        "tinystories",
        "librispeech",
        "librispeech-100",
    ]
    for name in corpora:
        entry = corpora[name]
        assert entry.name == name
        assert entry.title
        assert entry.licence
        if not entry.built_in:
            assert entry.address.startswith("https://")
            assert entry.size > 0
            assert entry.sha256 == "" or re.fullmatch("[0-9a-f]{64}", entry.sha256)
    assert [name for name in corpora if corpora[name].built_in] == ["stories", "utterances"]
    assert corpora["tinyshakespeare"].size == 1_115_394
    assert corpora["tinyshakespeare"].file == "tinyshakespeare.txt"
    assert corpora["librispeech"].file == "librispeech.tar.gz"


def test_an_entry_as_json():
    json = corpora["tinystories"].to_json()
    assert json["licence"] == "CDLA-Sharing-1.0"
    assert json["kind"] == "text"
    assert json["built_in"] is False


def test_corpora_that_are_made_here():
    assert corpus("stories", amount=5_000).text == stories.generate(5_000)
    assert corpus("stories", amount=5_000, seed=4).rows == (stories.generate(5_000, seed=4),)
    assert list(corpus("utterances", amount=20, seed=1).rows) == utterances.generate(20, seed=1)
    assert corpus("utterances", amount=2).text == "\n".join(utterances.generate(2))
    assert repr(corpus("stories", amount=5_000)) == "Content(1 rows, 5000 characters)"


def test_names_and_amounts_that_do_not_exist():
    with pytest.raises(UnknownName, match="Did you mean tinyshakespeare"):
        corpus("tinyshakspeare")
    with pytest.raises(ConfigError, match="amount must be at least 1"):
        corpus("stories", amount=0)


def test_a_corpus_that_was_not_fetched_says_how_to_get_it(tmp_path):
    with pytest.raises(DataError, match="lmlab data fetch tinyshakespeare"):
        corpus("tinyshakespeare", tmp_path)


def test_a_fetched_text_is_checked_and_read(tmp_path, monkeypatch):
    content = b"One story.\n<|endoftext|>\nAnother one,\nlonger.\n<|endoftext|>\n"
    digest = sha256(content).hexdigest()
    entry = Corpus("tinystories", "Stories", "text", "free", "https://example.org/a.txt", len(content), digest)
    monkeypatch.setitem(corpora._entries, "tinystories", entry)
    (tmp_path / "tinystories.txt").write_bytes(content)
    assert corpus("tinystories", tmp_path).text == "One story.\nAnother one,\nlonger."
    assert corpus("tinystories", tmp_path, amount=9).text == "One story"
    (tmp_path / "tinystories.txt").write_bytes(content.replace(b"longer", b"louder"))
    with pytest.raises(DataError, match="its sha256 is"):
        corpus("tinystories", tmp_path)


def test_marks_between_stories_go_and_other_text_stays_as_it_is():
    assert without_marks(" a\n\nb\n") == " a\n\nb\n"
    assert without_marks("a\n<|endoftext|>\n\nb\n<|endoftext|>") == "a\nb"


def test_the_digest_is_of_the_content():
    content = corpus("utterances", amount=3)
    assert content.digest == content_digest(content.rows) == content_digest(content.text)
    assert content_digest("ab") == sha256(b"ab").hexdigest()
    assert content_digest(["ab", "c"]) == sha256(b"ab\nc").hexdigest()
    assert corpus("stories", amount=1000).digest != corpus("stories", amount=1001).digest
