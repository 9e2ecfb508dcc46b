# Tests beside `make test-rust` and `make test-python`: real time, virtual machines, versions, coverage.

# Two at the same time: they wait for most of their time, and one that was disturbed is made again.
test-live: dev ## tests in real time, which need a computer without other work
	$(TEST_PYTHON) -n 2 -m "live and not weekly" tests

# Without a kernel the tests are skipped, and say why.
test-linux test-weekly: export REDTAIL_KERNELS := $(abspath target/linux/kernels)
test-linux test-weekly: export XDG_CACHE_HOME := $(abspath target/linux/caches)
test-linux: dev ## tests in virtual machines (need QEMU, and Debian's or Ubuntu's packages for a kernel)
	$(BIN)/redtail kernel fetch || echo "There is no kernel: what needs one is skipped"
	$(TEST_PYTHON) -n $(PYTEST_WORKERS) -m "linux and not weekly" tests

test-determinism: dev target/debug-python/.built ## same bytes on 1 and 2 threads, debug and optimised
	$(PY) tests/determinism.py --against target/debug-python

target/debug-python/.built: $(VENV)/.runtime $(RUST_SOURCES) $(shell find python -name '*.py' -o -name '*.toml' -o -name '*.json')
	rm -rf target/debug-python target/debug-wheel
	$(BIN)/maturin build --quiet --profile dev --locked --no-default-features --out target/debug-wheel
	$(PY) -m zipfile -e target/debug-wheel/*.whl target/debug-python
	@touch $@

test-portable: dev ## what can be tested on any system: Rust tests, and Python tests without real time and machines
	$(MAKE) test-rust test-python

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

# Its configuration of cargo is that of its folder.
test-quinn: $(VENV)/.created ## quinn's QUIC behind redtail's queues (examples/quinn)
	cd examples/quinn && cargo test --locked --quiet

# One file without libraries of its own, which a virtual machine takes as it is.
QUINN_PAIR := examples/programs/quinn-pair
quinn-pair: $(QUINN_PAIR) ## the QUIC client and server of examples/programs/quinn.toml, a static binary (Linux)
$(QUINN_PAIR): $(wildcard examples/programs/quinn/Cargo.* examples/programs/quinn/src/*.rs)
	RUSTFLAGS=-Ctarget-feature=+crt-static cargo build --quiet --locked --release --target $(RUST_HOST) \
		--manifest-path examples/programs/quinn/Cargo.toml --target-dir target/quinn-pair
	cp target/quinn-pair/$(RUST_HOST)/release/quinn-pair $@

# A virtual machine takes all packages of an environment.
aioquic: target/aioquic/.made ## an environment with aioquic, for examples/programs/quic.toml in virtual machines
target/aioquic/.made: requirements.lock | $(VENV)/.uv
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) target/aioquic
	$(BIN)/uv pip install --quiet --system-certs --python target/aioquic/$(SCRIPTS)/python -c requirements.lock aioquic
	@touch $@

test-weekly: check-minimum check-rust-plug-ins check-rust-docs dev test-determinism test-quinn quinn-pair aioquic lab ## what the weekly workflow runs besides: the oldest Rust version, determinism, quinn, the laboratory, long tests
	cargo test --locked --quiet -p redtail-qdisc --bench queue_cost
	PROPTEST_CASES=1000 cargo test --locked --no-default-features --quiet -p redtail-qdisc -p redtail-transport -p redtail-sim --test it
	cargo test --locked --profile quick --package redtail-wasm --package redtail-py --quiet
	$(TEST_PYTHON) -m "not weekly" tests/inputs/test_compiled_plugins.py tests/lab
	MUTANTS=2000 $(TEST_PYTHON) tests/store/test_mutants.py
	$(TEST_PYTHON) -n $(PYTEST_WORKERS) -m "weekly and not live and not linux"
	$(TEST_PYTHON) -m "weekly and live" tests
	$(TEST_PYTHON) -n $(PYTEST_WORKERS) -m "weekly and linux" tests

validate: export REDTAIL_KERNELS := $(abspath target/linux/kernels)
validate: setup ## the simulator beside Linux kernels, over all or ONLY=PATTERN of the matrix (SUITES=sid; hours; needs QEMU)
	$(BIN)/redtail kernel fetch
	@for suite in $(SUITES); do $(BIN)/redtail kernel fetch --suite $$suite; done
	$(BIN)/redtail validate $(if $(ONLY),--only '$(ONLY)') --out target/validation --report target/validation.md \
		--backends "sim$$($(BIN)/redtail kernel list | sed -n 's/^\([^ ]*\).*/,linux:\1/p' | tr -d '\n')"

# Without the tests that take longest or need a kernel. TESTS=FILE measures with a part of the rest.
coverage: dev ## which lines of the Python code the tests reach (pages in target/coverage)
	$(TEST_PYTHON) -n $(PYTEST_WORKERS) -m "not live and not linux and not papers" \
		--cov --cov-report=term:skip-covered --cov-report=html:target/coverage $(TESTS)

coverage-rust: ## the same of the Rust code (needs cargo-llvm-cov)
	@cargo llvm-cov --version > /dev/null 2>&1 || \
		{ echo "cargo-llvm-cov is not installed: cargo install cargo-llvm-cov"; exit 1; }
	cargo llvm-cov --locked --workspace --exclude redtail-py --html --output-dir target/coverage-rust
	cargo llvm-cov report
