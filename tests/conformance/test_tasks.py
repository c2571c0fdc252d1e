"""What every registered task must give. A task added to the registry needs only its smallest settings here."""

import pytest
import torch

from lmlab.data.task import Examples, Split, tasks

SMALL = {
    "arithmetic": [{"p": 5}, {"p": 5, "orders": [2, 3]}, {"p": 7, "operator": "/", "counted": "all"}],
    "text": [
        {"characters": 5000, "window": 20},
        {"characters": 5000, "window": 10, "stride": 1, "tokenizer": "byte-bpe", "vocabulary": 300},
        {"characters": 5000, "window": 10, "tokenizer": "corpus-bpe", "vocabulary": 90, "drop_speakers": True},
    ],
    "transcripts": [{"count": 40, "window": 30}, {"count": 40, "one_marker": True}],
}
CASES = [
    pytest.param(tasks[name](name=name, **options), id="-".join([name, *map(str, options)]))
    for name in tasks
    for options in SMALL.get(name, [{}])
]
every_task = pytest.mark.parametrize("task", CASES)


def whole(split: Split) -> Examples:
    """Every row of the table, however it is kept."""
    return split.table.at(torch.arange(len(split.table)))


@every_task
def test_tables_have_one_shape(task):
    split = task.split(0)
    for side in (split.train, split.val, whole(split)):
        assert side.inputs.shape == side.targets.shape == side.weights.shape == (len(side), task.length)
        assert side.groups.shape == (len(side),)
        assert side.inputs.dtype == side.targets.dtype == side.groups.dtype == torch.int64
        assert side.weights.dtype == torch.float32


@every_task
def test_tokens_are_in_the_vocabulary(task):
    table, size = whole(task.split(0)), len(task.build_tokenizer().vocabulary)
    for tokens in (table.inputs, table.targets):
        assert tokens.min() >= 0
        assert tokens.max() < size


@every_task
def test_every_example_counts_and_padding_never_does(task):
    table = whole(task.split(0))
    assert table.weights.sum(1).min() >= 1
    assert ((table.weights == 0) | (table.weights == 1)).all()
    if task.padding is not None:
        assert table.weights[table.targets == task.padding].sum() == 0


@every_task
def test_targets_are_the_inputs_one_later(task):
    table = whole(task.split(0))
    counted = table.weights[:, 1:] > 0
    assert torch.equal(table.inputs[:, 1:][counted], table.targets[:, :-1][counted])


@every_task
def test_no_example_is_on_both_sides(task):
    split = task.split(0)
    train, val = set(split.train_rows.tolist()), set(split.val_rows.tolist())
    assert len(train) == len(split.train_rows) > 0
    assert len(val) == len(split.val_rows) > 0
    assert not train & val
    assert max(train | val) < len(split.table)


def rows(split: Split) -> tuple[list[int], list[int]]:
    return split.train_rows.tolist(), split.val_rows.tolist()


@every_task
def test_a_seed_gives_the_same_data_every_time(task):
    torch.manual_seed(1)
    first = task.split(3)
    torch.manual_seed(2)
    again = type(task)(**task.to_json()).split(3)
    assert rows(first) == rows(again)
    for part in ("inputs", "targets", "weights", "groups"):
        assert torch.equal(getattr(whole(first), part), getattr(whole(again), part))


@every_task
def test_groups_have_names(task):
    split = task.split(0)
    assert whole(split).groups.min() >= 0
    assert whole(split).groups.max() < max(1, len(split.group_names))


@every_task
def test_fields_that_only_choose_rows_leave_the_table_alone(task):
    assert task.only_rows <= set(type(task).model_fields)
    if "fraction" in task.only_rows:
        other = type(task)(**{**task.to_json(), "fraction": 0.3})
        assert torch.equal(other.split(0).table.inputs, task.split(0).table.inputs)
        assert len(other.split(0).train_rows) < len(task.split(0).train_rows)


@every_task
def test_text_survives_the_tokenizer(task):
    """What is decoded and encoded again is the same text (markers and capitals may be said in another way)."""
    tokenizer = task.build_tokenizer()
    text = tokenizer.decode(whole(task.split(0)).targets[0].tolist())
    again = tokenizer.decode(tokenizer.encode(text))
    assert again.removeprefix("BOS ").lower() == text.lower()
    assert len(set(tokenizer.vocabulary)) == len(tokenizer.vocabulary)


@every_task
def test_the_family_is_one_the_engine_knows(task):
    assert task.family in ("example", "token")
