"""Which device and which arithmetic; what they can do here; what to write down about them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch

from lmlab import __version__
from lmlab.core.errors import ConfigError

DeviceName = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "fp32", "tf32", "bf16", "fp64"]


def resolve_device(name: str = "auto") -> torch.device:
    """`auto` is CUDA where there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError("--device", "must be auto, cpu or cuda", name)
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device", "needs a CUDA device that this PyTorch can use", name, "Use --device cpu.")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def resolve_precision(precision: Precision, device: torch.device) -> Precision:
    """`auto` is fp32 on a CPU and tf32 on CUDA. What the device cannot do is refused before any work."""
    if precision == "auto":
        return "tf32" if device.type == "cuda" else "fp32"
    if precision == "tf32" and device.type != "cuda":
        raise ConfigError("training.precision", "tf32 needs a CUDA device", precision, "Use fp32 on a CPU.")
    if precision == "bf16" and device.type == "cpu" and not cpu_survives_bf16():
        raise ConfigError("training.precision", "bf16 does not work on this CPU", precision, "Use fp32.")
    return precision


@cache
def cpu_survives_bf16() -> bool:
    """Some virtual machines advertise AMX and die of an illegal instruction: ask a child process to try."""
    code = "import torch; a = torch.ones(2, 512, 512, dtype=torch.bfloat16); (a @ a + a[0] @ a[1]).sum().item()"
    trial = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return trial.returncode == 0


def parameter_dtype(precision: Precision) -> torch.dtype:
    """Weights and optimizer moments are fp32 in every precision but fp64."""
    return torch.float64 if precision == "fp64" else torch.float32


@contextmanager
def arithmetic(precision: Precision, device: torch.device) -> Iterator[None]:
    """Matrix products inside this block use the precision; the process-wide setting is put back afterwards."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def machine(device: torch.device) -> dict[str, Any]:
    """What to record with a run: hardware, versions and the settings that can change bits."""
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "device_type": device.type,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "lmlab": __version__,
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    """Linux does not tell Python the name of its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "cpu"
