"""`python -m lmlab` is `lmlab`."""

from lmlab.apps.cli import main

main()
