import torch

from lmlab.data.task import Examples, Split


def numbered(rows: int, length: int) -> Examples:
    """Row i holds i·10, i·10 + 1, …: a row can be told from its content."""
    inputs = torch.arange(rows).unsqueeze(1) * 10 + torch.arange(length)
    return Examples(inputs, inputs + 1, torch.ones(rows, length), torch.arange(rows) % 2)


def test_rows_of_a_table_keep_their_parts_together():
    part = numbered(6, 3).at(torch.tensor([4, 1]))
    assert len(part) == 2
    assert part.inputs.tolist() == [[40, 41, 42], [10, 11, 12]]
    assert part.targets.tolist() == [[41, 42, 43], [11, 12, 13]]
    assert part.groups.tolist() == [0, 1]
    assert part.weights.shape == (2, 3)


def test_rows_may_have_any_shape():
    part = numbered(6, 3).at(torch.tensor([[0, 1], [2, 3], [4, 5]]))
    assert part.inputs.shape == (3, 2, 3)
    assert part.inputs[1, 1].tolist() == [30, 31, 32]


def test_a_split_shows_its_two_sides():
    split = Split(numbered(6, 3), torch.tensor([0, 2]), torch.tensor([1, 3, 4, 5]))
    assert split.train.inputs[:, 0].tolist() == [0, 20]
    assert split.val.inputs[:, 0].tolist() == [10, 30, 40, 50]
    assert repr(split) == "Split(2 train, 4 val)"
    assert repr(split.table) == "Examples(6 × 3 tokens)"
