# Every chore is a target; `make help` lists them. Needs a Rust toolchain, Python >= 3.11 and a
# C linker; everything else goes into .venv at locked versions.

PYTHON ?= python3
MINIMUM_RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml).0
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
.PHONY: help setup profile dev demo test check check-rust check-minimum deny test-rust test-queue check-python check-types \
	check-fresh test-python test-live test-linux test-weekly test-determinism test-portable test-lowest test-newest \
	check-workflows check-release coverage coverage-rust validate fuzz fuzz-corpus attack docs \
	wheel build-wheel test-wheel sdist test-sdist container bench bench-profile bench-peers check-instructions compare-ns3 \
	generate lock format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- Setting up -----------------------------------------------------------------------------

setup: $(VENV)/.release ## virtual environment, locked dependencies, optimised native build

dev: $(VENV)/.native $(VENV)/.dev ## the same without link-time optimisation: built in seconds after a change

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "redtail needs Python 3.11 or later; name it with: make PYTHON=python3.x"; exit 1; }
	@command -v cargo > /dev/null || \
		{ echo "redtail needs a Rust toolchain; see https://rustup.rs"; exit 1; }
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# uv installs in a tenth of the time of pip, which brings it.
LOCKED := --quiet --require-hashes --no-deps -r
$(VENV)/.uv: requirements-uv.lock | $(VENV)/.created
	@$(PY) -m pip install $(LOCKED) $<
	@touch $@

define INSTALL
	@$(BIN)/uv pip install --system-certs $(LOCKED) $<
	@touch $@
endef

$(VENV)/.runtime: requirements.lock | $(VENV)/.uv
	@echo "Installing what redtail needs, at locked versions"
	$(INSTALL)

$(VENV)/.dev: requirements-dev.lock | $(VENV)/.runtime
	@echo "Installing what the tests need, at locked versions"
	$(INSTALL)

$(VENV)/.docs: requirements-docs.lock | $(VENV)/.runtime
	@echo "Installing what the documentation site needs, at locked versions"
	$(INSTALL)

# Two stamps: .native says that the module is built from the present sources, .release besides
# that it is the build for users, which benchmarks and figures of speed need.
define BUILD_NATIVE
	@PIP_QUIET=1 $(BIN)/maturin develop --uv --profile $(1) --locked --quiet > $(VENV)/build.log 2>&1 || \
		{ cat $(VENV)/build.log; exit 1; }
	$(if $(filter Linux-x86_64,$(HOST)),$(call BUILD_GUEST,build,$(1),$(1)))
endef

# What virtual machines need, without the names of functions: it is loaded anew for each of them. With
# redtail-py named as well, dependencies have the same features as in the native module, and what was
# compiled for it is used. The second argument is a profile, the third the folder of what it builds.
define BUILD_GUEST
	@cargo $(1) --quiet --locked --profile $(2) -p redtail-py -p redtail-live --bin redtail-guest
	@cargo $(1) --quiet --locked --profile $(2) -p redtail-turns
	@strip -o $(VIRTUAL)/agent $(TARGET)/$(3)/redtail-guest
	@strip -o $(VIRTUAL)/turns.so $(TARGET)/$(3)/libredtail_turns.so
endef

$(VENV)/.release: $(VENV)/.runtime $(RUST_SOURCES)
	@echo "Building the native module (a few minutes the first time)"
	$(call BUILD_NATIVE,release)
	@: > $@
	@touch $(VENV)/.native

# The runs of benches/train.py say which code is used often: a module that counts makes them and writes a profile, the
# first argument. The others are maturin's arguments and variables for the build with this profile: names of functions
# depend on them, and a profile says nothing about functions of other names. PYTHONPATH has the module that counts,
# before the one of the environment, and the tests, of which the runs are.
PROFILES := $(abspath target/profile)
define TRAIN
	@rustup component add llvm-tools || \
		{ echo "A profile needs rustup and its component llvm-tools; make build-wheel PROFILE= builds without one"; exit 1; }
	@rm -rf $(PROFILES)/wheel $(PROFILES)/site
	$(3) CARGO_TARGET_DIR=$(PROFILES) CARGO_BUILD_RUSTFLAGS="-Cprofile-generate=$(PROFILES)/raw" \
		$(BIN)/maturin build --release --locked --quiet --out $(PROFILES)/wheel $(2)
	@$(PY) -m pip install --quiet --no-deps --target $(PROFILES)/site $(PROFILES)/wheel/*.whl
	@rm -rf $(PROFILES)/raw
	PYTHONPATH=$(PROFILES)/site:tests $(PY) benches/train.py
	"$$(rustc --print target-libdir)/../bin/llvm-profdata" merge -o $(1) $(PROFILES)/raw
endef

# The stamp .release then names the profile, for benches/bench.py.
profile: $(VENV)/.runtime ## setup with a profile of redtail's runs: 12 to 17 % faster, built twice (needs rustup)
	$(call TRAIN,$(PROFILES)/develop.profdata)
	CARGO_TARGET_DIR=$(PROFILES) CARGO_BUILD_RUSTFLAGS="-Cprofile-use=$(PROFILES)/develop.profdata" \
		$(BIN)/maturin develop --release --locked --quiet
	$(if $(filter Linux-x86_64,$(HOST)),$(call BUILD_GUEST,build,release,release))
	@echo $(PROFILES)/develop.profdata > $(VENV)/.release
	@touch $(VENV)/.native

$(VENV)/.native: $(VENV)/.runtime $(RUST_SOURCES)
	@echo "Building the native module for development"
	@rm -f $(VENV)/.release
	$(call BUILD_NATIVE,quick)
	@touch $@

# --- Using it -------------------------------------------------------------------------------

demo: setup ## compare tail drop, RED and gentle RED: a table, figures, and a page to hand over
	$(BIN)/redtail run examples/taildrop-vs-red.toml --report

# --- Testing --------------------------------------------------------------------------------

# What compiles Rust uses all cores by itself. What has one process is made beside others, and what needs the time of
# the computer alone.
test: dev ## everything that CI runs
	$(MAKE) check-rust
	$(MAKE) test-rust
	$(MAKE) -j2 check-types check-python check-fresh check-instructions docs target/debug-python/.built
	$(MAKE) test-python
	$(MAKE) test-live
	$(MAKE) test-linux
	$(MAKE) test-determinism
	@echo "all tests passed"

test-weekly: check-minimum ## what the weekly workflow runs besides: the oldest Rust version, the benchmark of queues
	cargo test --locked --quiet -p redtail-qdisc --bench queue_cost

check: $(VENV)/.dev ## only what a change is likely to break (BASE=COMMIT compares with that commit)
	$(PY) tests/check.py $(BASE)

check-rust: $(VENV)/.created ## formatting, lints and documentation of the Rust code
	cargo fmt --all -- --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items --quiet

# rustup fetches the version if it can; a machine without rustup or network says that it does not check.
check-minimum: $(VENV)/.created ## whether the oldest Rust version of Cargo.toml still compiles what users build
	@if rustup toolchain install $(MINIMUM_RUST) --profile minimal --no-self-update > /dev/null 2>&1; then \
		echo "Checking with Rust $(MINIMUM_RUST)"; \
		rustup run $(MINIMUM_RUST) cargo check --locked --workspace --quiet \
			--target-dir target/minimum; \
	else echo "Rust $(MINIMUM_RUST) cannot be installed here: not checked"; fi

deny: ## licences, sources and known faults of the Rust dependencies (needs cargo-deny and network)
	cargo deny check

# crates/py has none, but named with the others it gives dependencies the features that they have in the
# native module, so that test-determinism does not compile them again.
test-rust: $(VENV)/.created ## Rust tests
	cargo test --locked --workspace --quiet

# Tests whose names have the queue's kind in them, and what every queue keeps to, for this one alone. Only the crate
# of the queues and its test program are built.
test-queue: ## Rust tests of one queue, within seconds of a change (QUEUE=red)
	QUEUE=$(QUEUE) cargo test --locked --quiet -p redtail-qdisc --test it -- $(subst -,_,$(QUEUE)) conformance

check-python: $(VENV)/.dev ## formatting, lints and floors of the Python code
	$(BIN)/ruff format --check python tests benches docs
	$(BIN)/ruff check python tests benches docs
	$(BIN)/lint-imports --no-logo --no-cache

check-types: dev ## type checks, and the native module against its stub
	$(BIN)/mypy
	MYPYPATH=python $(PY) -m mypy.stubtest redtail._native

check-fresh: dev ## whether generated files match the Rust types they are made from
	$(PY) -m redtail._generate --check

# `auto` starts one worker for each core, 0 runs the tests one after the other. tests/conftest.py says
# which tests stay together and in which order they begin.
PYTEST_WORKERS ?= auto

# Some hundred processes load the same modules. What Python has compiled is kept in target, also where the
# environment says that nothing is to be kept beside the sources.
TEST_PYTHON := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath target/pycache) $(BIN)/pytest -q

test-python: dev ## Python tests, doctests, and every example
	$(TEST_PYTHON) -n $(PYTEST_WORKERS) -m "not live and not linux"

test-live: dev ## tests in real time, which need a computer without other work
	$(TEST_PYTHON) -m live tests

# Without a kernel the tests are skipped, and say why.
test-linux: export REDTAIL_KERNELS := $(abspath target/linux/kernels)
test-linux: export XDG_CACHE_HOME := $(abspath target/linux/caches)
test-linux: dev ## tests in virtual machines (need QEMU, and Debian's or Ubuntu's packages for a kernel)
	$(BIN)/redtail kernel fetch || echo "There is no kernel: what needs one is skipped"
	$(TEST_PYTHON) -n $(PYTEST_WORKERS) -m linux tests

test-determinism: dev target/debug-python/.built ## same bytes on 1 and 2 threads, debug and optimised
	$(PY) tests/determinism.py --against target/debug-python

target/debug-python/.built: $(VENV)/.runtime $(RUST_SOURCES) $(shell find python -name '*.py' -o -name '*.toml' -o -name '*.json')
	rm -rf target/debug-python target/debug-wheel
	$(BIN)/maturin build --quiet --profile dev --locked --out target/debug-wheel
	$(PY) -m zipfile -e target/debug-wheel/*.whl target/debug-python
	@touch $@

test-portable: dev ## what can be tested on any system: Rust tests, and Python tests without real time and machines
	$(MAKE) test-rust
	$(TEST_PYTHON) -n $(PYTEST_WORKERS) -m "not live and not linux"

# The extras of users.
EXTRAS := $(patsubst %,--extra %,cluster notebook objects pandas polars recordings tune)

# Another environment with the same native module. The versions of what redtail itself needs are found
# first, because with --resolution=lowest-direct the tools of the tests would be as old as they can be.
define TEST_VERSIONS
	@mkdir -p target/$@
	$(BIN)/uv pip compile pyproject.toml $(EXTRAS) --quiet --upgrade --resolution $(1) --python $(PYTHON) \
		--no-annotate --no-header --no-emit-index-url -o target/$@/versions.txt
	$(PYTHON) -m venv --clear target/$@/venv
	$(BIN)/uv pip install --quiet --python target/$@/venv/$(SCRIPTS)/python -c target/$@/versions.txt \
		-r pyproject.toml $(EXTRAS) --extra build --extra dev
	VIRTUAL_ENV=$(abspath target/$@/venv) $(BIN)/maturin develop --profile quick --locked --quiet
	target/$@/venv/$(SCRIPTS)/python -m pytest -q -n $(PYTEST_WORKERS) $(2) \
		-m "not live and not linux and not papers and not locked" $(TESTS)
endef

# Old libraries use what has been deprecated since in the libraries that they need.
test-lowest: dev ## Python tests with the lowest versions that pyproject.toml allows
	$(call TEST_VERSIONS,lowest-direct,-W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning)

test-newest: dev ## Python tests with the newest versions that pyproject.toml allows
	$(call TEST_VERSIONS,highest,)

# Without the tests that take longest or need a kernel. TESTS=FILE measures with a part of the rest.
coverage: dev ## which lines of the Python code the tests reach (pages in target/coverage)
	$(TEST_PYTHON) -n $(PYTEST_WORKERS) -m "not live and not linux and not papers" \
		--cov --cov-report=term:skip-covered --cov-report=html:target/coverage $(TESTS)

coverage-rust: ## the same of the Rust code (needs cargo-llvm-cov)
	@cargo llvm-cov --version > /dev/null 2>&1 || \
		{ echo "cargo-llvm-cov is not installed: cargo install cargo-llvm-cov"; exit 1; }
	cargo llvm-cov --locked --workspace --exclude redtail-py --html --output-dir target/coverage-rust
	cargo llvm-cov report

validate: export REDTAIL_KERNELS := $(abspath target/linux/kernels)
validate: setup ## the simulator beside a Linux kernel, over all or ONLY=PATTERN of the matrix (hours; needs QEMU)
	$(BIN)/redtail kernel fetch
	$(BIN)/redtail validate $(if $(ONLY),--only '$(ONLY)') --out target/validation --report target/validation.md

ACTIONLINT ?= actionlint
check-workflows: ## lint the workflows of .github (needs actionlint)
	@if command -v $(ACTIONLINT) > /dev/null; then $(ACTIONLINT) && echo "workflows: no faults"; \
	else echo "actionlint is not installed: workflows are not checked" \
		"(go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12)"; fi

# --- Fuzzing --------------------------------------------------------------------------------

FUZZ_SECONDS ?= 300
FUZZ_CORPUS := fuzz/corpus/endpoints
FUZZ_FOUND := target/fuzz/found
FUZZ_HOST := $(shell rustc -vV 2> /dev/null | sed -n 's/^host: //p')
FUZZ := target/fuzz/$(FUZZ_HOST)/fuzz/endpoints
# What cargo-fuzz passes too; none of it needs a nightly compiler.
FUZZ_FLAGS := --cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
	-Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares

$(FUZZ): $(RUST_SOURCES) $(shell find fuzz -name '*.rs' -o -name Cargo.toml)
	RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --quiet --locked --profile fuzz --package redtail-fuzz \
		--features libfuzzer --bin endpoints --target $(FUZZ_HOST) --target-dir target/fuzz
	@touch $@

fuzz: $(FUZZ) ## look for inputs that break TCP's endpoints (FUZZ_SECONDS=300; needs a C++ compiler)
	@mkdir -p $(FUZZ_FOUND)
	$(FUZZ) -max_len=700 -timeout=10 -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
		-artifact_prefix=target/fuzz/ $(FUZZ_FOUND) $(FUZZ_CORPUS)

fuzz-corpus: $(FUZZ) ## the smallest set of found inputs that reaches everything, as the corpus
	rm -rf target/fuzz/merged && mkdir -p target/fuzz/merged $(FUZZ_FOUND)
	$(FUZZ) -set_cover_merge=1 -use_counters=0 target/fuzz/merged $(FUZZ_FOUND) $(FUZZ_CORPUS)
	rm -rf $(FUZZ_CORPUS) && mv target/fuzz/merged $(FUZZ_CORPUS)

# --- Attacking ------------------------------------------------------------------------------

SECONDS ?= 300
SEED ?= 1

attack: dev ## damaged files and recordings, random experiments, killed commands, figures that must agree (SECONDS=300 SEED=1)
	PYTHONPATH=tests $(PY) -m attack --seconds $(SECONDS) --seed $(SEED) $(if $(ROUNDS),--rounds $(ROUNDS))

# --- Measuring ------------------------------------------------------------------------------

bench: setup $(VENV)/.dev ## time and memory per packet, starts, and what is installed, on this machine
	$(PY) benches/bench.py

bench-profile: profile $(VENV)/.dev ## the same of a build with a profile, as wheels have it
	$(PY) benches/bench.py

bench-peers: setup $(VENV)/.dev ## the same scenarios in ns-2, ns-3 and htsim (HTSIM=its folder sim), where they are installed
	$(PY) benches/bench.py --peers

check-instructions: dev ## whether a packet takes more instructions than before (needs valgrind; RENEW=1 writes the counts)
	$(PY) benches/instructions.py $(if $(RENEW),--renew)

compare-ns3: dev ## redtail beside ns-3, where it is installed: agreement, then each difference
	$(PY) benches/peers/compare_ns3.py
	$(PY) benches/peers/compare_ns3.py --differences

# --- Publishing -----------------------------------------------------------------------------

docs: $(VENV)/.native $(VENV)/.docs ## the documentation site, in target/site; broken links and undocumented names fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "to read it: $(PY) -m http.server --bind 127.0.0.1 --directory target/site"

# Linux: the oldest C library that a wheel runs with, for which Zig's linker builds. MANYLINUX= (nothing) builds
# for the C library of this computer, without Zig.
MANYLINUX ?= manylinux_2_28
ZIG := $(and $(filter Linux-%,$(HOST)),$(MANYLINUX))
ZIG_TARGET := $(shell uname -m)-unknown-linux-gnu
# A profile is made by another build of the same sources (TRAIN). PROFILE= (nothing) builds without one.
PROFILE ?= $(if $(filter Windows_NT,$(OS)),,yes)
# Zig's linker refuses modules that count. With this variable they are linked by that of this computer, and all else
# is as for Zig's, names of functions too.
ZIG_LINKER := CARGO_TARGET_$(shell echo $(ZIG_TARGET) | tr a-z- A-Z_)_LINKER

$(VENV)/.wheel: requirements-wheel.lock | $(VENV)/.runtime
	@echo "Installing what wheels for Linux are built with, at locked versions"
	$(INSTALL)

wheel: build-wheel ## a wheel of the build for users in dist, and runs with it in an empty environment
	$(MAKE) test-wheel

# RUSTFLAGS and CARGO_TARGET_DIR are Cargo's own; WHEEL_FLAGS are maturin's, for instance --target.
ifneq ($(ZIG),)
build-wheel: export PATH := $(abspath $(BIN)):$(PATH)
endif
# Numbers of lines, three quarters of a native module, stay out of what users install.
build-wheel: $(VENV)/.runtime $(if $(ZIG),$(VENV)/.wheel) ## the wheel alone
	@rm -f dist/redtail-*.whl
	$(if $(PROFILE),$(call TRAIN,$(PROFILES)/wheel.profdata,$(if \
		$(ZIG),--zig --compatibility linux) $(WHEEL_FLAGS),$(if $(ZIG),$(ZIG_LINKER)=cc)))
	$(if $(filter Linux-x86_64,$(HOST)),$(if $(ZIG),$(call BUILD_GUEST,zigbuild --target \
		$(ZIG_TARGET).$(subst _,.,$(MANYLINUX:manylinux_%=%)),release,$(ZIG_TARGET)/release),$(call \
		BUILD_GUEST,build,release,release)))
	CARGO_PROFILE_RELEASE_STRIP=debuginfo \
		$(if $(PROFILE),CARGO_BUILD_RUSTFLAGS="-Cprofile-use=$(PROFILES)/wheel.profdata") \
		$(BIN)/maturin build --release --locked --out dist $(if $(ZIG),--zig --compatibility $(MANYLINUX)) $(WHEEL_FLAGS)

test-wheel: ## install the wheel of dist into an empty environment without Rust, and use it there
	$(PYTHON) tests/wheel.py

sdist: $(VENV)/.runtime ## the source distribution, in dist
	@rm -f dist/redtail-*.tar.gz
	$(BIN)/maturin sdist --out dist

test-sdist: ## build and install the source distribution of dist in an empty environment (needs Rust)
	$(PYTHON) tests/wheel.py --sdist

DOCKER ?= docker
container: ## the container, and a run in it
	$(DOCKER) build --tag redtail --build-arg RUST=$(shell sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml) .
	$(DOCKER) run --rm redtail --version
	$(DOCKER) run --rm --entrypoint sh redtail -c 'redtail init access-line && redtail run access-line.toml --no-figures'

check-release: ## whether version, changelog and citation agree with TAG=v0.1.0; prints the release's notes
	@$(PYTHON) tests/release.py $(TAG)

# --- Maintaining ----------------------------------------------------------------------------

generate: dev ## schema, Python model, definitions of metrics and reference pages, from the Rust types
	$(PY) -m redtail._generate

format: dev ## format all code
	cargo fmt --all
	$(BIN)/ruff format python tests benches docs
	$(BIN)/ruff check --fix python tests benches docs

LOCK := --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url --quiet
lock: $(VENV)/.uv ## renew the lock files; versions move only within pyproject.toml's bounds
	echo uv | $(BIN)/uv pip compile - $(LOCK) -o requirements-uv.lock
	$(BIN)/uv pip compile pyproject.toml --extra build $(LOCK) \
		-o requirements.lock
	$(BIN)/uv pip compile pyproject.toml $(EXTRAS) --extra build --extra dev -c requirements.lock $(LOCK) \
		-o requirements-dev.lock
	$(BIN)/uv pip compile pyproject.toml --extra docs -c requirements-dev.lock $(LOCK) \
		-o requirements-docs.lock
	$(BIN)/uv pip compile pyproject.toml --extra wheel -c requirements-dev.lock $(LOCK) \
		-o requirements-wheel.lock

clean: ## remove everything that was built; results in runs/ stay
	rm -rf $(VENV) target dist
	find python -name '_native*.so' -delete
