import csv

import pytest

from lmlab.reports.groups import group_runs
from lmlab.reports.inventory import Inventory


@pytest.fixture
def inventory(trained):
    study, lab = trained
    return Inventory.of(group_runs(lab.runs(), study))


def test_settings_are_those_that_differ_from_their_defaults(inventory):
    settings = {setting.field: (setting.default, setting.values) for setting in inventory.settings}
    assert settings["task.p"] == ("31", ("7", "7"))
    assert settings["model.name"] == ("", ("lstm", "gpt"))
    assert settings["training.lr"] == ("0.001", ("0.003", "0.003"))
    assert not settings.keys() & {"task.q", "model.hidden", "model.feedforward", "model.heads", "training.batch_size"}


def test_sizes_are_counted(trained, inventory):
    _, lab = trained
    for size in inventory.sizes:
        run = next(run for run in lab.runs() if run.row.label == size.name)
        assert size.parameters == sum(parameter.numel() for parameter in run.model().parameters())
        assert (size.train, size.val) == (34, 15)  # 0.7 of 7 × 7 equations


def test_every_run_is_a_line_with_its_best_values(trained, inventory):
    _, lab = trained
    lines = list(csv.DictReader(inventory.csv().splitlines()))
    assert [line["run"] for line in lines] == [run.id for run in lab.runs()]
    for line, run in zip(lines, lab.runs(), strict=True):
        assert float(line["loss_val"]) == run.extrema()["loss_val"]
        assert float(line["seconds"]) == run.row.seconds


def test_machines_come_from_the_runs(trained, inventory):
    _, lab = trained
    (machine,) = inventory.machines
    assert dict(machine.facts)["torch"] == lab.runs()[0].row.machine["torch"]
    assert machine.runs == "all runs"
