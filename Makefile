# Everything a newcomer needs: `make demo` and `make test` work on a machine with Python >= 3.11 and make alone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS := plot,data
# A process a core, each on one BLAS thread: small products are not worth waking a second one.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal
ALL := --doctest-modules tests src

.PHONY: demo test test-all lint coverage docs linkcheck fuzz bench bench-full reproduce clean

demo: $(VENV)/.installed
	$(BIN)/codiag demo

test: $(VENV)/.installed
	$(PYTEST) -m "not slow"

# Examples in docstrings, pages of the documentation, simulations and ten times the inputs of the fuzzer, too.
test-all: $(VENV)/.installed
	HYPOTHESIS_PROFILE=all $(PYTEST) $(ALL)

# The whole suite with coverage of lines: coverage.json, and the badge in .github.
coverage: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group coverage
	$(PYTEST) $(ALL) --cov --cov-report=term --cov-report=json
	$(BIN)/python .ci/badge.py coverage.json .github/coverage.svg

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/numpydoc lint $$(git ls-files 'src/*.py')
	$(BIN)/mypy

# The site, gallery included, into docs/_build/html; a warning is an error.
docs: $(VENV)/.installed-docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs auto docs docs/_build/html

# Links to other sites, which needs the network.
linkcheck: $(VENV)/.installed-docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --builder linkcheck -D plot_gallery=0 --jobs auto docs docs/_build/linkcheck

# Inputs that were never tried before; a failure prints how to run it again.
fuzz: $(VENV)/.installed
	HYPOTHESIS_PROFILE=fuzz $(PYTEST) tests/fuzz

reproduce: $(VENV)/.installed
	$(BIN)/python -m experiments run all --quick --fresh --jobs 2 --out reports

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

bench-full: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks --full

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "codiag needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Set PYTHON=python3.12, say.")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[$(EXTRAS)]" --group dev
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group bench
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

clean:
	rm -rf $(VENV) .venv-lowest .venv-wheel build dist reports codiag-demo.png .coverage coverage.json docs/_build docs/_figures docs/gallery docs/api/generated docs/benchmarks
