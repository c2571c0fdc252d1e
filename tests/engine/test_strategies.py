import pytest
import torch

from lmlab.engine.strategies import resolve_strategy


@pytest.mark.parametrize(("device", "chosen"), [("cpu", "loop"), ("cuda", "stacked")])
def test_stacks_are_for_gpus_unless_asked(device, chosen):
    assert resolve_strategy("auto", torch.device(device)) == chosen
    assert resolve_strategy("loop", torch.device(device)) == "loop"
    assert resolve_strategy("stacked", torch.device(device)) == "stacked"
