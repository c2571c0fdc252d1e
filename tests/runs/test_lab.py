"""A lab is a folder; where it cannot be one, one line says why."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmlab.core.errors import StoreError
from lmlab.data.arithmetic import Arithmetic
from lmlab.engine.spec import RunSpec, Training
from lmlab.models.recurrent import LSTMConfig
from lmlab.runs.lab import Lab
from lmlab.studies.execute import execute

SPEC = RunSpec(task=Arithmetic(p=5), model=LSTMConfig(width=4), training=Training(steps=3))


@pytest.fixture
def common(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may enter and nobody but its owner may write, visited by somebody else."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "closed" / "deep").mkdir(parents=True)
        (folder / "closed").chmod(0o000)
        folder.chmod(0o555)
        monkeypatch.chdir("/")
        if root := os.geteuid() == 0:
            os.setresuid(65534, 65534, 0)  # root may do everything: become somebody who may not
        yield folder
        if root:
            os.setresuid(0, 0, 0)
        folder.chmod(0o755)
        (folder / "closed").chmod(0o755)


def test_a_lab_is_made_only_when_asked_for(tmp_path):
    with pytest.raises(StoreError, match=r"there is no lab at .* Train something first, or give another with --lab"):
        Lab(tmp_path / "lab")
    assert Lab.existing(tmp_path / "lab") is None
    assert not (tmp_path / "lab").exists()
    Lab(tmp_path / "deep" / "lab", create=True)
    assert Lab(tmp_path / "deep" / "lab").runs() == []


def test_an_empty_folder_is_no_lab_yet(tmp_path):
    assert Lab.existing(tmp_path) is None
    with pytest.raises(StoreError, match="there is no lab at"):
        Lab(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_lab(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    for open_it in (Lab, Lab.existing, lambda path: Lab(path, create=True)):
        with pytest.raises(StoreError, match=r"the lab must be a folder; .*notes\.txt is a file"):
            open_it(file)
    with pytest.raises(StoreError, match=r"the lab folder .*inside cannot be made: Not a directory"):
        Lab(file / "inside", create=True)
    assert file.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_refused(common):
    with pytest.raises(StoreError, match=r"is not writable\. Give another with --lab"):
        Lab(common, create=True)
    for place in (common / "lab", common / "closed" / "lab", common / "closed" / "deep" / "lab"):
        with pytest.raises(StoreError, match="cannot be made: Permission denied"):
            Lab(place, create=True)


def test_a_folder_that_cannot_be_entered_holds_no_lab(common):
    for place in (common / "closed", common / "closed" / "deep"):
        assert Lab.existing(place) is None
        with pytest.raises(StoreError, match="there is no lab at"):
            Lab(place)


def test_the_folder_comes_from_the_environment_and_else_is_called_lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LMLAB_HOME", raising=False)
    assert Lab(create=True).path == Path("lab")
    monkeypatch.setenv("LMLAB_HOME", str(tmp_path / "home"))
    assert Lab(create=True).path == tmp_path / "home"
    assert Lab(tmp_path / "given", create=True).path == tmp_path / "given"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given", "home", "lab"]


def test_several_processes_can_make_the_same_lab_at_once(tmp_path):
    code = "import sys; from lmlab.runs.lab import Lab; print(); [print(Lab(l[:-1], create=True)) for l in sys.stdin]"
    command = [sys.executable, "-u", "-c", code]
    crew = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.stdout.readline() for process in crew] == ["\n"] * 3  # ready
    for number in range(50):
        folder = tmp_path / str(number)
        for process in crew:
            process.stdin.write(f"{folder}\n")
            process.stdin.flush()
        assert [process.stdout.readline() for process in crew] == [f"Lab('{folder}')\n"] * 3
        assert Lab(folder).runs() == []
    for process in crew:
        process.stdin.close()
    assert [process.wait(timeout=60) for process in crew] == [0] * 3


def test_deleting_forgets_the_run_and_its_checkpoints(tmp_path):
    lab = Lab(tmp_path, create=True)
    kept, gone = execute([("a", SPEC), ("b", SPEC.with_seed(1))], lab, device="cpu")
    lab.delete(gone.id)
    assert [run.id for run in lab.runs()] == [kept.id]
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [kept.id]
    assert lab.store.metrics(gone.id) == []
    assert kept.model() is not None
