# Every target sets itself up: it needs make and a Python 3.11 to 3.14, nothing else.
# PYTHON=python3.12 make test   uses (and from then on keeps) another Python
# make test ARGS="-k plan"      hands arguments to pytest

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check quality docs dist lock format versions clean
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin

# An environment that stands keeps its Python until another one is asked for.
ifndef PYTHON
PYTHON := $(if $(wildcard $(VENV)/.python-*),$(BIN)/python,python3)
endif
PYVERSION := $(shell "$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)

# pip brings uv, and uv everything else: in a tenth of the time. Whatever is downloaded must
# have a hash of its lock; only what has no wheel is built, with the tools of the lock. uv does not
# read pip's settings, so it is told from where pip takes packages, and whom it trusts.
UV := $(BIN)/uv
AS_PIP := index="$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null)}}"; \
  [ -z "$$index" ] || export UV_DEFAULT_INDEX="$$index"; \
  [ -z "$$PIP_CERT" ] || export SSL_CERT_FILE="$${SSL_CERT_FILE:-$$PIP_CERT}";
define install
@$(AS_PIP) \
  $(UV) pip install --quiet --python $(BIN)/python --require-hashes --build-constraints $(1) \
    --only-binary :all: --no-binary forbiddenfruit --requirements $(1) && \
  $(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable . && \
  $(UV) pip check --quiet --python $(BIN)/python
endef

# On all processors. Without compiled modules each program that a test starts would compile them.
# Continuous integration keeps pictures of the pages.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(if $(CI),REPLAN_TEST_SCREENS="$(CURDIR)/build/screens") $(BIN)/pytest -q --processes auto

# Stamps inside the environment: which Python made it, and what was installed into it.
MADE := $(VENV)/.python-$(PYVERSION)
UV_READY := $(VENV)/.installed-uv
RUNTIME := $(VENV)/.installed-runtime
DOCS := $(VENV)/.installed-docs
DEV := $(VENV)/.installed-dev

DEMO_TASK := total revenue by region from sales.csv; total refund by reigon from returns.csv; search notes for returns; compare step 1 and step 2 by region; write report

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

demo: $(RUNTIME) ## Run a small job on examples/data (MODEL=openai:... BASE_URL=https://... for a real model)
	@$(BIN)/replan run "$(DEMO_TASK)" --dir examples/data --out demo-output \
	  $(if $(MODEL),--model "$(MODEL)") $(if $(BASE_URL),--base-url "$(BASE_URL)")

# The tests of the page drive the Chromium of the machine. Continuous integration gets one.
CHROMIUM := if [ -n "$$CI" ] && [ -z "$$REPLAN_TEST_CHROMIUM" ] && [ "$$(id -u)" = 0 ] && \
  [ -z "$$(for each in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$each; done)" ] && \
  command -v apt-get >/dev/null; then \
  apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null; fi

test: $(DEV) ## Run all tests
	@$(CHROMIUM)
	@$(PYTEST) $(ARGS)

# What reads the texts of others: replies, plans, answers, team files, formulas and notes.
FUZZED := $(addprefix tests/unit/,replies team base/texts plan/test_plan_document_properties.py \
  nodes/host/test_approvals.py state/test_questions.py local/test_expressions.py local/test_grammar.py local/test_notes.py)

check: $(DEV) ## Run what a change must pass: format, lint, types, imports, tests with coverage, fuzzing
	@echo "ruff format"; $(BIN)/ruff format --check --quiet .
	@echo "ruff check"; $(BIN)/ruff check --quiet .
	@echo "pyright"; $(BIN)/pyright --pythonpath $(BIN)/python
	@echo "pyright, examples and README"; $(BIN)/python .ci/typed_programs.py
	@echo "lint-imports"; $(BIN)/lint-imports --no-logo
	@echo "pytest"; $(PYTEST) --cov --cov-report=term-missing:skip-covered
	@echo "fuzzing"; HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -q $(FUZZED)

# What is compared are other packages, so they have an environment of their own, with newest versions.
QUALITY := .venv-quality
QUALITY_PACKAGES := deepagents pydantic-evals

quality: $(if $(MODEL),$(QUALITY)/.installed) ## Compare answers of a real model (MODEL=openai:NAME, BASE_URL=..., ARGS="--prices 1.25 10")
	@[ -n "$(MODEL)" ] || { \
	  echo "Name a model, and have its key in the environment: make quality MODEL=openai:NAME" >&2; exit 2; }
	@$(QUALITY)/bin/python benchmarks/quality.py --model "$(MODEL)" $(if $(BASE_URL),--base-url "$(BASE_URL)") $(ARGS)

docs: $(DOCS) ## Build the documentation, with the reference from the docstrings, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

dist: $(DEV) ## Build the wheel and the source archive into dist/, with the same bytes each time, and check them
	@rm -rf dist
	@$(BIN)/python -m hatchling build --directory dist
	@$(AS_PIP) $(UV) tool run --quiet twine check --strict dist/*

format: $(DEV) ## Format the code and fix what the linter can fix
	@$(BIN)/ruff check --quiet --fix --exit-zero .
	@$(BIN)/ruff format --quiet .

versions: $(UV_READY) ## Run the tests with the lowest, newest and pre-release versions on all Pythons
	@$(AS_PIP) env -u PYTHONDONTWRITEBYTECODE $(BIN)/python .ci/versions.py $(ARGS)

# Resolved for every platform, and for all Pythons from the lowest on.
LOCK = $(AS_PIP) $(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
  --no-annotate --no-emit-index-url --custom-compile-command "make lock"

lock: $(UV_READY) ## Write the four requirements*.lock anew, with the newest versions
	@mkdir -p build
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  > build/build.in
	@$(LOCK) pyproject.toml build/build.in --extra dev --output-file requirements-dev.lock
	@$(LOCK) pyproject.toml build/build.in --extra docs --constraints requirements-dev.lock \
	  --output-file requirements-docs.lock
	@$(LOCK) pyproject.toml build/build.in --extra local --constraints requirements-dev.lock \
	  --output-file requirements.lock
	@echo uv > build/uv.in; $(LOCK) build/uv.in --output-file requirements-uv.lock
	@grep -c == requirements*.lock

clean: ## Remove the environment and everything that runs leave behind
	@rm -rf $(VENV) $(QUALITY) build dist site demo-output htmlcov .coverage .coverage.* .hypothesis .langgraph_api
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

$(UV_READY): requirements-uv.lock $(MADE)
	@$(BIN)/python -m pip -qq --disable-pip-version-check install --require-hashes --requirement $<
	@touch $@

$(RUNTIME): requirements.lock pyproject.toml $(UV_READY)
	@echo "Installing Replan into $(VENV)"
	$(call install,$<)
	@touch $@

$(DOCS): requirements-docs.lock pyproject.toml $(UV_READY)
	@echo "Installing what builds the documentation into $(VENV)"
	$(call install,$<)
	@touch $@

$(QUALITY)/.installed: pyproject.toml $(UV_READY)
	@echo "Installing Replan, $(QUALITY_PACKAGES) into $(QUALITY)"
	@$(UV) venv --quiet --clear --python $(BIN)/python $(QUALITY)
	@$(AS_PIP) \
	  $(UV) pip install --quiet --python $(QUALITY)/bin/python --editable ".[tools]" $(QUALITY_PACKAGES) || { \
	    echo "make quality needs the packages $(QUALITY_PACKAGES), which could not be installed (see above)." >&2; \
	    exit 1; }
	@touch $@

$(DEV): requirements-dev.lock pyproject.toml $(UV_READY)
	@echo "Installing Replan and its tools into $(VENV)"
	$(call install,$<)
	@touch $(RUNTIME) $(DOCS) $@
