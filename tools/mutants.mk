# Mutants: does a test fail when one place of the code is changed?

MINUTES ?= 60

# The laws of queues and the congestion controls are in Rust, the other rooms in Python.
mutants: dev ## the share of mutants that survive in each room (MINUTES=60 SEED=1 ROOMS="analysis store")
	$(PY) tools/mutation.py --minutes $(MINUTES) --seed $(SEED) $(ROOMS)

RUST_ROOMS := -f 'crates/qdisc/src/laws/**' -f 'crates/transport/src/cc/**' -f 'crates/transport/src/tcp/recovery/**'
SHARD ?= 0/40
mutants-rust: ## the same of laws, congestion controls and recovery (SHARD=0/40; needs cargo-mutants)
	@cargo mutants --version > /dev/null 2>&1 || \
		{ echo "cargo-mutants is not installed: cargo install --locked cargo-mutants"; exit 1; }
	cargo mutants $(RUST_ROOMS) --shard $(SHARD) --timeout 300 --output target/mutants
