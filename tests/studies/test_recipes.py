"""Any model trains on any task: a recipe's model can be exchanged by its name."""

import pytest

from lmlab.models.model import models
from lmlab.studies.recipes import recipes
from lmlab.studies.session import train

TASKS = {
    "arithmetic-gpt": {"task.p": 5},
    "stories-gru": {"task.characters": 4000, "task.window": 10},
    "transcripts": {"task.count": 40, "task.window": 30},
}


@pytest.mark.parametrize("recipe", list(TASKS))
@pytest.mark.parametrize("name", list(models))
def test_any_model_trains_on_any_task(recipe, name, tmp_path):
    overrides = {**TASKS[recipe], "model.name": name, "model.width": 8, "training.lr": 0.01, "training.eval_first": 0}
    (run,) = train(recipe, steps=15, overrides=overrides, lab=tmp_path, device="cpu")
    assert run.status == "finished"
    losses = run.curve("loss", "train").values
    assert losses[-1] < losses[0]
    assert run.spec.model.name == name


@pytest.mark.parametrize("recipe", list(recipes))
def test_a_recipe_says_what_it_is(recipe):
    assert recipes[recipe].__doc__
    assert "document 00" in recipes[recipe].__doc__.lower() or "(004)" in recipes[recipe].__doc__
