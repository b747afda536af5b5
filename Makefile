# Each target sets up what it needs: `make demo` or `make test` works as the first command on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-slow lint bench audit fuzz clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dpmoments needs Python 3.11 or newer; set PYTHON=python3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group test
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP) lint
	$(BIN)/python -m pytest -n 2

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks

audit: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.practice.audit_report

fuzz: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
