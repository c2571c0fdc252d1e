"""RunSpec = task + model + training + seeds: everything that decides a run's result, and its identity.

The run id is a hash of the spec: the same spec is the same run, and a finished one is never trained twice. The
device, the strategy and the lab are not part of it. `training.precision="auto"` is a value of its own: it stands
for the device's default, which is recorded with the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from math import ceil, isfinite
from typing import Annotated, Any, ClassVar, Self

import torch
from pydantic import BeforeValidator, SerializeAsAny, model_validator

from lmlab.core.config import Config, Json, as_tuple, nested
from lmlab.core.device import Precision
from lmlab.core.errors import ConfigError, UnknownName
from lmlab.data.task import Task, tasks
from lmlab.engine.optimizers import OptimizerName
from lmlab.engine.schedules import Schedule
from lmlab.models.model import LanguageModel, ModelConfig, build, models

SCHEMA = 1
"""Raised when the meaning of an existing field or default changes; it is part of every run id."""

MAX_SEED = 2**63 - 1


class Training(Config):
    """How a run is trained, evaluated and saved. Defaults are those of document 000."""

    section: ClassVar[str] = "training"
    # Numbers a stack keeps per run; all other fields are shared by a stack.
    per_run: ClassVar[frozenset[str]] = frozenset({"lr", "betas", "momentum", "weight_decay", "clip"})

    steps: int = 10_001
    """T, updates; ignored when `epochs` is above 0."""
    epochs: float = 0.0
    """Passes over the training set; 0 counts in steps instead."""
    batch_size: int = 512
    """B; a training set of at most B is one full batch."""
    drop_last: bool = False
    """Leave out the last, shorter batch of an epoch."""
    carry: bool = False
    """Recurrent models only: a batch goes on where the last one ended, with its state (truncated back-propagation)."""
    precision: Precision = "auto"
    """fp32 on a CPU and tf32 on CUDA when auto; or fp32, tf32, bf16, fp64."""
    optimizer: OptimizerName = "adamw"
    lr: float = 1e-3
    betas: Annotated[tuple[float, ...], BeforeValidator(as_tuple)] = (0.9, 0.999)
    """Decay of Adam's first and second moment."""
    momentum: float = 0.9
    """Of the optimizer `momentum`."""
    weight_decay: float = 1.0
    clip: float = 1.0
    """Largest gradient norm of a run; 0 switches clipping off."""
    schedule: Schedule = "constant"
    warmup: int = 0
    """Updates over which the learning rate rises linearly."""
    eval_first: int = 100
    """Every step up to this one is evaluated …"""
    eval_period: int = 100
    """… and every multiple of this one (0: the end of every epoch); step 0 and the last step always."""
    checkpoint_period: int = 1000
    """Steps between checkpoints (0: one after every epoch); the last step always has one."""
    keep_last: int = 1
    """How many of the newest checkpoints stay."""
    keep_best: bool = False
    """The checkpoint with the lowest validation loss stays too."""
    keep_every: int = 0
    """Checkpoints at multiples of this step stay too; 0 keeps none of them."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        at_least = {
            "steps": 1, "batch_size": 1, "warmup": 0, "eval_first": 0, "eval_period": 0,
            "checkpoint_period": 0, "keep_last": 1, "keep_every": 0,
        }  # fmt: skip
        for name, least in at_least.items():
            if not least <= getattr(self, name) <= 10**9:
                raise ConfigError(self.field(name), f"must be between {least} and 10⁹", getattr(self, name))
        for name in ("lr", "weight_decay", "clip", "epochs", "momentum"):
            value = getattr(self, name)
            if not isfinite(value) or value < 0:
                raise ConfigError(self.field(name), "must be a finite number, 0 or more", value)
        if self.epochs > 1e6:
            raise ConfigError(self.field("epochs"), "must be at most 10⁶", self.epochs)
        if self.lr == 0:
            raise ConfigError(self.field("lr"), "must be above 0", self.lr, "Try 0.001.")
        if self.momentum >= 1:
            raise ConfigError(self.field("momentum"), "must be below 1", self.momentum, "Try 0.9.")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigError(
                self.field("betas"), "must be two numbers from 0 to below 1", list(self.betas), "Try [0.9,0.999]."
            )
        return self

    def is_evaluated(self, step: int, total: int, per_epoch: int) -> bool:
        """Step 0, the first ones, every multiple of the period, the last."""
        return step <= self.eval_first or step % (self.eval_period or per_epoch) == 0 or step == total

    def is_saved(self, step: int, total: int, per_epoch: int) -> bool:
        return (step > 0 and step % (self.checkpoint_period or per_epoch) == 0) or step == total


class Seeds(Config):
    """Where each kind of chance comes from. One seed sets all four; each can be set alone."""

    section: ClassVar[str] = "seeds"

    split: int = 0
    """Which examples are trained on."""
    init: int = 0
    """Initial weights."""
    order: int = 0
    """Order of the examples in each epoch."""
    dropout: int = 0
    """Dropout masks."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in type(self).model_fields:
            if not 0 <= getattr(self, name) <= MAX_SEED:
                raise ConfigError(self.field(name), "must be between 0 and 2⁶³ − 1", getattr(self, name))
        return self

    @classmethod
    def all(cls, seed: int) -> Seeds:
        return cls(split=seed, init=seed, order=seed, dropout=seed)


class RunSpec(Config):
    """One run, completely described. Frozen, JSON, hashed."""

    task: SerializeAsAny[Task]
    model: SerializeAsAny[ModelConfig]
    training: Training = Training()
    seeds: Seeds = Seeds()

    @model_validator(mode="before")
    @classmethod
    def _pick_classes(cls, data: Any) -> Any:
        data = dict(data)
        for section, registry in (("task", tasks), ("model", models)):
            part = data.get(section)
            if isinstance(part, Mapping):
                data[section] = registry[part.get("name")](**part)
        for section, kind in (("training", Training), ("seeds", Seeds)):
            if isinstance(data.get(section), Mapping):
                data[section] = kind(**data[section])
        return data

    @property
    def run_id(self) -> str:
        """Sixteen hexadecimal digits of the SHA-256 of the spec's identity."""
        text = json.dumps({"schema": SCHEMA, **self.identity()}, sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:16]

    @model_validator(mode="after")
    def _check_carry(self) -> Self:
        if self.training.carry and self.model.name == "gpt":
            raise ConfigError(
                "training.carry", "needs a recurrent model; attention's state grows", self.model.name, "Leave it out."
            )
        return self

    def identity(self) -> Json:
        return {name: getattr(self, name).identity() for name in type(self).model_fields}

    def given(self) -> Json:
        return {name: getattr(self, name).given() for name in type(self).model_fields}

    def build_model(self, dtype: torch.dtype = torch.float32) -> LanguageModel:
        """The model with its initial weights."""
        task = self.task
        return build(self.model, task.symbols, task.length, task.padding, seed=self.seeds.init, dtype=dtype)

    @property
    def seed(self) -> int:
        """The seed a table shows: that of the initial weights (all four are equal unless set apart)."""
        return self.seeds.init

    def override(self, changes: Mapping[str, Any]) -> RunSpec:
        """A spec with dotted fields changed: {"model.width": 64}. What follows from them is derived anew."""
        sections = self.given()
        for section, fields in nested(changes).items():
            if section not in sections:
                raise UnknownName("section", section, sections)
            if fields.get("name", sections[section].get("name")) != sections[section].get("name"):
                sections[section] = {}  # another task or model starts from its own defaults
            for one, other in (("steps", "epochs"), ("epochs", "steps")):
                if section == "training" and one in fields and other not in fields:
                    sections[section].pop(other, None)  # the two count the same thing: the last word wins
            sections[section] = {**sections[section], **fields}
        return RunSpec(**sections)

    def with_seed(self, seed: int, keep: frozenset[str] = frozenset()) -> RunSpec:
        """The same run with another seed for everything but the seeds named in `keep`."""
        seeds = Seeds(**{**self.seeds.to_json(), **{name: seed for name in Seeds.model_fields if name not in keep}})
        return RunSpec(task=self.task, model=self.model, training=self.training, seeds=seeds)

    def total_steps(self, train_size: int) -> int:
        """T: `steps`, or `epochs` in updates for a training set of this size."""
        if not self.training.epochs:
            return self.training.steps
        return max(1, ceil(round(self.training.epochs * self.batches_per_epoch(train_size), 9)))

    def batches_per_epoch(self, train_size: int) -> int:
        """Updates per pass over the training set."""
        whole, rest = divmod(train_size, self.training.batch_size)
        only_whole = self.training.drop_last or self.training.carry
        if only_whole and whole == 0:
            cause = "carry" if self.training.carry else "drop_last"
            raise ConfigError(
                "training.batch_size",
                f"must be at most the training set ({train_size}) when training.{cause} is set",
                self.training.batch_size,
            )
        return whole if only_whole or not rest else whole + 1
