# Everything runs in .venv, made by the default Python from the pinned versions in constraints/. `make demo` and `make test` need
# nothing else. Another Python has an environment of its own: `make test PYTHON=python3.13` runs in .venv-3.13.

version = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)

DEFAULT := $(if $(call version,python3.11),python3.11,python3)
PYTHON ?= $(DEFAULT)
VERSION := $(call version,$(PYTHON))
VENV := $(if $(filter $(VERSION),$(call version,$(DEFAULT))),.venv,.venv-$(VERSION))
BIN := $(VENV)/bin
CONSTRAINTS := $(or $(wildcard constraints/python$(VERSION).txt),constraints/python3.12.txt)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
QUICK := decorator contract learn closed_form dataset diagnostics imports public packaging

ifeq ($(VERSION),)
$(error $(PYTHON) does not run here: name a Python that does, or its path)
endif

.PHONY: demo test test-quick test-slow test-long lint format docs tutorials clean help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: $(VENV)/ready  ## let three rules learn a lock and a screening problem, and compare their regret
	$(BIN)/homdp compare lock screening:hierarchy=False,horizon=3 --explorers tight,posterior_sampling,quantile_backup \
		--episodes 150 --seeds 10 --priors declared,flat

test: lint  ## linters, then the test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-quick: $(VENV)/dev  ## the part of the test suite that CI runs on other Pythons
	$(BIN)/python -m pytest -n 2 --dist loadfile $$(find tests $(patsubst %,-name test_%.py -o,$(QUICK)) -false)

test-slow: $(VENV)/dev  ## the studies that take minutes, and the tutorials
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'slow and not long'

test-long: $(VENV)/dev  ## the studies that CI has no time for
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/python -m pytest -n 2 --dist worksteal -m long

lint: $(VENV)/dev  ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/dev  ## put the code in its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/dev  ## the documentation, as pages under docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

tutorials: $(VENV)/dev  ## run the notebooks and keep their outputs
	$(BIN)/python tutorials/execute.py

clean:  ## remove the environments and what was built
	rm -rf .venv .venv-* build dist docs/_build docs/api/generated docs/tutorials *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

ifneq ($(call version,$(BIN)/python),$(VERSION))
.PHONY: $(VENV)/made # there is none yet, or another Python made it
endif

$(VENV)/made:
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

$(VENV)/ready: $(VENV)/made pyproject.toml $(CONSTRAINTS)
	@echo "Installing homdp_ppl into $(VENV), which takes some minutes ..."
	$(INSTALL) --editable .
	touch $@

$(VENV)/dev: $(VENV)/ready
	@echo "Installing the development tools into $(VENV), which takes some minutes ..."
	$(INSTALL) --editable '.[dev]'
	touch $@
