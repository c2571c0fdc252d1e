"""Tasks: what a model is trained on, and how that is counted."""

from lmlab.data import arithmetic  # importing registers the tasks

__all__ = ["arithmetic"]
