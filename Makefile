# Every target builds its own environment in .venv from constraints.txt; nothing else is needed but
# Python 3.11 to 3.13, make and a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONDONTWRITEBYTECODE :=  # else every process that a test starts would compile all sources again

PYTEST := $(BIN)/python -m pytest -q -n 2 --dist worksteal

.PHONY: demo test test-fast test-quick check lean formal bench bench-live bench-large results small evidence docs release clean help

help:           ## what each target does
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

$(RUNS): pyproject.toml constraints.txt
	@echo "==> creating the environment in $(VENV) (about a minute the first time)"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[torch,data]"
	@touch $@

$(READY): $(RUNS) $(wildcard packages/*/pyproject.toml)
	@echo "==> adding the development tools and the add-on packages"
	$(INSTALL) --editable ".[all,dev]" $(patsubst %,--editable %,$(wildcard packages/*))
	@touch $@

demo: $(RUNS)   ## train, certify, attack, verify and report on data that needs no download
	$(BIN)/agnncert demo

test: $(READY)  ## the whole test suite
	$(PYTEST)

test-fast: $(READY) ## the tests without those that take several seconds each
	$(PYTEST) -m "not slow"

# What proves and what checks, from the file alone: they need no model, no graph and no engine.
QUICK := $(addprefix tests/unit/,proving verifier certificates contest)
test-quick: $(READY) ## unit tests of proofs, verifier, files and contests, which need no model
	$(PYTEST) $(QUICK)

check: $(READY) ## ruff, mypy --strict, import direction
	$(BIN)/ruff check src packages experiments examples tests conftest.py
	$(BIN)/ruff format --check src packages experiments examples tests conftest.py
	$(BIN)/mypy
	$(BIN)/lint-imports

lean:           ## the wheel without extras in an empty environment: verify and report work, the rest names its extra
	.ci/lean

ANSWERS ?= 300000
WEAKENED ?=  # how many weakened definitions to try; all when empty
formal:         ## check the proofs in Coq, weaken them, build the checker extracted from them, compare it with the verifier (skipped without coq)
	@if command -v coqc >/dev/null && command -v ocamlfind >/dev/null; then \
	    $(MAKE) $(RUNS) && $(MAKE) -C formal -j2 all && $(MAKE) -C formal chk && git diff --exit-code formal/assumptions.txt formal/assumptions-reals.txt \
	    && $(BIN)/python formal/weaken.py $(WEAKENED) && $(BIN)/python -m formal.compare --answers $(ANSWERS); \
	else echo "skipped: coqc or ocamlfind is missing (Debian: apt-get install coq ocaml-findlib)"; fi

bench: $(READY) ## measure speed against one plain forward pass and against T of them
	$(BIN)/python -m experiments.benchmarks.run

bench-live: $(READY) ## measure what an event costs a live graph, beside certifying again
	$(BIN)/python -m experiments.benchmarks.live

bench-large: $(READY) ## the same on a synthetic graph of the size of Amazon2M (hours; goes on where it stopped)
	$(BIN)/python -m experiments.benchmarks.large
	$(BIN)/python -m experiments.benchmarks.scale

results: $(READY) ## run the paper's experiments at full size (hours; goes on where it stopped) and write docs/results.md
	$(BIN)/python -m experiments --all --root .cache/data --page .cache/paper.md
	$(BIN)/python -m experiments.documentation

small: $(READY) ## run a small part of them in minutes and compare it with the committed rows
	rm -rf .cache/small
	$(BIN)/python -m experiments --all --small --root .cache/data --out .cache/small --against experiments/results

evidence:       ## lay out the certificates behind the cards, from the history of this clone
	.ci/evidence

docs: $(READY)  ## build the documentation into site/
	$(INSTALL) --editable ".[docs]"
	-.ci/evidence
	$(BIN)/mkdocs build --strict

release: $(READY) ## build all packages into dist/, check them, try the wheels in an empty environment; nothing is published
	.ci/release

clean:          ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis site dist
