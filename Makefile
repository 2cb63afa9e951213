# Everything runs in .venv, made from the pinned versions of constraints.txt. `make demo` and `make test` need nothing else.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-slow test-long lint format docs tutorials clean help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: .venv/ready  ## let three rules learn a lock and a screening problem, and compare their regret
	$(BIN)/homdp compare lock screening:hierarchy=False,horizon=3 --explorers tight,posterior_sampling,quantile_backup \
		--episodes 150 --seeds 10 --priors declared,flat

test: lint  ## linters, then the test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: .venv/dev  ## the studies that take minutes, and the tutorials
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'slow and not long'

test-long: .venv/dev  ## the studies that CI has no time for
	JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/python -m pytest -n 2 --dist worksteal -m long

lint: .venv/dev  ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: .venv/dev  ## put the code in its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/dev  ## the documentation, as pages under docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

tutorials: .venv/dev  ## run the notebooks and keep their outputs
	$(BIN)/python tutorials/execute.py

clean:  ## remove the environment and what was built
	rm -rf .venv build dist docs/_build docs/api/generated docs/tutorials *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/made:
	$(PYTHON) -m venv .venv
	touch $@

.venv/ready: .venv/made pyproject.toml constraints.txt
	@echo "Installing homdp_ppl into .venv, which takes some minutes ..."
	$(INSTALL) --editable .
	touch $@

.venv/dev: .venv/ready
	@echo "Installing the development tools into .venv, which takes some minutes ..."
	$(INSTALL) --editable '.[dev]'
	touch $@
