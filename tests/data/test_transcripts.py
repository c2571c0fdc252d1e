"""Utterances as rows: markers, padding, what counts."""

import pytest
import torch

from lmlab.core.errors import ConfigError, DataError
from lmlab.data.transcripts import Transcripts


@pytest.fixture
def spoken(tmp_path):
    path = tmp_path / "spoken.csv"
    path.write_text("file_name,transcript\na,hello\nb,it's me\nc,no\nd,a long one that is cut\n", encoding="utf-8")
    return path


def test_inputs_begin_and_targets_end_with_their_marker(spoken):
    task = Transcripts(path=str(spoken), window=10, validation=0.25)
    tokenizer, table = task.build_tokenizer(), task.split(0).table
    symbols = tokenizer.vocabulary
    row = table.at(torch.tensor([0]))
    assert [symbols[i] for i in row.inputs[0]] == ["<sos>", *"HELLO", *["<pad>"] * 4]
    assert [symbols[i] for i in row.targets[0]] == [*"HELLO", "<eos>", *["<pad>"] * 4]
    assert row.weights[0].tolist() == [1] * 6 + [0] * 4


def test_an_utterance_that_is_too_long_is_cut_and_does_not_end(spoken):
    task = Transcripts(path=str(spoken), window=10, validation=0.25)
    row = task.split(0).table.at(torch.tensor([3]))
    assert task.build_tokenizer().decode(row.targets[0].tolist()) == "A LONG ONE"
    assert row.weights.sum() == 10
    assert task.build_tokenizer().eos not in row.targets[0]


def test_one_marker_may_serve_both_ends(spoken):
    task = Transcripts(path=str(spoken), window=10, one_marker=True, validation=0.25)
    row = task.split(0).table.at(torch.tensor([2]))
    assert task.symbols == 30
    assert row.inputs[0, 0] == row.targets[0, 2]


def test_the_split_is_by_order():
    split = Transcripts(count=50, validation=0.2).split(0)
    assert split.train_rows.tolist() == list(range(40))
    assert split.val_rows.tolist() == list(range(40, 50))


def test_padding_and_markers_are_not_text(spoken):
    task = Transcripts(path=str(spoken), validation=0.25)
    row = task.split(0).table.at(torch.tensor([1]))
    assert (task.symbol_bytes()[row.targets] * row.weights).sum() == len("IT'S ME")


def test_symbols_outside_the_31_are_named(tmp_path):
    path = tmp_path / "spoken.txt"
    path.write_text("fine\n99 red balloons\n", encoding="utf-8")
    with pytest.raises(DataError, match="9"):
        Transcripts(path=str(path)).split(0)


def test_too_few_utterances_are_refused(tmp_path):
    path = tmp_path / "spoken.txt"
    path.write_text("only one\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"task\.validation leaves nothing to train on: there are 1 utterances"):
        Transcripts(path=str(path)).split(0)


def test_a_crop_begins_anywhere_and_only_while_training(spoken):
    task = Transcripts(path=str(spoken), window=6, crop=True, validation=0.25)
    table, tokenizer = task.split(0).table, task.build_tokenizer()
    rows = torch.tensor([3])
    measured = {tokenizer.decode(table.at(rows).targets[0].tolist()) for _ in range(5)}
    assert measured == {"A LONG"}
    drawn = {tokenizer.decode(table.at(rows, torch.tensor([key])).targets[0].tolist()) for key in range(40)}
    assert len(drawn) > 5
    assert all(piece in "A LONG ONE THAT IS CUT" for piece in drawn)
    short = {tokenizer.decode(table.at(torch.tensor([2]), torch.tensor([key])).targets[0].tolist()) for key in range(9)}
    assert short == {"NO"}
