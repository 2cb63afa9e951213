# All commands run in .venv, which is created with the default Python and the pinned versions in constraints/. `make demo` and
# `make test` need nothing else. Other Pythons have separate environments: `make test PYTHON=python3.13` runs in .venv-3.13.

version = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)

DEFAULT := $(if $(call version,python3.11),python3.11,python3)
PYTHON ?= $(DEFAULT)
VERSION := $(call version,$(PYTHON))
VENV := $(if $(filter $(VERSION),$(call version,$(DEFAULT))),.venv,.venv-$(VERSION))
BIN := $(VENV)/bin
CONSTRAINTS := $(or $(wildcard constraints/python$(VERSION).txt),constraints/python3.12.txt)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
QUICK := decorator contract learn closed_form dataset diagnostics arviz imports public packaging

ifeq ($(VERSION),)
$(error cannot run $(PYTHON). Choose another Python, as in: make test PYTHON=/path/to/python)
endif

.PHONY: demo test test-quick test-slow test-long lint format docs tutorials clean help

help:  ## list the make commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: $(VENV)/ready  ## take a tour: compare rules, stop with a certificate, kill an agent and continue
	$(BIN)/homdp demo

test: lint  ## run the linters, then the test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-quick: $(VENV)/dev  ## run the part of the test suite that CI runs with other Pythons
	$(BIN)/python -m pytest -n 2 --dist loadfile $$(find tests $(patsubst %,-name test_%.py -o,$(QUICK)) -false)

test-slow: $(VENV)/dev  ## run the slow tests (minutes each) and the tutorials
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'slow and not long' --ignore tests/golden
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 XLA_FLAGS= $(BIN)/python -m pytest -n 2 --dist worksteal -m slow tests/golden

test-long: $(VENV)/dev  ## run the tests that take too long for CI
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/python -m pytest -n 2 --dist worksteal -m long

lint: $(VENV)/dev  ## run ruff, mypy, import-linter and the check of words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python docs/check_words.py

format: $(VENV)/dev  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/dev  ## build the documentation in docs/_build/html; warnings are errors
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

tutorials: $(VENV)/dev  ## run the notebooks and save their outputs
	$(BIN)/python tutorials/execute.py

clean:  ## remove environments and build products
	rm -rf .venv .venv-* build dist docs/_build docs/api/generated docs/tutorials *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

ifneq ($(call version,$(BIN)/python),$(VERSION))
.PHONY: $(VENV)/made # the environment does not exist, or belongs to another Python
endif

$(VENV)/made:
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

$(VENV)/ready: $(VENV)/made pyproject.toml $(CONSTRAINTS)
	@echo "Installing homdp_ppl in $(VENV). This takes a few minutes."
	$(INSTALL) --editable .
	touch $@

$(VENV)/dev: $(VENV)/ready
	@echo "Installing the development tools in $(VENV). This takes a few minutes."
	$(INSTALL) --editable '.[dev]'
	touch $@
