# Each target sets up what it needs: `make demo` or `make test` works as the first command on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MUTANTS_STAMP := $(VENV)/.mutants-installed

.PHONY: demo test test-slow test-oldest site lint bench reproduce audit fuzz mutants clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dpmoments needs Python 3.11 or newer; set PYTHON=python3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group test
	touch $(STAMP)

$(MUTANTS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --editable . --group mutants
	touch $(MUTANTS_STAMP)

demo: $(STAMP)
	$(BIN)/python examples/demo.py

# Two processes with two threads each for small matrices get in each other's way: one test took 192 seconds instead of 14.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

test: $(STAMP) lint site
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadgroup

test-slow: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadgroup -m slow --hypothesis-profile=default

# The wheel, with every library at the oldest version that pyproject.toml declares; what reads tables and what fits models.
test-oldest: $(STAMP)
	rm -rf .oldest && $(PYTHON) -m venv .oldest/venv
	.oldest/venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python tests/oldest_versions.py > .oldest/requirements.txt
	.oldest/venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir .oldest .
	.oldest/venv/bin/python -m pip install --quiet --requirement .oldest/requirements.txt .oldest/*.whl
	$(ONE_THREAD) .oldest/venv/bin/python -m pytest -n 2 -W ignore::DeprecationWarning -W ignore::FutureWarning $(OLDEST)

OLDEST := $(addprefix tests/test_,import.py rows.py sources.py guessed_types.py ledger_file.py regression.py)

# The documentation, to be read from the disk: build/site/index.html. A warning is an error.
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# Every figure of the papers and those beside them, within three hours on two cores; an interrupted run goes on where it was. `make reproduce QUICK=1` for a small run
# of ten minutes, `make reproduce REPRODUCE="--only amin-1a coinpress"` for a part, `REPRODUCE=--budget` to see what is done and what is left.
reproduce: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.papers.reproduce $(if $(QUICK),--quick) $(REPRODUCE)

audit: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.practice.audit_report

# Forged files, and new examples for the tests that `make test` runs on the same examples each time.
fuzz: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz.py
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal -m "hypothesis and not slow" --hypothesis-profile=default

# An interrupted run goes on where it was. `make mutants MUTANTS="privacy/filter --sample 0.2"` for a part, or a sample.
mutants: $(MUTANTS_STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m mutants $(MUTANTS)

clean:
	rm -rf $(VENV) .oldest .mutants build dist .pytest_cache .mypy_cache .ruff_cache
