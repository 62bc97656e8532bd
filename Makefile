# Every target sets itself up: it needs make and a Python 3.11 to 3.14, nothing else.
# PYTHON=python3.12 make test   uses (and from then on keeps) another Python
# make test ARGS="-k plan"      hands arguments to pytest

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check docs lock format clean
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin

# An environment that stands keeps its Python until another one is asked for.
ifndef PYTHON
PYTHON := $(if $(wildcard $(VENV)/.python-*),$(BIN)/python,python3)
endif
PYVERSION := $(shell "$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)

PIP := -m pip -qq --disable-pip-version-check
PINNED := $(BIN)/python $(PIP) install --constraint requirements.lock

# On all processors. Without compiled modules each program that a test starts would compile them.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -q -n auto --dist worksteal

# Stamps inside the environment: which Python made it, and what was installed into it.
MADE := $(VENV)/.python-$(PYVERSION)
RUNTIME := $(VENV)/.installed-runtime
DOCS := $(VENV)/.installed-docs
DEV := $(VENV)/.installed-dev

DEMO_TASK := Total the revenue by region from sales.csv, total the refunds by reigon from returns.csv, find what our notes say about returns, compare revenue and refunds by region, then write a report with a chart.

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

demo: $(RUNTIME) ## Run a small job on examples/data (MODEL=openai:... BASE_URL=https://... for a real model)
	@$(BIN)/replan run "$(DEMO_TASK)" --dir examples/data --out demo-output \
	  $(if $(MODEL),--model "$(MODEL)") $(if $(BASE_URL),--base-url "$(BASE_URL)")

test: $(DEV) ## Run all tests
	@$(PYTEST) $(ARGS)

check: $(DEV) ## Run what a change must pass: format, lint, types, imports, tests with coverage
	@echo "ruff format"; $(BIN)/ruff format --check --quiet .
	@echo "ruff check"; $(BIN)/ruff check --quiet .
	@echo "pyright"; $(BIN)/pyright --pythonpath $(BIN)/python
	@echo "lint-imports"; $(BIN)/lint-imports --no-logo
	@echo "pytest"; HYPOTHESIS_PROFILE=thorough $(PYTEST) --cov --cov-report=term-missing:skip-covered

docs: $(DOCS) ## Build the documentation, with the reference from the docstrings, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

format: $(DEV) ## Format the code and mend what the linter can mend
	@$(BIN)/ruff check --quiet --fix --exit-zero .
	@$(BIN)/ruff format --quiet .

lock: ## Write requirements.lock anew from pyproject.toml (Python 3.11, the lowest)
	@[ "$(PYVERSION)" = 3.11 ] || { \
	  echo "The lock is resolved on Python 3.11, so that it fits all later ones: PYTHON=python3.11 make lock" >&2; exit 1; }
	@rm -rf build/lock && mkdir -p build && "$(PYTHON)" -m venv build/lock
	@build/lock/bin/python $(PIP) install --editable '.[dev]'
	@{ echo "# Written by make lock: the versions that the tests ran with, for every extra."; \
	  build/lock/bin/python $(PIP) freeze --exclude-editable \
	  | grep -vE 'file:|https?:' \
	  | sed '/^uvloop==/s/$$/; sys_platform != "win32"/'; } > build/requirements.lock
	@mv build/requirements.lock requirements.lock && rm -rf build
	@echo "requirements.lock: $$(grep -c == requirements.lock) packages"

clean: ## Remove the environment and everything that runs leave behind
	@rm -rf $(VENV) build dist site demo-output htmlcov .coverage .coverage.* .hypothesis .langgraph_api
	@rm -rf .pytest_cache .ruff_cache .import_linter_cache
	@find src tests -name __pycache__ -prune -exec rm -rf {} +

$(MADE):
	@case " 3.11 3.12 3.13 3.14 " in *" $(PYVERSION) "*) ;; *) \
	  echo "Replan needs Python 3.11 to 3.14; $(PYTHON) is $(or $(PYVERSION),not there or does not start)." >&2; \
	  echo "Name another one: PYTHON=python3.12 make $(MAKECMDGOALS)" >&2; exit 1 ;; esac
	@echo "Making $(VENV) with Python $(PYVERSION)"
	@rm -rf $(VENV)
	@"$(PYTHON)" -m venv $(VENV)
	@touch $@

$(RUNTIME): pyproject.toml requirements.lock $(MADE)
	@echo "Installing Replan into $(VENV)"
	@$(PINNED) --editable '.[local]'
	@touch $@

$(DOCS): pyproject.toml requirements.lock $(MADE)
	@echo "Installing what builds the documentation into $(VENV)"
	@$(PINNED) --editable '.[docs]'
	@touch $@

$(DEV): pyproject.toml requirements.lock $(MADE)
	@echo "Installing Replan and its tools into $(VENV) (a minute or two, once)"
	@$(PINNED) --editable '.[dev]'
	@touch $(RUNTIME) $(DOCS) $@
