"""Whole studies: which runs, in which groups, trained once, and asked together."""
