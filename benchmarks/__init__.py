"""Measurements, one theme a file. None of them is a test; results and their commands go to docs/log.md."""
