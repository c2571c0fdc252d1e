"""What is left to do, what can be trained together, and how long it will take."""

import time

import pytest
import torch

from lmlab.runs.store import RunRow
from lmlab.studies.execute import execute
from lmlab.studies.plan import plan, seconds_left, work
from lmlab.studies.session import specs_of

CPU = torch.device("cpu")
SMALL = {"task.p": 5, "model.width": 8, "training.steps": 3}


def small(recipe: str = "arithmetic-lstm", seeds: tuple[int, ...] = (0,), **changes):
    return specs_of(recipe, seeds, {**SMALL, **{key.replace("__", "."): value for key, value in changes.items()}})


def ids(group):
    return [spec.run_id for spec in group]


def test_what_is_done_is_not_planned_again(lab):
    runs = small(seeds=(0, 1, 2))
    assert (plan(runs, lab, CPU).waiting, plan(runs, lab, CPU).finished) == (3, 0)
    execute(runs[1:2], lab, device="cpu")
    left = plan(runs, lab, CPU)
    assert (left.waiting, left.finished) == (2, 1)
    assert [ids(group) for group in left.groups] == [[runs[0][1].run_id], [runs[2][1].run_id]]


def test_a_run_named_twice_is_planned_once(lab):
    runs = small()
    assert plan([*runs, ("another name", runs[0][1])], lab, CPU).waiting == 1


def test_where_runs_are_stacked_equal_shapes_go_together(lab):
    together = [
        *small(seeds=(0, 1)),
        *small(training__lr=0.1),
        *small(training__weight_decay=0.0),
        *small(task__fraction=0.7),
    ]
    apart = [
        *small(model__width=16),
        *small(task__p=7),
        *small(training__steps=4),
        *small(training__optimizer="sgd"),
        *small("arithmetic-gpt"),
    ]
    groups = plan([*together, *apart], lab, CPU, "stacked").groups
    assert [ids(group) for group in groups] == [
        [spec.run_id for _, spec in together],
        *([spec.run_id] for _, spec in apart),
    ]
    assert [len(group) for group in plan([*together, *apart], lab, CPU, "loop").groups] == [1] * 10


# --- how long --------------------------------------------------------------------------------------------------------


def row(status: str, step: int, seconds: float, total: int = 100) -> RunRow:
    lease = time.time() + 1e6 if status == "running" else 0.0  # however long the tests before this one take
    return RunRow(1, "r", "l", 0, {}, status, step, total, 0.0, 0.0, seconds, "", {}, lease)


@pytest.mark.parametrize(
    ("rows", "runs", "left"),
    [
        ([], 4, None),
        ([row("waiting", 0, 0.0)], 4, None),
        ([row("finished", 100, 10.0)] * 2, 4, 20.0),
        ([row("finished", 100, 10.0)] * 4, 4, 0.0),
        ([row("finished", 100, 10.0), row("running", 50, 5.0)], 3, 15.0),  # 5 s of the one that runs, 10 s of the third
        ([row("running", 50, 5.0), row("running", 50, 5.0)], 2, 5.0),  # two at once
        ([row("interrupted", 20, 2.0), row("waiting", 0, 0.0)], 2, 18.0),
    ],
)
def test_the_time_left_follows_from_the_speed_so_far(rows, runs, left):
    assert seconds_left(rows, runs) == (None if left is None else pytest.approx(left))


def test_work_grows_with_steps_and_model():
    ((_, one),) = small()
    ((_, longer),) = small(training__steps=6)
    ((_, wider),) = small(model__width=32)
    assert work(longer) == pytest.approx(2 * work(one))
    assert work(wider) > 5 * work(one)
