# The commands a person or CI needs; the Dockerfile uses the same ones.
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell sh scripts/find-python)
HOST ?= 127.0.0.1
PORT ?= 8000
# Test files that run at once: each runs compilers and servers of its own, some 2 GB of memory.
JOBS ?= 2

.PHONY: run setup test check lint types bench lock clean

run: setup
	$(BIN)/loupe serve --host $(HOST) --port $(PORT)

setup: $(VENV)/.runtime static/dist/.built

$(VENV)/.runtime: requirements/runtime.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Loupe needs CPython 3.11 or 3.12 with venv; install python3.11 (and python3.11-venv) or set PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/runtime.txt
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/dev.txt
	@touch $@

static/node_modules/.installed: static/package-lock.json $(VENV)/.runtime
	$(BIN)/python scripts/npm.py ci --prefix static --ignore-scripts --no-audit --no-fund
	@touch $@

static/dist/.built: static/node_modules/.installed $(shell find static/src -type f)
	$(BIN)/python scripts/npm.py run --prefix static build
	@touch $@

test: setup $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses=$(JOBS) --dist=loadfile $(TESTS)

check: lint types test

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/python scripts/npm.py run --prefix static types

bench: setup $(VENV)/.dev
	$(BIN)/python -m bench

lock: $(VENV)/.dev
	cd requirements && for name in runtime dev; do ../$(BIN)/uv pip compile --universal --python-version 3.11 --upgrade --generate-hashes --no-annotate --no-header --quiet $$name.in -o $$name.txt; done
	$(BIN)/python scripts/npm.py install --prefix static --package-lock-only --ignore-scripts

clean:
	rm -rf $(VENV) static/dist static/node_modules
