"""Shared by all tests: steady examples, steady random inputs and one thread, whatever else the machine does."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("lmlab", deadline=None, derandomize=True, database=None, max_examples=40)
settings.load_profile("lmlab")
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_inputs() -> None:
    """Inputs that a test draws with torch.randn and the like are the same every time."""
    torch.manual_seed(0)
