# What people type: `make help` lists it. The other chores are in tools/*.mk, and `make tools` lists them. Needs a Rust
# toolchain, Python >= 3.11 and a C linker; everything else goes into .venv at locked versions.

PYTHON ?= python3
VENV := .venv
HOST := $(shell uname -sm | tr ' ' '-')
VIRTUAL := python/redtail/backends/virtual
# Where Cargo builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Where a virtual environment has its programs.
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
PY := $(BIN)/python

# Cargo and maturin must agree on these, or each would rebuild what the other built.
export PYO3_PYTHON := $(abspath $(PY))
export PYO3_BUILD_EXTENSION_MODULE := 1
export VIRTUAL_ENV := $(abspath $(VENV))
export PIP_DISABLE_PIP_VERSION_CHECK := 1

RUST_SOURCES := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find crates -name tests -prune -o -name '*.rs' -print -o -name Cargo.toml -print -o -name '*.json' -print | grep -v /target/)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help tools $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' Makefile tools/*.mk | sort -u)

define LIST
@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }'
endef

help: ## show this list
	$(LIST) Makefile

tools: ## show the other chores
	$(LIST) tools/*.mk

include tools/*.mk

setup: $(VENV)/.release ## virtual environment, locked dependencies, optimised native build

dev: $(VENV)/.native $(VENV)/.dev ## the same without link-time optimisation: built in seconds after a change

$(VENV)/.release: $(VENV)/.runtime $(RUST_SOURCES)
	@echo "Building the native module (a few minutes the first time)"
	$(call BUILD_NATIVE,release)
	@: > $@
	@touch $(VENV)/.native

$(VENV)/.native: $(VENV)/.runtime $(RUST_SOURCES)
	@echo "Building the native module for development"
	@rm -f $(VENV)/.release
	$(call BUILD_NATIVE,quick)
	@touch $@

demo: setup ## compare tail drop, RED and gentle RED: a table, figures, and a page to hand over
	$(BIN)/redtail run examples/taildrop-vs-red.toml --report

# What compiles Rust uses all cores by itself. What has one process is made beside others, and what needs the time of
# the computer alone.
test: dev ## everything that CI runs
	$(MAKE) check-rust
	$(MAKE) test-rust
	$(MAKE) -j2 check-types check-python check-fresh check-instructions check-lab docs
	$(MAKE) test-python
	$(MAKE) test-live
	$(MAKE) test-linux
	@echo "all tests passed"

check: $(VENV)/.dev ## only what a change is likely to break (BASE=COMMIT compares with that commit)
	$(PY) tests/check.py $(BASE)

# crates/py has none, but named with the others it gives dependencies the features that they have in the
# native module, so that test-determinism does not compile them again. Compiled plug-ins are tested with the engine
# that the native module has.
test-rust: export PROPTEST_CASES ?= 100
test-rust: $(VENV)/.created ## Rust tests (PROPTEST_CASES=1000: as many random cases of each as test-weekly draws)
	cargo test --locked --workspace --exclude redtail-wasm --no-default-features --quiet
	$(if $(FEATURES),,cargo test --locked --profile quick --package redtail-wasm --package redtail-py --quiet)

# Tests whose names have the queue's kind in them, and what every queue keeps to, for this one alone. Only the crate
# of the queues and its test program are built.
test-queue: ## Rust tests of one queue, within seconds of a change (QUEUE=red)
	QUEUE=$(QUEUE) cargo test --locked --quiet -p redtail-qdisc --test it -- $(subst -,_,$(QUEUE)) conformance

# `auto` starts one worker for each core, 0 runs the tests one after the other. tests/conftest.py says
# which tests stay together and in which order they begin.
PYTEST_WORKERS ?= auto

# Some hundred processes load the same modules. What Python has compiled is kept in target, also where the
# environment says that nothing is to be kept beside the sources.
TEST_PYTHON := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath target/pycache) $(BIN)/pytest -q --durations=20 --durations-min=5

test-python: dev ## Python tests, doctests, and every example
	$(TEST_PYTHON) -n $(PYTEST_WORKERS) -m "not live and not linux and not weekly"

bench: setup $(VENV)/.dev ## time and memory per packet, starts, and what is installed, on this machine
	$(PY) benches/bench.py

generate: dev ## schema, Python model, definitions of metrics and reference pages, from the Rust types
	$(PY) -m redtail._generate

format: dev ## format all code
	cargo fmt --all
	$(BIN)/ruff format python tests tools benches docs
	$(BIN)/ruff check --fix python tests tools benches docs

# The extras of users.
EXTRAS := $(patsubst %,--extra %,cluster gym notebook objects pandas polars recordings tune)

lock: $(VENV)/.uv ## renew the lock; versions move only within pyproject.toml's bounds
	echo uv | $(BIN)/uv pip compile - pyproject.toml $(EXTRAS) --extra build --extra dev --extra docs --extra wheel \
		--universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url --quiet \
		-o requirements.lock

docs: $(VENV)/.native $(VENV)/.docs ## the documentation site, in target/site; broken links and undocumented names fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "to read it: $(PY) -m http.server --bind 127.0.0.1 --directory target/site"

clean: ## remove everything that was built; results in runs/ stay
	rm -rf $(VENV) target dist python/redtail/lab
	find python -name '_native*.so' -delete
