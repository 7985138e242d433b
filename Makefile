# Every job is one command, here and in CI. `make compare` and `make test` set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGE := $(VENV)/.package-installed
DEVELOPMENT := $(VENV)/.development-installed

.DEFAULT_GOAL := help
.PHONY: help setup compare test test-full lint types bench docs mixers differential

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(DEVELOPMENT)  ## everything for development, in .venv

compare: $(PACKAGE)  ## is differential attention better than softmax, and either than a uniform average?
	$(BIN)/headstock compare softmax differential uniform --task crossing --task text --out runs/first-comparison

test: $(DEVELOPMENT)  ## the tests, under 15 minutes on two cores
	$(BIN)/pytest -n 2 --dist worksteal -m "not full"

test-full: $(DEVELOPMENT)  ## the tests and the longer checks
	$(BIN)/pytest -n 2 --dist worksteal -m "full or not full"

lint: $(DEVELOPMENT)  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEVELOPMENT)  ## mypy, strict
	$(BIN)/mypy

bench: $(DEVELOPMENT)  ## speed of training and of mixing as ratios, false claims by simulation, sizes of compiled programs: what docs/performance.md, docs/statistics.md and docs/studies.md print
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/training.py --matrix
	$(BIN)/python benchmarks/verdicts.py --families 2000
	$(BIN)/python benchmarks/pooled_seeds.py
	$(BIN)/python benchmarks/mixing.py
	$(BIN)/python benchmarks/hooks.py
	$(BIN)/python benchmarks/programs.py

docs: $(DEVELOPMENT)  ## run every command and snippet of README and docs/
	$(BIN)/pytest -n 2 tests/test_docs.py

mixers: $(DEVELOPMENT)  ## write docs/mixers.md anew from the code
	$(BIN)/python docs/write_mixers.py

differential: $(DEVELOPMENT)  ## write docs/results/differential.md anew from the studies' answers
	$(BIN)/python docs/write_differential.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Headstock needs Python 3.11 or newer, and $(PYTHON) is older: run make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(PACKAGE): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(DEVELOPMENT): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(PACKAGE) $@
