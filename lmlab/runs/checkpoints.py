"""Checkpoints: safetensors for tensors, JSON for the rest. No pickle is ever written or read.

    checkpoints/<run>/00001000.safetensors      parameters and optimizer moments
    checkpoints/<run>/00001000.json             run, step, digest of the tensors, validation loss: the name that counts

Both are written under a temporary name, synced and renamed, the JSON last: a checkpoint exists when its JSON
does, and is used only if the digest agrees.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from lmlab.core.errors import CheckpointError
from lmlab.engine.spec import Training
from lmlab.engine.stack import Snapshot


@dataclass(frozen=True)
class Entry:
    """What a checkpoint's JSON says."""

    step: int
    val_loss: float | None
    path: Path


class Checkpoints:
    """The checkpoints of one run, in a folder of their own."""

    def __init__(self, folder: Path, run: str) -> None:
        self.folder, self.run = folder / run, run

    def save(self, snapshot: Snapshot, val_loss: float | None, training: Training) -> None:
        """Write one, then let go of those the run's settings do not keep."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data = save(_flatten(snapshot))
        record = {
            "run": snapshot.run,
            "step": snapshot.step,
            "digest": blake2b(data).hexdigest(),
            "val_loss": val_loss,
        }
        path = self.folder / f"{snapshot.step:08d}.json"
        path.unlink(missing_ok=True)  # a checkpoint that is being replaced must not vouch for new tensors
        _write(path.with_suffix(".safetensors"), data)
        _write(path, json.dumps(record).encode())
        self._retain(training, snapshot.step)

    def entries(self) -> list[Entry]:
        """All checkpoints that have their name, oldest first; unreadable ones are left out."""
        return [entry for path in sorted(self.folder.glob("[0-9]*.json")) if (entry := self._entry(path))]

    def newest(self) -> Snapshot | None:
        """The newest checkpoint that is whole; damaged ones are passed over."""
        for entry in reversed(self.entries()):
            try:
                return self.load(entry.step)
            except CheckpointError:
                continue
        return None

    def load(self, step: int) -> Snapshot:
        path = self.folder / f"{step:08d}.json"
        try:
            record = json.loads(path.read_bytes())
            data = path.with_suffix(".safetensors").read_bytes()
        except (OSError, ValueError) as error:
            raise CheckpointError(f"checkpoint {step} of run {self.run} cannot be read: {error}") from error
        if not isinstance(record, dict) or record.get("run") != self.run or record.get("step") != step:
            raise CheckpointError(f"checkpoint {path} belongs to another run.")
        if blake2b(data).hexdigest() != record.get("digest"):
            raise CheckpointError(
                f"checkpoint {path.with_suffix('.safetensors')} is damaged: its digest does not agree."
            )
        try:
            return _unflatten(self.run, step, load(data))
        except SafetensorError as error:
            raise CheckpointError(f"checkpoint {path} is damaged: {error}") from error

    def sweep(self, step: int) -> None:
        """Remove what an interrupted write left behind, and whatever lies after the step the run goes on from."""
        for entry in self.entries():
            if entry.step > step:
                entry.path.unlink(missing_ok=True)
        for path in self.folder.glob("*.tmp"):
            path.unlink(missing_ok=True)
        for path in self.folder.glob("[0-9]*.safetensors"):
            if not path.with_suffix(".json").exists():
                path.unlink(missing_ok=True)

    def delete(self) -> None:
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                path.unlink()
            self.folder.rmdir()

    def _entry(self, path: Path) -> Entry | None:
        try:
            record = json.loads(path.read_bytes())
            return Entry(int(record["step"]), record.get("val_loss"), path)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _retain(self, training: Training, step: int) -> None:
        # One further on than the run itself is damaged, or it would have been resumed from: it is not the newest.
        entries = [entry for entry in self.entries() if entry.step <= step]
        kept = {entry.step for entry in entries[-training.keep_last :]}
        if training.keep_every:
            kept |= {entry.step for entry in entries if entry.step % training.keep_every == 0}
        scored = [entry for entry in entries if entry.val_loss is not None]
        if training.keep_best and scored:
            kept.add(min(scored, key=lambda entry: entry.val_loss or 0.0).step)
        for entry in entries:
            if entry.step not in kept:
                entry.path.unlink(missing_ok=True)
                entry.path.with_suffix(".safetensors").unlink(missing_ok=True)


def _flatten(snapshot: Snapshot) -> dict[str, Tensor]:
    tensors = {f"parameters/{name}": tensor for name, tensor in snapshot.parameters.items()}
    tensors |= {f"carried/{index}": tensor for index, tensor in enumerate(snapshot.carried)}
    for moment, named in snapshot.moments.items():
        tensors |= {f"moments/{moment}/{name}": tensor for name, tensor in named.items()}
    return tensors


def _unflatten(run: str, step: int, tensors: Mapping[str, Tensor]) -> Snapshot:
    parameters: dict[str, Tensor] = {}
    moments: dict[str, dict[str, Tensor]] = {}
    carried: dict[int, Tensor] = {}
    for key, tensor in tensors.items():
        kind, _, name = key.partition("/")
        if kind == "parameters":
            parameters[name] = tensor
        elif kind == "carried":
            carried[int(name)] = tensor
        else:
            moment, _, name = name.partition("/")
            moments.setdefault(moment, {})[name] = tensor
    return Snapshot(run, step, parameters, moments, tuple(carried[index] for index in sorted(carried)))


def _write(path: Path, data: bytes) -> None:
    """All of it or nothing, on the disk when this returns."""
    temporary = path.with_suffix(path.suffix + ".tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
