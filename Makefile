# Two commands do all the set-up: `make demo` and `make test`.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.installed

.PHONY: setup demo test check bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "lmlab needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# Trains an LSTM and a GPT, two seeds each, and reports when they memorise and when they generalise.
demo: setup
	$(BIN)/lmlab study run demo
	$(BIN)/lmlab study report demo

test: setup
	$(BIN)/python -m pytest -n auto

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest -q tests/test_layers.py

# Milliseconds per run and step on this machine.
bench: setup
	$(BIN)/python -m benchmarks.step_time

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis *.egg-info
