"""Training by name, as in a notebook."""

import pytest

from lmlab.core.errors import ConfigError, UnknownName
from lmlab.engine.spec import Seeds
from lmlab.studies.session import load, specs_of, train, train_study
from lmlab.studies.study import Study

SMALL = {"task.p": 5, "model.width": 8}


def test_train_gives_runs_one_per_seed(tmp_path):
    runs = train("arithmetic-gpt", seeds=[3, 4], steps=2, overrides=SMALL, lab=tmp_path / "lab", device="cpu")
    assert [(run.seed, run.status, run.row.step, run.row.label) for run in runs] == [
        (3, "finished", 2, "arithmetic-gpt"),
        (4, "finished", 2, "arithmetic-gpt"),
    ]
    assert runs[0].curve("loss", "val").steps.tolist() == [0, 1, 2]
    assert load("latest", tmp_path / "lab").id == runs[0].id
    assert load(runs[1].id[:8], tmp_path / "lab").seed == 4


def test_a_seed_set_by_hand_stays():
    ((_, one), (_, two)) = specs_of("arithmetic-lstm", (1, 2), {"seeds.split": 9})
    assert (one.seeds, two.seeds) == (
        Seeds(split=9, init=1, order=1, dropout=1),
        Seeds(split=9, init=2, order=2, dropout=2),
    )


def test_a_study_is_trained_by_its_name_or_itself(tmp_path):
    study = Study("s", "S", "", ("arithmetic-lstm",), {**SMALL, "training.steps": 2}, {"training.lr": (0.1, 0.2)}, (0,))
    runs = train_study(study, lab=tmp_path / "lab", device="cpu")
    assert [(run.spec.training.lr, run.status) for run in runs] == [(0.1, "finished"), (0.2, "finished")]
    with pytest.raises(UnknownName, match="unknown study"):
        train_study("nothing", lab=tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"overrides": {"task.p": 1}},
        {"overrides": {**SMALL, "task.fraction": 0.01}},
        {"overrides": {**SMALL, "training.drop_last": True}},
        {"steps": 0},
        {"device": "tpu"},
        {"seeds": [-1]},
        {"overrides": {**SMALL, "training.precision": "tf32"}, "device": "cpu"},
    ],
)
def test_what_cannot_be_trained_is_refused_before_there_is_a_lab(wrong, tmp_path):
    with pytest.raises(ConfigError):
        train("arithmetic-lstm", lab=tmp_path / "lab", **wrong)
    assert not (tmp_path / "lab").exists()
