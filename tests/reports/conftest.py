"""Two real labs: one of tiny runs that are really trained, one of curves written by hand, whose numbers are known."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from lmlab.engine.spec import RunSpec
from lmlab.runs.lab import Lab
from lmlab.runs.run import Run
from lmlab.runs.store import Metric
from lmlab.studies.execute import execute
from lmlab.studies.study import Study, studies

Points = Mapping[int, float]
"""step → value"""

STEPS = 24


def tiny_study() -> Study:
    """The demo in miniature, made so short that it neither memorises nor generalises."""
    demo = studies["demo"]
    small = {**demo.quick_base, "training.steps": STEPS, "training.eval_first": 4, "training.eval_period": 10}
    return replace(demo, quick_base=small).quick()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Lab]:
    """(study, lab) with four finished runs."""
    study, lab = tiny_study(), Lab(tmp_path_factory.mktemp("trained"), create=True)
    execute(study.runs(), lab, device="cpu")
    return study, lab


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"), create=True)
    yield lab
    lab.store.close()


Keep = Callable[..., Run]


@pytest.fixture
def keep(lab: Lab) -> Keep:
    """keep("label", spec, train={step: accuracy}, val=…, loss=…, status="finished") puts a run with these curves into
    the lab, the way a training would: registered, claimed, measured, ended."""

    def keep(
        label: str,
        spec: RunSpec,
        train: Points,
        val: Points | None = None,
        loss: Points | None = None,
        status: str = "finished",
        note: str = "",
    ) -> Run:
        lab.register([(label, spec)])
        claims = lab.store.claim({spec.run_id: 0}, session=1.0, machine={"device": "abacus", "torch": "2.0"})
        rows = [Metric(step, "train", "all", "accuracy", value) for step, value in train.items()]
        rows += [Metric(step, "val", "all", "accuracy", value) for step, value in (val or {}).items()]
        for split in ("train", "val"):
            rows += [Metric(step, split, "all", "loss", value) for step, value in (loss or {}).items()]
        last = max(train)
        lab.store.append({spec.run_id: claims[0]}, last, [(spec.run_id, row) for row in rows])
        if status != "running":
            lab.store.end(claims[0], status, last, 1.5, note)
        return lab.run(spec.run_id)

    return keep


@pytest.fixture
def study() -> Study:
    """Both models, two seeds, 100 steps, no bands; to be changed with dataclasses.replace."""
    return replace(studies["demo"], base={"task.p": 5, "model.width": 8, "training.steps": 100}, quick_base={})
