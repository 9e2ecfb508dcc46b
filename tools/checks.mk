# Checks that run nothing: formatting, lints, types, generated files, licences, instructions.

# The compiler of plug-ins takes longer than all the rest: what uses it has the target below. The second clippy is for
# the crates of other projects without any feature.
check-rust: $(VENV)/.created ## formatting and lints of the Rust code
	cargo fmt --all -- --check
	cargo clippy --locked --workspace --exclude redtail-wasm --no-default-features --all-targets --quiet -- -D warnings

check-rust-docs: $(VENV)/.created ## lints of the crates for others with their own features, and documentation of the Rust code
	cargo clippy --locked --package redtail-core --package redtail-qdisc --package redtail-transport --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --exclude redtail-wasm --no-default-features --no-deps \
		--document-private-items --quiet

check-rust-plug-ins: $(VENV)/.created ## the same of compiled plug-ins (`make check` lints them after a change)
	cargo clippy --locked --package redtail-wasm --package redtail-py --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --package redtail-wasm --package redtail-py --no-deps \
		--document-private-items --quiet

MINIMUM_RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml).0

# rustup fetches the version if it can; a machine without rustup or network says that it does not check.
check-minimum: $(VENV)/.created ## whether the oldest Rust version of Cargo.toml still compiles what users build
	@if rustup toolchain install $(MINIMUM_RUST) --profile minimal --no-self-update > /dev/null 2>&1; then \
		echo "Checking with Rust $(MINIMUM_RUST)"; \
		rustup run $(MINIMUM_RUST) cargo check --locked --workspace --quiet \
			--target-dir target/minimum; \
	else echo "Rust $(MINIMUM_RUST) cannot be installed here: not checked"; fi

deny: ## licences, sources and known faults of the Rust dependencies (needs cargo-deny and network)
	cargo deny check

check-python: $(VENV)/.dev ## formatting, lints and floors of the Python code
	$(BIN)/ruff format --check python tests tools benches docs
	$(BIN)/ruff check python tests tools benches docs
	$(BIN)/lint-imports --no-logo --no-cache

check-types: dev ## type checks, and the native module against its stub
	$(BIN)/mypy
	MYPYPATH=python $(PY) -m mypy.stubtest redtail._native $(if $(FEATURES),--allowlist tools/stubs-without-features.txt)

check-fresh: dev ## whether generated files match the Rust types they are made from
	$(PY) -m redtail._generate --check

# An incremental build divides the code otherwise, which moves a count by up to 2 %.
check-instructions: dev ## whether a packet takes more instructions than before (needs valgrind; RENEW=1 writes the counts)
	CARGO_INCREMENTAL=0 $(PY) benches/instructions.py $(if $(RENEW),--renew)

ACTIONLINT ?= actionlint
check-workflows: ## lint the workflows of .github (needs actionlint)
	@if command -v $(ACTIONLINT) > /dev/null; then $(ACTIONLINT) && echo "workflows: no faults"; \
	else echo "actionlint is not installed: workflows are not checked" \
		"(go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12)"; fi
