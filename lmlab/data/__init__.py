"""Tasks: what a model is trained on, and how that is counted."""
