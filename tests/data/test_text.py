"""Windows over a text: what is in them, which are trained on, and what makes two texts the same task."""

import resource
import sys

import pytest
import torch

from lmlab.core.errors import ConfigError, DataError
from lmlab.data.text import Text, Windows
from lmlab.engine.spec import RunSpec


@pytest.fixture
def text(tmp_path):
    """A text of 60 different-looking places: every window can be told from every other."""
    path = tmp_path / "text.txt"
    path.write_text("".join(chr(97 + i % 26) + chr(65 + i % 25) for i in range(300)), encoding="utf-8")
    return path


def test_inputs_and_targets_are_shifted_by_one(text):
    task = Text(path=str(text), window=7, stride=3)
    content, tokenizer, table = task.text(), task.build_tokenizer(), task.split(0).table
    for row in (0, 1, 50, len(table) - 1):
        examples = table.at(torch.tensor([row]))
        assert tokenizer.decode(examples.inputs[0].tolist()) == content[3 * row : 3 * row + 7]
        assert tokenizer.decode(examples.targets[0].tolist()) == content[3 * row + 1 : 3 * row + 8]
        assert examples.weights.min() == 1
    assert 3 * (len(table) - 1) + 8 <= len(content) < 3 * len(table) + 8  # the last window is the last that fits


@pytest.mark.parametrize(("stride", "gap"), [(1, 7), (7, 7), (3, 20)])
def test_no_text_is_on_both_sides_of_a_gap(text, stride, gap):
    split = Text(path=str(text), window=7, stride=stride, gap=gap, validation=0.25).split(0)
    last = split.train_rows.max().item() * stride + 7  # the last target of training
    first = split.val_rows.min().item() * stride  # the first input of validation
    assert first > last
    assert split.val_rows.max() == len(split.table) - 1


def test_document_002s_split_has_no_gap(text):
    """The first 80 % of all windows of stride 1, then the rest."""
    split = Text(path=str(text), window=50, stride=1, gap=0, validation=0.2).split(0)
    windows = 600 - 50
    assert len(split.table) == windows
    assert len(split.train_rows) == int(windows * 0.8)
    assert len(split.train_rows) + len(split.val_rows) == windows


def test_a_limited_evaluation_is_spread_over_the_side(text):
    split = Text(path=str(text), window=5, stride=1, measured=10).split(0)
    rows = split.measured_rows("train")
    assert len(rows) == 10
    assert rows.min() < 60 < 400 < rows.max()
    assert set(rows.tolist()) <= set(split.train_rows.tolist())
    everything = Text(path=str(text), window=5, stride=1, measured=0).split(0)
    assert torch.equal(everything.measured_rows("val"), everything.val_rows)


def test_validation_can_be_left_out(text):
    split = Text(path=str(text), window=5, validation=0.0).split(0)
    assert len(split.val_rows) == 0
    assert len(split.train_rows) == len(split.table)


def test_a_stream_is_in_memory_once():
    """Every window of a megabyte with stride 1 costs its tokens, not its windows."""
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = Windows(torch.zeros(1_100_000, dtype=torch.int32), window=50, stride=1)
    assert len(table) > 1_000_000
    table.at(torch.arange(0, 1_000_000, 20_000))
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 100 * 2**20


def test_a_run_is_named_by_the_content_of_its_file_not_by_its_place(text, tmp_path):
    moved = tmp_path / "elsewhere" / "copy.txt"
    moved.parent.mkdir()
    moved.write_bytes(text.read_bytes())
    other = tmp_path / "other.txt"
    other.write_text(text.read_text() + "!", encoding="utf-8")
    ids = {
        name: RunSpec(task=Text(path=str(path), window=5), model={"name": "rnn"}).run_id
        for name, path in (("here", text), ("moved", moved), ("other", other))
    }
    assert ids["here"] == ids["moved"] != ids["other"]


def test_bytes_of_symbols_add_up_to_the_text(text):
    for kind in ("characters", "byte-bpe"):
        task = Text(path=str(text), tokenizer=kind, vocabulary=0 if kind == "characters" else 280)
        ids = task.build_tokenizer().encode(task.text())
        assert task.symbol_bytes()[ids].sum() == len(task.text().encode())


def test_a_model_may_have_room_for_more_symbols(text):
    assert Text(path=str(text), vocabulary=92).symbols == 92
    with pytest.raises(ConfigError, match=r"task\.vocabulary must be at least the symbols of the text \(51\); got 5\."):
        _ = Text(path=str(text), vocabulary=5).symbols


@pytest.mark.parametrize(
    ("content", "fields", "message"),
    [
        ("", {}, "empty"),
        ("aaaa", {}, "only one symbol"),
        ("abcdef", {"window": 10}, r"task\.window must be below the length of the text \(6 tokens\)"),
        ("abcdefghijkl", {"window": 5}, r"task\.validation leaves nothing to (train|validate) on"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused_in_a_line(tmp_path, content, fields, message):
    path = tmp_path / "text.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises((DataError, ConfigError), match=message) as caught:
        Text(path=str(path), **fields).split(0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "fields", [{"window": 0}, {"stride": 0}, {"gap": -1}, {"validation": 1.0}, {"validation": -0.1}, {"measured": -1}]
)
def test_settings_that_cannot_be_are_refused(fields):
    with pytest.raises(ConfigError, match=rf"task\.{next(iter(fields))} must be"):
        Text(**fields)


def test_the_stories_made_here_need_no_file():
    split = Text(characters=20_000, window=20).split(0)
    assert len(split.train_rows) > 700
    assert split.val.inputs.shape[1] == 20
