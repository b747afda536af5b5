# Each target sets up what it needs: `make demo` or `make test` works as the first command on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MUTANTS_STAMP := $(VENV)/.mutants-installed

.PHONY: demo test tests lint-and-site test-fast test-slow test-oldest test-newest site lint readme bench reproduce audit fuzz mutants clean words notebooks package

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

# Whatever the shell says: without Python's caches every program that a test starts compiles the library anew.
unexport PYTHONDONTWRITEBYTECODE

# The tests run while the checkers and the site are made: the last file of tests leaves a core idle.
test: $(STAMP)
	$(MAKE) --jobs 2 tests lint-and-site

tests: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadfile

lint-and-site: lint site

# For every commit: what takes long is left out.
test-fast: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not long" tests

test-slow: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal -m "slow or hypothesis" --hypothesis-profile=default

# The wheel in an environment of its own, with every library at the oldest version that pyproject.toml declares, or at the newest there is:
# what reads tables, what makes releases, what is done with them, and every example in a docstring. `make test-newest PYTHON=python3.13` for one Python of several.
test-oldest test-newest: test-%:
	rm -rf .$* && $(PYTHON) -m venv .$*/venv
	.$*/venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.$*/venv/bin/python tests/support/wheel_requirements.py $* > .$*/requirements.txt
	.$*/venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir .$* .
	.$*/venv/bin/python -m pip install --quiet --requirement .$*/requirements.txt .$*/*.whl
	$(ONE_THREAD) .$*/venv/bin/python -m pytest -n 2 --dist loadfile $(OPTIONS_OF_$*) $(OF_THE_WHEEL) --pyargs dpmoments

OF_THE_WHEEL := $(addprefix tests/,contracts/test_import.py rows/test_rows.py rows/test_sources.py rows/test_guessed_types.py privacy/test_ledger_file.py spending/test_release.py \
  releases/test_release_file.py analysis/test_regression.py estimators/test_estimators.py plots/test_plots.py reporting/test_report.py cli/test_cli.py)
# The page beside scikit-learn shows OpenDP as it is today; the newest Click, which is not ours to choose, warns the oldest Typer.
OPTIONS_OF_oldest := -W ignore::DeprecationWarning -W ignore::FutureWarning --deselect tests/estimators/test_estimators.py::test_the_page_runs \
  --deselect tests/contracts/test_import.py::test_the_command_imports_what_it_runs

# The reader site and, below it, the evidence site, to be read from the disk: build/site/index.html. A warning is an error.
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --config-file mkdocs-evidence.yml

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell src docs README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md
	$(BIN)/mypy
	$(BIN)/basedpyright

# The words notebooks of every message, for every audience, in tests/golden/words: read the difference.
words: $(STAMP)
	$(BIN)/python tests/base/test_words.py

# What the notebooks of docs print.
notebooks: $(STAMP)
	$(BIN)/python -m tools.documentation.notebooks

# The figures of README.md and every screenshot (Chromium needed).
readme: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.practice.readme
	$(BIN)/python -m tools.documentation.screenshots

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# Every figure of the papers and those beside them: five and a half hours on two cores; an interrupted run goes on where it was. `make reproduce QUICK=1` for a small
# run of a quarter of an hour, `make reproduce REPRODUCE="--only amin-1a coinpress"` for a part, `REPRODUCE=--budget` to see what is done and what is left.
reproduce: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.papers.reproduce $(if $(QUICK),--quick) $(REPRODUCE)

audit: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.practice.audit_report

# Forged files, and new examples for the tests that `make test` runs on the same examples each time.
fuzz: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz.py
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal -m "hypothesis and not slow" --hypothesis-profile=default

# `make mutants MUTANTS="--fresh 80 --seed 1 noise"` judges a fresh sample; an interrupted one goes on where it was. Alone it writes the report.
mutants: $(MUTANTS_STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m tools.mutants $(MUTANTS)

# The wheel and the source archive, checked as a package index would.
package: $(STAMP)
	$(BIN)/python -m pip install --quiet --group package
	rm -rf dist && $(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

clean:
	rm -rf $(VENV) .oldest .newest .mutants build dist .pytest_cache .mypy_cache .ruff_cache
