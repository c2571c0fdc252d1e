"""R runs of equal shape as one program: parameters are a matrix (R, P), a step updates every row.

The model is a plain module for one run. `torch.func.functional_call` gives it a row's parameters, `vmap` maps it
over the rows, and one backward of the summed losses gives every row its own gradient, because no row's loss
depends on another row. A run alone is R = 1 without `vmap`.

Everything that changes from step to step (step number, learning rate, dropout key, batch rows) is a tensor on
the device, so that a step can be captured once and replayed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from math import prod

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from lmlab.core.device import Precision, arithmetic, parameter_dtype
from lmlab.core.randomness import fold, stream
from lmlab.data.task import Family, Split
from lmlab.engine.losses import example_accuracies, example_losses, example_weights, reduce
from lmlab.engine.measures import Measures
from lmlab.engine.optimizers import MOMENTS, Hyper, clipped, propose
from lmlab.engine.order import BatchOrder
from lmlab.engine.schedules import factor
from lmlab.engine.spec import RunSpec
from lmlab.models.model import Keyed

ALIGNMENT = 4
"""Parameters start at multiples of 16 bytes, which matrix kernels load fastest."""
EVALUATION_LOGITS = 2**26
"""Logits of all runs together that are made at once in an evaluation: 256 MiB in fp32."""


class Layout:
    """Where each named parameter lies in a row of the matrix (R, P). Tied weights have one name and one place."""

    def __init__(self, model: nn.Module) -> None:
        self.shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
        sizes = [prod(shape) for shape in self.shapes.values()]
        self._padded = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
        self._starts = [0, *accumulate(self._padded)]
        self.size = self._starts[-1]

    def views(self, row: Tensor) -> dict[str, Tensor]:
        """(…, P) → {name: (…, *shape)}, differentiable. One split, so that its backward is one concatenation."""
        pieces = row.split(self._padded, dim=-1)
        return {
            name: piece[..., : prod(shape)].unflatten(-1, shape) if shape else piece[..., 0]
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }

    def pack(self, named: Mapping[str, Tensor]) -> Tensor:
        """{name: shape} → (P,)"""
        first = next(iter(named.values()))
        row = torch.zeros(self.size, dtype=first.dtype)
        for (name, shape), start in zip(self.shapes.items(), self._starts, strict=False):
            row[start : start + prod(shape)] = named[name].detach().reshape(-1).cpu()
        return row

    def unpack(self, row: Tensor) -> dict[str, Tensor]:
        """(P,) → {name: shape}, as tensors of their own."""
        return {name: view.detach().clone().contiguous() for name, view in self.views(row.cpu()).items()}


@dataclass(frozen=True)
class Snapshot:
    """All that is needed to go on with a run: randomness is stateless, so weights, moments and the step suffice."""

    run: str
    step: int
    parameters: dict[str, Tensor]
    moments: dict[str, dict[str, Tensor]]
    carried: tuple[Tensor, ...] = ()
    """The recurrent state that the next batch starts from, where it is carried."""


@dataclass(frozen=True)
class Readout:
    """What one evaluation of the stack says; the first axis is the run."""

    step: int
    measures: Measures
    losses: Tensor  # (R, K)
    accuracies: Tensor  # (R, K)
    norms: Tensor  # (R,) ‖θ‖₂
    gradient_norms: Tensor  # (R,) of the last update, before clipping
    rates: Tensor  # (R,) of the last update
    batch_losses: Tensor  # (R,) of the last update
    diverged_at: Tensor  # (R,) the update that was not finite, 0 while healthy


def shape_of(spec: RunSpec, split: Split) -> str:
    """Runs with equal shapes can share a stack: equal in all but seeds, per-run numbers and choice of rows."""
    task = {name: value for name, value in spec.task.to_json().items() if name not in spec.task.only_rows}
    training = {name: value for name, value in spec.training.to_json().items() if name not in spec.training.per_run}
    training["steps"] = spec.total_steps(len(split.train_rows))
    if spec.training.carry or not (spec.training.eval_period and spec.training.checkpoint_period):
        training["per_epoch"] = spec.batches_per_epoch(len(split.train_rows))
    return json.dumps([task, spec.model.to_json(), training], sort_keys=True)


class Stack:
    """The state of R runs and the two things one does with them: `update` and `evaluate`."""

    def __init__(
        self,
        specs: Sequence[RunSpec],
        splits: Sequence[Split],
        device: torch.device,
        precision: Precision,
        vectorised: bool,
        resume: Sequence[Snapshot] = (),
    ) -> None:
        self.specs, self.device = tuple(specs), device
        self.precision: Precision = precision
        self.vectorised = vectorised or len(specs) > 1
        self.training = specs[0].training
        self.family: Family = specs[0].task.family
        self.total = specs[0].total_steps(len(splits[0].train_rows))
        dtype = parameter_dtype(precision)

        members = [spec.build_model(dtype) for spec in specs]
        self.model = members[0].to(device)
        self.layout = Layout(self.model)
        parameters = [snapshot.parameters for snapshot in resume] or [dict(m.named_parameters()) for m in members]
        self.theta = torch.stack([self.layout.pack(named) for named in parameters]).to(device)
        self.moments = {name: torch.zeros_like(self.theta) for name in MOMENTS[self.training.optimizer]}
        if resume:
            self.moments = {
                name: torch.stack([self.layout.pack(snapshot.moments[name]) for snapshot in resume]).to(device)
                for name in self.moments
            }
        self.step = torch.tensor(resume[0].step if resume else 0, device=device)
        self.hyper = _hyper(specs, dtype, device)

        runs = len(specs)
        self.healthy = torch.ones(runs, 1, dtype=torch.bool, device=device)
        self.diverged_at = torch.zeros(runs, dtype=torch.int64, device=device)
        self.last = torch.zeros(3, runs, dtype=torch.float64, device=device)  # loss, gradient norm, learning rate

        self.dropout_sites = [name for name, module in self.model.named_modules() if isinstance(module, Keyed)]
        self.dropout_keys = torch.tensor([stream(spec.seeds.dropout, "dropout") for spec in specs], device=device)
        self.vary_keys = torch.tensor([stream(spec.seeds.order, "order", "vary") for spec in specs], device=device)
        self.order = BatchOrder(
            [split.train_rows for split in splits],
            self.training.batch_size,
            [spec.batches_per_epoch(len(split.train_rows)) for spec, split in zip(specs, splits, strict=True)],
            [spec.seeds.order for spec in specs],
            device,
            in_sequence=self.training.carry,
        )
        self.carried = self._blank_state()
        for mine, theirs in zip(
            self.carried, zip(*(snapshot.carried for snapshot in resume), strict=True), strict=False
        ):
            mine.copy_(torch.stack(theirs))
        self.per_epoch = specs[0].batches_per_epoch(len(splits[0].train_rows))
        self.table = splits[0].table.to(device)
        task = specs[0].task
        chunk = max(1, EVALUATION_LOGITS // (runs * self.table.length * task.symbols))
        self.measures = Measures(splits, self.table, device, self.family, task.symbol_bytes(), chunk)
        self.block = self.order.block(0)

    def __len__(self) -> int:
        return len(self.specs)

    def prepare(self, step: int) -> None:
        """Make the rows of the block that contains this step; in place, because a captured step reads this tensor."""
        self.block.copy_(self.order.block(step - step % self.order.block_steps))

    def update(self) -> None:
        """One step of every run: the whole of what is captured on a GPU."""
        self.model.train()
        update = self.step + 1
        rows = self.block.index_select(0, (self.step % self.order.block_steps).reshape(1))[0]
        # A key of the run's own for what a table varies: it does not depend on the neighbours in the stack.
        batch = self.table.at(rows.clamp(min=0), fold(self.vary_keys, update).unsqueeze(1))
        weights = (batch.weights * (rows >= 0).unsqueeze(-1)).to(self.theta.dtype)
        theta = self.theta.detach().requires_grad_()
        with arithmetic(self.precision, self.device):
            # A reader who begins an epoch has no memory of the last one.
            carried = [torch.where(self.step % self.per_epoch == 0, 0.0, state) for state in self.carried]
            keys = fold(self.dropout_keys, update)
            losses, after = self._losses(theta, keys, batch.inputs, batch.targets, weights, carried)
        (gradient,) = torch.autograd.grad(losses.sum(), theta)
        with torch.no_grad():
            gradient, norm = clipped(gradient, self.hyper.clip)
            rate = self.hyper.lr * factor(self.training.schedule, update, self.training.warmup, self.total).to(theta)
            new, moments = propose(
                self.training.optimizer, self.theta, gradient, self.moments, self.hyper, rate, update
            )
            finite = torch.isfinite(losses.detach()).unsqueeze(1) & torch.isfinite(norm)
            finite &= torch.isfinite(new).all(1, keepdim=True)
            self.diverged_at.copy_(torch.where((self.healthy & ~finite).squeeze(1), update, self.diverged_at))
            self.healthy &= finite
            # A diverged run is frozen by selection: with a zero learning rate 0 · nan would still spread.
            self.theta.copy_(torch.where(self.healthy, new, self.theta))
            for name, moment in moments.items():
                self.moments[name].copy_(torch.where(self.healthy, moment, self.moments[name]))
            for state, new_state in zip(self.carried, after, strict=True):
                state.copy_(new_state.detach())
            self.last.copy_(torch.stack((losses.detach(), norm.squeeze(1), rate.squeeze(1))))
            self.step += 1

    def evaluate(self) -> Tensor:
        """Losses and accuracies of every slice and the numbers of the last update, in one tensor (read it once).

        → (R, 2K + 5) float64: K losses, K accuracies, ‖θ‖₂, loss, gradient norm, rate, diverged_at
        """
        self.model.eval()
        measures = self.measures
        sums = torch.zeros(2, len(self), len(measures.names), dtype=torch.float64, device=self.device)
        with torch.no_grad(), arithmetic(self.precision, self.device):
            for part in measures.parts:
                batch = self.table.at(measures.rows[part])
                shared = (batch.inputs, batch.targets, batch.weights.to(self.theta.dtype))
                for kind, values in enumerate(self._measure(self.theta, *shared)):
                    sums[kind] += torch.einsum("rkn,rn->rk", measures.weights[:, :, part], values.double())
            means = sums / measures.totals
            norm = self.theta.double().norm(dim=1, keepdim=True)
            return torch.cat((means[0], means[1], norm, self.last.T, self.diverged_at.unsqueeze(1)), dim=1)

    def readout(self, step: int, numbers: Tensor) -> Readout:
        """The tensor of `evaluate`, taken apart on the host."""
        numbers, count = numbers.cpu(), len(self.measures.names)
        norm, loss, gradient, rate, diverged = numbers[:, 2 * count :].unbind(1)
        return Readout(
            step,
            self.measures,
            numbers[:, :count],
            numbers[:, count : 2 * count],
            norm,
            gradient,
            rate,
            loss,
            diverged.long(),
        )

    def snapshot(self, member: int, step: int) -> Snapshot:
        return Snapshot(
            self.specs[member].run_id,
            step,
            self.layout.unpack(self.theta[member]),
            {name: self.layout.unpack(moment[member]) for name, moment in self.moments.items()},
            tuple(state[member].cpu().clone() for state in self.carried),
        )

    def _blank_state(self) -> list[Tensor]:
        """Zeros for the state of all runs, (R, B, …) for each tensor of the model's; nothing unless it is carried."""
        if not self.training.carry:
            return []
        with torch.no_grad():
            _, state = self.model(torch.zeros(self.order.width, 1, dtype=torch.int64, device=self.device))
        self._layers = [len(layer) for layer in state]
        return [tensor.new_zeros(len(self), *tensor.shape) for layer in state for tensor in layer]

    def _grouped(self, tensors: Sequence[Tensor]) -> list[tuple[Tensor, ...]] | None:
        """The model's state out of its tensors in a row."""
        if not tensors:
            return None
        left = iter(tensors)
        return [tuple(islice(left, count)) for count in self._layers]

    def _losses(
        self, theta: Tensor, keys: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor, carried: Sequence[Tensor]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Each run's mean loss on its own batch, and the state to carry on.

        theta (R, P), keys (R,), inputs … (R, B, S), carried (R, B, …) each → (R,), (R, B, …) each
        """

        def one(
            row: dict[str, Tensor], key: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor, *before: Tensor
        ) -> tuple[Tensor, tuple[Tensor, ...]]:
            keys = {f"{site}.key": key for site in self.dropout_sites}
            logits, state = functional_call(self.model, {**row, **keys}, (inputs, self._grouped(before)))
            losses = example_losses(logits.to(weights.dtype), targets, weights)
            after = tuple(tensor for layer in state for tensor in layer) if before else ()
            return reduce(losses, example_weights(weights, self.family), "mean"), after

        if self.vectorised:
            return vmap(one)(self.layout.views(theta), keys, inputs, targets, weights, *carried)
        first = (part[0] for part in (keys, inputs, targets, weights, *carried))
        loss, after = one(self.layout.views(theta[0]), *first)
        return loss.unsqueeze(0), tuple(state.unsqueeze(0) for state in after)

    def _measure(self, theta: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and accuracy of each example, shared by all runs.   inputs … (N, S) → (R, N), (R, N)"""

        def one(row: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
            logits = functional_call(self.model, row, inputs)[0].to(weights.dtype)
            accuracies = example_accuracies(logits, targets, weights, self.family)
            return example_losses(logits, targets, weights), accuracies

        if self.vectorised:
            return vmap(one)(self.layout.views(theta))
        losses, accuracies = one(self.layout.views(theta[0]))
        return losses.unsqueeze(0), accuracies.unsqueeze(0)


def _hyper(specs: Sequence[RunSpec], dtype: torch.dtype, device: torch.device) -> Hyper:
    def column(values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=dtype, device=device).unsqueeze(1)

    trainings = [spec.training for spec in specs]
    return Hyper(
        lr=column([t.lr for t in trainings]),
        beta1=column([t.betas[0] for t in trainings]),
        beta2=column([t.betas[1] for t in trainings]),
        momentum=column([t.momentum for t in trainings]),
        weight_decay=column([t.weight_decay for t in trainings]),
        clip=column([t.clip or float("inf") for t in trainings]),
    )
