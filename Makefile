# Every task of the house. `make` alone lists them; `make check` is exactly what CI runs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp-installed

# uv brings its own list of certificates; a machine behind a company proxy has the right one itself.
export UV_SYSTEM_CERTS ?= 1

# What one process of the tests has compiled the others load: to compile the tests takes longer than many of them.
export PYTHONDONTWRITEBYTECODE :=

# A file is run by one process, so that what its tests share (a gateway) is started once.
SPREAD := --dist loadfile --no-loadscope-reorder
# What takes seconds each is left out, and of the three servers that the store supports two.
QUICK := tests/house tests/unit tests/tour tests/store -m "not (other_server or long)"

.DEFAULT_GOAL := help
.PHONY: help install run cluster-demo test quick check format bench docs chaos test-servers test-browser test-asymptote test-deploy

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv with Fairlead and its tools (does nothing when up to date)

run: install ## start Fairlead with sample work
	$(BIN)/fairlead up --demo

cluster-demo: install ## run sample work on a cluster of three shards, and show where
	@$(BIN)/python scripts/cluster-demo

test: install test-servers test-browser test-asymptote test-deploy ## run the tests
	$(BIN)/python -m pytest -n 6 $(SPREAD)

quick: install ## the short tests: house, unit, tour, and most of the store on one server
	$(BIN)/python -m pytest -n 4 $(SPREAD) -q $(QUICK)

check: install ## what CI runs: format, lint, types, tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(MAKE) test

format: install ## format the code and mend what lint can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: install ## run the benchmarks, after a short trial of each
	$(BIN)/python -m pytest -q benchmarks
	$(BIN)/python -m benchmarks

docs: install ## build the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open build/site/index.html; its search needs a server: $(BIN)/python -m http.server -d build/site"

chaos: install ## run the long fault campaigns
	$(BIN)/python -m chaos

test-servers:
	@scripts/test-servers

test-browser:
	@scripts/test-browser

test-asymptote:
	@scripts/test-asymptote

test-deploy:
	@scripts/test-deploy

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Fairlead needs Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]'
	@touch $@
