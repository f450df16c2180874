# Everything a newcomer needs: `make demo` and `make test` work on a machine with Python >= 3.11 and make alone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS := plot,data
# A process a core, each on one BLAS thread: small products are not worth waking a second one.
PARALLEL := --numprocesses auto --dist loadfile

.PHONY: demo test lint coverage docs linkcheck fuzz bench bench-full reproduce clean

demo: $(VENV)/.installed
	$(BIN)/codiag demo

test: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PARALLEL)

# The suite with coverage of lines: coverage.json, and the badge in .github.
coverage: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group coverage
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term --cov-report=json
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

fuzz: $(VENV)/.installed
	$(BIN)/python -m tests.fuzz --seconds 120

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
