"""Checkpoints on a real disk: bit for bit, all or nothing, and never trusted when damaged."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lmlab.core.errors import CheckpointError
from lmlab.data.arithmetic import Arithmetic
from lmlab.engine.spec import RunSpec, Training
from lmlab.engine.stack import Snapshot
from lmlab.models.decoder import DecoderConfig
from lmlab.runs.checkpoints import Checkpoints

RUN = "0123456789abcdef"
KEEP_ALL = Training(keep_last=100)


def snapshot(step: int, tie: bool = False, run: str = RUN) -> Snapshot:
    """A whole model with moments, every number its own."""
    spec = RunSpec(task=Arithmetic(p=5), model=DecoderConfig(width=8, heads=2, tie=tie))
    named = {name: parameter.detach() for name, parameter in spec.build_model().named_parameters()}
    moments = {
        moment: {name: torch.randn_like(tensor) for name, tensor in named.items()} for moment in ("first", "second")
    }
    return Snapshot(run, step, {name: tensor + step for name, tensor in named.items()}, moments)


def equal(one: Snapshot, other: Snapshot) -> bool:
    return (
        (one.run, one.step) == (other.run, other.step)
        and same(one.parameters, other.parameters)
        and one.moments.keys() == other.moments.keys()
        and all(same(one.moments[name], other.moments[name]) for name in one.moments)
    )


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and torch.equal(one[name], other[name]) for name in one
    )


@pytest.fixture
def kept(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints", RUN)


def files(kept: Checkpoints) -> list[str]:
    return sorted(path.name for path in kept.folder.iterdir())


def steps(kept: Checkpoints) -> list[int]:
    return [entry.step for entry in kept.entries()]


# --- what comes back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tie", [False, True])
def test_every_bit_comes_back(kept, tie):
    saved = snapshot(1000, tie)
    tricky = torch.tensor([0.0, -0.0, 1e-45, 3.4e38, 1 / 3])
    saved.parameters["tricky"] = tricky
    kept.save(saved, 0.5, KEEP_ALL)
    loaded = kept.newest()
    assert equal(loaded, saved)
    assert torch.equal(loaded.parameters["tricky"].view(torch.int32), tricky.view(torch.int32))


def test_double_precision_stays_double(kept):
    saved = Snapshot(RUN, 1, {"w": torch.tensor([1 / 3], dtype=torch.float64)}, {})
    kept.save(saved, None, KEEP_ALL)
    assert equal(kept.load(1), saved)


def test_tied_weights_are_stored_once(kept):
    kept.save(snapshot(1, tie=True), None, KEEP_ALL)
    kept.save(snapshot(2, tie=False), None, KEEP_ALL)
    tied, untied = (load_file(kept.folder / f"0000000{step}.safetensors") for step in (1, 2))
    assert "parameters/embedding.tokens.weight" in tied
    assert untied.keys() - tied.keys() == {
        f"{part}/classifier.weight" for part in ("parameters", "moments/first", "moments/second")
    }


def test_on_disk_there_is_safetensors_and_json_and_nothing_else(kept):
    kept.save(snapshot(1000), 0.25, KEEP_ALL)
    assert files(kept) == ["00001000.json", "00001000.safetensors"]
    record = json.loads((kept.folder / "00001000.json").read_text())
    assert (record["run"], record["step"], record["val_loss"]) == (RUN, 1000, 0.25)
    assert load_file(kept.folder / "00001000.safetensors")


def test_without_a_checkpoint_there_is_none(kept):
    assert kept.newest() is None
    assert kept.entries() == []
    with pytest.raises(CheckpointError, match=f"checkpoint 5 of run {RUN} cannot be read"):
        kept.load(5)


# --- damage ----------------------------------------------------------------------------------------------------------


def flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [flip_byte, truncate, empty, Path.unlink])
@pytest.mark.parametrize("kind", [".safetensors", ".json"])
def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_used(kept, damage, kind):
    good = snapshot(100)
    kept.save(good, None, KEEP_ALL)
    kept.save(snapshot(200), None, KEEP_ALL)
    damage(kept.folder / f"00000200{kind}")
    with pytest.raises(CheckpointError) as caught:
        kept.load(200)
    assert "\n" not in str(caught.value)
    assert equal(kept.newest(), good)


def test_when_all_are_damaged_there_is_none(kept):
    kept.save(snapshot(100), None, KEEP_ALL)
    flip_byte(kept.folder / "00000100.safetensors")
    assert kept.newest() is None


def test_a_checkpoint_of_another_run_is_refused(kept, tmp_path):
    kept.save(snapshot(100), None, KEEP_ALL)
    stranger = Checkpoints(tmp_path / "checkpoints", "f" * 16)
    stranger.save(snapshot(200, run="f" * 16), None, KEEP_ALL)
    for path in stranger.folder.iterdir():
        path.rename(kept.folder / path.name)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        kept.load(200)
    assert kept.newest().step == 100


def test_a_checkpoint_under_another_step_is_refused(kept):
    kept.save(snapshot(100), None, KEEP_ALL)
    for suffix in (".json", ".safetensors"):
        (kept.folder / f"00000100{suffix}").rename(kept.folder / f"00000900{suffix}")
    with pytest.raises(CheckpointError):
        kept.load(900)
    assert kept.newest() is None


# --- interrupted writes ----------------------------------------------------------------------------------------------


def test_a_checkpoint_whose_json_never_got_its_name_does_not_exist(kept):
    kept.save(snapshot(100), None, KEEP_ALL)
    kept.save(snapshot(200), None, KEEP_ALL)
    (kept.folder / "00000200.json").rename(kept.folder / "00000200.json.tmp")  # as when the power goes before the name
    assert steps(kept) == [100]
    assert kept.newest().step == 100
    with pytest.raises(CheckpointError):
        kept.load(200)


def test_sweeping_leaves_only_whole_checkpoints(kept):
    kept.save(snapshot(100), None, KEEP_ALL)
    kept.save(snapshot(200), None, KEEP_ALL)
    (kept.folder / "00000200.json").rename(kept.folder / "00000200.json.tmp")
    (kept.folder / "00000300.safetensors.tmp").write_bytes(b"half a checkpo")
    kept.sweep(step=300)
    assert files(kept) == ["00000100.json", "00000100.safetensors"]
    assert kept.newest().step == 100


def test_what_lies_after_the_step_a_run_goes_on_from_goes(kept):
    """It is damaged, or belongs to metrics that are gone: either way it must not be taken for the newest."""
    for step in (100, 200, 300):
        kept.save(snapshot(step), None, KEEP_ALL)
    kept.sweep(step=100)
    assert files(kept) == ["00000100.json", "00000100.safetensors"]


def test_a_checkpoint_can_be_written_again(kept):
    kept.save(snapshot(100), 0.5, KEEP_ALL)
    again = snapshot(100)
    kept.save(again, 0.25, KEEP_ALL)
    assert equal(kept.load(100), again)
    assert [entry.val_loss for entry in kept.entries()] == [0.25]


def test_deleting_leaves_no_folder(kept):
    kept.save(snapshot(100), None, KEEP_ALL)
    (kept.folder / "00000300.safetensors.tmp").write_bytes(b"half a checkpo")
    kept.delete()
    assert not kept.folder.exists()
    kept.delete()


# --- how many stay ---------------------------------------------------------------------------------------------------

LOSSES = {100: 3.0, 200: 1.0, 300: 2.0, 400: None, 500: 4.0, 600: 5.0}


@pytest.mark.parametrize(
    ("settings", "stay"),
    [
        ({}, [600]),
        ({"keep_last": 3}, [400, 500, 600]),
        ({"keep_last": 10}, [100, 200, 300, 400, 500, 600]),
        ({"keep_best": True}, [200, 600]),
        ({"keep_best": True, "keep_last": 5}, [200, 300, 400, 500, 600]),
        ({"keep_every": 250}, [500, 600]),
        ({"keep_every": 300, "keep_best": True, "keep_last": 2}, [200, 300, 500, 600]),
    ],
)
def test_what_the_settings_keep_stays_and_nothing_else(kept, settings, stay):
    for step, loss in LOSSES.items():
        kept.save(snapshot(step), loss, Training(**settings))
    assert steps(kept) == stay
    assert files(kept) == sorted(f"{step:08d}.{suffix}" for step in stay for suffix in ("json", "safetensors"))
    assert [kept.load(step).step for step in stay] == stay


def test_without_validation_no_checkpoint_is_the_best(kept):
    for step in (100, 200, 300):
        kept.save(snapshot(step), None, Training(keep_best=True))
    assert steps(kept) == [300]


def test_a_damaged_checkpoint_further_on_does_not_push_out_the_new_ones(kept):
    """A run that starts over because its only checkpoint is damaged keeps what it saves on the way there."""
    kept.save(snapshot(3000), None, Training())
    flip_byte(kept.folder / "00003000.safetensors")
    assert kept.newest() is None
    for step in (1000, 2000):
        kept.save(snapshot(step), None, Training())
        assert kept.newest().step == step
    kept.save(snapshot(3000), None, Training())
    assert steps(kept) == [3000]
    assert kept.newest().step == 3000
