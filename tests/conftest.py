"""Shared by all tests: steady examples and one thread, so that a result does not depend on the machine's load."""

import torch
from hypothesis import settings

settings.register_profile("lmlab", deadline=None, derandomize=True, database=None, max_examples=40)
settings.load_profile("lmlab")
torch.set_num_threads(1)
