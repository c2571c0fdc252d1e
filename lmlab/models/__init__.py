"""Language models from scratch: plain modules written for one run, behind one contract (`models.model`)."""

from lmlab.models import decoder, recurrent  # importing registers the models

__all__ = ["decoder", "recurrent"]
