"""Equations, checked by reading them as text and doing the sums again."""

from math import gcd

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.core.errors import ConfigError, DataError
from lmlab.data.arithmetic import Arithmetic

tasks = st.builds(
    Arithmetic,
    p=st.integers(2, 6),
    q=st.integers(2, 7),
    operator=st.sampled_from("+-*/"),
    orders=st.sampled_from([2, 3, [2, 3], [3, 2]]),
    symmetric=st.booleans(),
    counted=st.sampled_from(["right", "all"]),
    fraction=st.just(0.5),
)


def sentences(task: Arithmetic) -> list[str]:
    """Every row as text: its inputs and the last target."""
    table, tokenizer = task.table, task.build_tokenizer()
    return [
        tokenizer.decode([*inputs, targets[-1]])
        for inputs, targets in zip(table.inputs.tolist(), table.targets.tolist(), strict=True)
    ]


def parse(sentence: str, operator: str) -> tuple[list[int], int]:
    """`BOS 3 + 4 = 0 EOS PAD` → ([3, 4], 0); complains about any other form."""
    symbols = sentence.split()
    while symbols[-1] == "PAD":
        symbols.pop()
    assert (symbols[0], symbols[-3], symbols[-1]) == ("BOS", "=", "EOS")
    left = symbols[1:-3]
    assert set(left[1::2]) == {operator}
    return [int(symbol) for symbol in left[::2]], int(symbols[-2])


def test_the_default_is_document_000s():
    task = Arithmetic()
    assert (task.p, task.q, task.operator, task.orders, task.fraction) == (31, 31, "+", (2,), 0.5)
    assert len(task.table) == 961
    assert task.length == 6
    assert task.table.inputs.shape == task.table.targets.shape == task.table.weights.shape == (961, 6)


def test_the_vocabulary_is_numbers_operator_and_four_marks():
    vocabulary = Arithmetic().build_tokenizer().vocabulary
    assert vocabulary == (*(str(n) for n in range(31)), "+", "=", "BOS", "EOS", "PAD")
    assert len(vocabulary) == 36
    assert vocabulary[Arithmetic().padding] == "PAD"


@pytest.mark.parametrize(("p", "q", "numbers"), [(5, 7, 7), (7, 5, 7), (5, 5, 5)])
def test_the_vocabulary_holds_operands_and_results(p, q, numbers):
    assert len(Arithmetic(p=p, q=q).build_tokenizer().vocabulary) == numbers + 5


@given(tasks)
def test_every_equation_is_true_and_there_once(task):
    seen = set()
    for sentence in sentences(task):
        operands, result = parse(sentence, task.operator)
        a, *others = operands
        assert 0 <= result < task.q
        assert all(0 <= x < task.p for x in operands)
        if task.operator == "/":  # a / b / c = r means r · b · c ≡ a
            check = result
            for x in others:
                assert gcd(x, task.q) == 1
                check *= x
            assert (check - a) % task.q == 0
        else:
            value = a
            for x in others:
                value = eval(f"{value} {task.operator} {x}")
            assert (value - result) % task.q == 0
        if task.symmetric:
            assert operands == sorted(operands)
        assert len(operands) in task.orders
        seen.add(tuple(operands))
    assert len(seen) == len(task.table)


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"p": 7}, 7**2),
        ({"p": 7, "orders": 3}, 7**3),
        ({"p": 7, "orders": [2, 3]}, 7**2 + 7**3),
        ({"p": 7, "orders": [3, 2]}, 7**2 + 7**3),
        ({"p": 7, "symmetric": True}, 7 * 8 // 2),
        ({"p": 7, "orders": 3, "symmetric": True}, 7 * 8 * 9 // 6),
        ({"p": 7, "operator": "/"}, 7 * 6),
        ({"p": 7, "operator": "/", "orders": 3}, 7 * 6**2),
        ({"p": 6, "operator": "/"}, 6 * 2),  # 1 and 5 have an inverse modulo 6
        ({"p": 5, "q": 3, "operator": "-"}, 25),
    ],
)
def test_the_number_of_equations(fields, count):
    assert len(Arithmetic(**fields).table) == count


def test_sentences_of_both_orders():
    both = sentences(Arithmetic(p=3, orders=[2, 3], operator="-"))
    assert both[5] == "BOS 1 - 2 = 2 EOS PAD PAD"
    assert both[9] == "BOS 0 - 0 - 0 = 0 EOS"
    assert both[-1] == "BOS 2 - 2 - 2 = 1 EOS"
    assert sentences(Arithmetic(p=3, orders=3))[-1] == "BOS 2 + 2 + 2 = 0 EOS"
    assert sentences(Arithmetic(p=5, q=7))[24] == "BOS 4 + 4 = 1 EOS"
    assert sentences(Arithmetic(p=5, operator="/"))[-1] == "BOS 4 / 4 = 1 EOS"


@given(tasks)
def test_targets_are_the_next_inputs(task):
    assert torch.equal(task.table.targets[:, :-1], task.table.inputs[:, 1:])


@given(tasks)
def test_what_counts(task):
    """Right: the result and EOS, nothing else. All: everything but PAD."""
    vocabulary, table = task.build_tokenizer().vocabulary, task.table
    for row in range(len(table)):
        targets = [vocabulary[i] for i in table.targets[row].tolist()]
        counted = [t for t, w in zip(targets, table.weights[row].tolist(), strict=True) if w == 1.0]
        if task.counted == "right":
            assert counted == [targets[targets.index("=") + 1], "EOS"]
        else:
            assert counted == [symbol for symbol in targets if symbol != "PAD"]
    assert set(table.weights.unique().tolist()) <= {0.0, 1.0}


def test_groups_are_the_orders():
    split = Arithmetic(p=5, orders=[3, 2]).split(0)
    assert split.group_names == ("binary", "ternary")
    sizes = [len(parse(sentence, "+")[0]) for sentence in sentences(Arithmetic(p=5, orders=[3, 2]))]
    assert [split.group_names[g] for g in split.table.groups.tolist()] == [
        {2: "binary", 3: "ternary"}[size] for size in sizes
    ]
    assert Arithmetic(p=5).split(0).group_names == ()


@given(tasks, st.floats(0.2, 0.8), st.integers(0, 2**63 - 1))
def test_a_split_is_complete_and_of_the_right_size_in_each_order(task, fraction, seed):
    task = Arithmetic(**{**task.to_json(), "fraction": fraction})
    sizes = torch.bincount(task.table.groups).tolist()
    if any(fraction * size < 0.5 or (1 - fraction) * size < 0.5 for size in sizes):
        with pytest.raises(ConfigError, match=r"task\.fraction leaves nothing"):
            task.split(seed)
        return
    split = task.split(seed)
    assert sorted([*split.train_rows.tolist(), *split.val_rows.tolist()]) == list(range(len(task.table)))
    for group, size in enumerate(sizes):
        trained = int((task.table.groups[split.train_rows] == group).sum())
        assert abs(trained - fraction * size) <= 0.5


@pytest.mark.parametrize(("fraction", "trained"), [(0.1, 96), (0.5, 480), (0.6, 577), (0.9, 865), (1.0, 961)])
def test_training_set_sizes_of_document_000(fraction, trained):
    split = Arithmetic(fraction=fraction).split(0)
    assert (len(split.train_rows), len(split.val_rows)) == (trained, 961 - trained)
    assert len(split.train) == trained


def test_both_orders_are_halved_each():
    split = Arithmetic(p=11, orders=[2, 3]).split(3)
    assert torch.bincount(split.train.groups).tolist() == [60, 666]  # of 121 and 1331, halves rounded to even
    assert torch.bincount(split.val.groups).tolist() == [61, 665]


def test_a_seed_is_a_split():
    task = Arithmetic(p=11)
    assert torch.equal(task.split(5).train_rows, task.split(5).train_rows)
    different = {tuple(task.split(seed).train_rows.tolist()) for seed in range(20)}
    assert len(different) == 20


def test_each_equation_is_trained_on_with_the_same_probability():
    counts = torch.zeros(49)
    for seed in range(400):
        counts[Arithmetic(p=7).split(seed).train_rows] += 1
    assert (counts / 400 - 24 / 49).abs().max() < 5 * 0.5 / 20  # five standard deviations


@settings(max_examples=20)
@given(st.floats(0.1, 0.95), st.floats(0.1, 0.95), st.integers(0, 1000))
def test_training_sets_are_nested_as_the_fraction_grows(one, other, seed):
    small, large = sorted((one, other))
    rows = [set(Arithmetic(p=7, orders=[2, 3], fraction=f).split(seed).train_rows.tolist()) for f in (small, large)]
    assert rows[0] <= rows[1]


def test_the_lower_order_is_split_as_if_it_were_alone():
    """Adding an order leaves the split of the other as it was."""
    alone = Arithmetic(p=7).split(2)
    both = Arithmetic(p=7, orders=[2, 3]).split(2)
    assert alone.train_rows.tolist() == [row for row in both.train_rows.tolist() if row < 49]


def test_fraction_one_leaves_no_validation():
    split = Arithmetic(p=5, fraction=1.0).split(0)
    assert (len(split.train_rows), len(split.val_rows)) == (25, 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"p": 1}, "task.p must be between 2 and 1000; got 1. Try 31."),
        ({"p": 10**6}, "task.p must be between 2 and 1000; got 1000000. Try 31."),
        ({"p": 5, "q": 1}, "task.q must be between 2 and 1000; got 1. Try 31."),
        ({"p": 500, "orders": 3}, "task.p is too large for orders [3]; got 500. Try p ≤ 150."),
        ({"orders": 4}, "task.orders must be 2, 3 or [2, 3]; got [4]."),
        ({"orders": []}, "task.orders must be 2, 3 or [2, 3]; got []."),
        ({"orders": [2, 2]}, "task.orders must be 2, 3 or [2, 3]; got [2, 2]."),
        ({"orders": "both"}, "task.orders.0 must be a valid integer; got 'both'."),
        ({"operator": "%"}, "task.operator must be '+', '-', '*' or '/'; got '%'."),
        ({"counted": "left"}, "task.counted must be 'right' or 'all'; got 'left'."),
        ({"fraction": 0.0}, "task.fraction must be above 0 and at most 1; got 0.0. Try 0.5."),
        ({"fraction": 1.5}, "task.fraction must be above 0 and at most 1; got 1.5. Try 0.5."),
        ({"fraction": float("nan")}, "task.fraction must be above 0 and at most 1; got nan. Try 0.5."),
        ({"p": True}, "task.p must be a valid integer; got True."),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(fields, message):
    with pytest.raises(ConfigError) as caught:
        Arithmetic(**fields)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("fraction", "side", "remedy"),
    [
        (0.01, "nothing to train on: 0 of 25 binary equations", "Use a larger fraction or p."),
        (0.99, "nothing to validate on: 25 of 25 binary equations", "Use 1 to train on everything."),
    ],
)
def test_a_fraction_that_empties_a_side_is_refused(fraction, side, remedy):
    with pytest.raises(ConfigError) as caught:
        Arithmetic(p=5, fraction=fraction).split(0)
    assert str(caught.value) == f"task.fraction leaves {side} would be trained on; got {fraction}. {remedy}"


def test_one_order_without_validation_is_refused_even_when_the_other_has_some():
    with pytest.raises(ConfigError, match="nothing to validate on: 9 of 9 binary"):
        Arithmetic(p=3, orders=[2, 3], fraction=0.96).split(0)


def test_a_prompt_is_typed_without_bos():
    tokenizer = Arithmetic().build_tokenizer()
    assert tokenizer.decode(tokenizer.encode("5 + 7 =")) == "BOS 5 + 7 ="
    assert tokenizer.encode("BOS 5 + 7 =") == tokenizer.encode(" 5 +  7 = ")
    assert tokenizer.decode(tokenizer.encode("")) == "BOS"


def test_a_prompt_with_unknown_symbols_is_refused_by_name():
    with pytest.raises(DataError) as caught:
        Arithmetic(p=7).build_tokenizer().encode("5 - 9 - x =")
    assert str(caught.value) == ("the prompt has symbols outside the vocabulary: - 9 x. Known: 0 … 6 + = BOS EOS PAD.")


def test_the_order_in_which_orders_are_named_does_not_matter():
    assert Arithmetic(p=5, orders=[3, 2]) == Arithmetic(p=5, orders=[2, 3])
