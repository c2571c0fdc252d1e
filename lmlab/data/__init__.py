"""Tasks: what a model is trained on, and how that is counted."""

from lmlab.data import arithmetic, text, transcripts  # importing registers the tasks

__all__ = ["arithmetic", "text", "transcripts"]
