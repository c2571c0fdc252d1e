"""Keeping runs: the lab folder, its database, checkpoints, and the numbers asked of them."""
