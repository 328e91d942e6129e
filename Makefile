# ACW's commands. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed-from-lock
# Where it is set, each process of the tests compiles every module anew, which takes longer than most tests.
unexport PYTHONDONTWRITEBYTECODE
HOST ?= 127.0.0.1
PORT ?= 8000

# UPGRADE=1 takes newer releases; without it, what is pinned stays where pyproject.toml allows it.
# The certificates of the machine, as pip takes them, also those that a company has added.
COMPILE = $(BIN)/uv pip compile --quiet --system-certs --universal --generate-hashes --no-emit-index-url \
	--custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade) pyproject.toml

.PHONY: help setup run test chaos bench check lock compile clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP) ## make the virtual environment .venv and install what the lock pins
	@echo "==> $(VENV) has what requirements-dev.txt pins"

# The chosen Python is looked for only when the environment has to be made.
$(STAMP): requirements-dev.txt
	@if [ -n "$(PYTHON)" ]; then candidates="$(PYTHON)"; \
	else candidates="python3 python3.13 python3.12 python3.11 python3.14"; fi; \
	python=; \
	for candidate in $$candidates; do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "make: no Python 3.11 or newer found (tried: $$candidates). Install one, or name it: make setup PYTHON=/path/to/python3.12" >&2; exit 1; \
	fi; \
	if [ ! -x "$(BIN)/python" ] || ! "$(BIN)/python" -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "==> Making a virtual environment in $(VENV) with $$("$$python" --version)"; \
		"$$python" -m venv --clear "$(VENV)" || { echo "make: $$python cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }; \
	fi; \
	echo "==> Installing the packages that requirements-dev.txt pins into $(VENV) (about a minute, only when the file has changed)"; \
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt; \
	touch "$(STAMP)"

run: $(STAMP) ## set up and run everything: database, web server, worker (HOST=, PORT= choose the address)
	@exec "$(BIN)/python" manage.py quickstart --host "$(HOST)" --port "$(PORT)"

test: $(STAMP) ## set up and run the tests (ARGS='tests/jobs -k claim' narrows them)
	@echo "==> Running the tests, each process of them on a PostgreSQL of its own"
	@PYTHONMALLOC=default exec "$(BIN)/python" -X dev -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal $(ARGS)

chaos: $(STAMP) ## kill, suspend and cut off workers and servers, and look for broken promises (ARGS='--seed 7' chooses)
	@echo "==> Torturing the queue on servers of its own, and playing its verbs at random, for some fifteen minutes"
	@MODEL_MINUTES=3 exec "$(BIN)/python" -X dev -m pytest -s --full -o faulthandler_timeout=0 tests/chaos tests/jobs/test_model.py $(ARGS)

bench: $(STAMP) ## measure the queue beside its ceiling (ARGS='--short' takes a minute)
	@echo "==> Measuring on the database that DATABASE_URL names, or the embedded one"
	@exec "$(BIN)/python" manage.py benchjobs $(ARGS)

check: $(STAMP) ## lock files, linters, types, import rules, Django's checks
	@exec .ci/checks

lock: $(STAMP) ## compile requirements*.txt from pyproject.toml (UPGRADE=1 takes newer releases)
	@echo "==> Compiling requirements.txt and requirements-dev.txt"
	@$(MAKE) compile

# Apart from `lock`, so that .ci/checks can compile a copy elsewhere and compare.
compile:
	@$(COMPILE) --output-file requirements.txt
	@$(COMPILE) --group dev --constraint requirements.txt --output-file requirements-dev.txt

clean: ## remove .venv and caches; .acw (database, clones, secrets) stays
	rm -rf .venv .venv-newest .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov
