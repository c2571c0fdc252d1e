import sys

import pytest
import torch

from lmlab.core.device import (
    arithmetic,
    cpu_survives_bf16,
    machine,
    parameter_dtype,
    resolve_device,
    resolve_precision,
)
from lmlab.core.errors import ConfigError

CPU = torch.device("cpu")
no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


def test_the_cpu_is_always_there():
    assert resolve_device("cpu") == CPU
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["gpu", "", "cuda:7", "CPU"])
def test_an_unknown_device_is_refused(name):
    with pytest.raises(ConfigError, match=rf"^--device must be auto, cpu or cuda; got '{name}'\.$"):
        resolve_device(name)


@no_cuda
def test_cuda_is_refused_where_there_is_none():
    with pytest.raises(ConfigError, match=r"^--device needs a CUDA device .* got 'cuda'\. Use --device cpu\.$"):
        resolve_device("cuda")


def test_auto_precision_is_that_of_the_device():
    assert resolve_precision("auto", CPU) == "fp32"
    assert resolve_precision("auto", torch.device("cuda")) == "tf32"
    assert resolve_precision("fp64", CPU) == "fp64"
    assert resolve_precision("fp32", torch.device("cuda")) == "fp32"


def test_tf32_is_refused_on_a_cpu():
    with pytest.raises(ConfigError, match=r"^training\.precision tf32 needs a CUDA device; got 'tf32'\."):
        resolve_precision("tf32", CPU)


def test_bf16_is_granted_where_a_child_process_survives_it():
    survives = cpu_survives_bf16()
    assert type(survives) is bool
    if survives:
        assert resolve_precision("bf16", CPU) == "bf16"


def test_bf16_is_refused_where_a_child_process_dies_of_it(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")  # a Python that fails whatever it is asked
    cpu_survives_bf16.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"^training\.precision bf16 does not work on this CPU; got 'bf16'\."):
            resolve_precision("bf16", CPU)
        assert resolve_precision("bf16", torch.device("cuda")) == "bf16"
    finally:
        cpu_survives_bf16.cache_clear()


def test_weights_are_double_only_in_double_precision():
    assert [parameter_dtype(p) for p in ("fp32", "tf32", "bf16")] == [torch.float32] * 3
    assert parameter_dtype("fp64") == torch.float64


@pytest.mark.parametrize(("precision", "inside"), [("tf32", "high"), ("fp32", "highest"), ("fp64", "highest")])
def test_the_setting_of_the_process_is_put_back_even_after_an_error(precision, inside):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")

    def fail() -> None:
        assert torch.get_float32_matmul_precision() == inside
        raise RuntimeError("stop")

    try:
        with pytest.raises(RuntimeError, match="stop"), arithmetic(precision, CPU):
            fail()
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_bf16_products_are_bf16_inside_only():
    if not cpu_survives_bf16():
        pytest.skip("this CPU cannot")
    x = torch.ones(4, 4)
    with arithmetic("bf16", CPU):
        assert (x @ x).dtype == torch.bfloat16
    with arithmetic("fp32", CPU):
        assert (x @ x).dtype == torch.float32
    assert (x @ x).dtype == torch.float32


def test_the_record_of_a_machine_says_what_can_change_bits():
    record = machine(CPU)
    assert record["device_type"] == "cpu"
    assert record["threads"] == torch.get_num_threads()
    assert record["torch"] == torch.__version__
    assert all(record.values())
