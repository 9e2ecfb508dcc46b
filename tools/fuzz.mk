# Inputs that nobody wrote: for the endpoints of TCP, and for commands.

FUZZ_SECONDS ?= 300
FUZZ_CORPUS := fuzz/corpus/endpoints
FUZZ_FOUND := target/fuzz/found
RUST_HOST := $(shell rustc -vV 2> /dev/null | sed -n 's/^host: //p')
FUZZ := target/fuzz/$(RUST_HOST)/fuzz/endpoints
# What cargo-fuzz passes too; none of it needs a nightly compiler.
FUZZ_FLAGS := --cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
	-Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares

$(FUZZ): $(RUST_SOURCES) $(shell find fuzz -name '*.rs' -o -name Cargo.toml)
	RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --quiet --locked --profile fuzz --package redtail-fuzz \
		--features libfuzzer --bin endpoints --target $(RUST_HOST) --target-dir target/fuzz
	@touch $@

fuzz: $(FUZZ) ## look for inputs that break TCP's endpoints (FUZZ_SECONDS=300; needs a C++ compiler)
	@mkdir -p $(FUZZ_FOUND)
	$(FUZZ) -max_len=700 -timeout=10 -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
		-artifact_prefix=target/fuzz/ $(FUZZ_FOUND) $(FUZZ_CORPUS)

fuzz-corpus: $(FUZZ) ## the smallest set of found inputs that reaches everything, as the corpus
	rm -rf target/fuzz/merged && mkdir -p target/fuzz/merged $(FUZZ_FOUND)
	$(FUZZ) -set_cover_merge=1 -use_counters=0 target/fuzz/merged $(FUZZ_FOUND) $(FUZZ_CORPUS)
	rm -rf $(FUZZ_CORPUS) && mv target/fuzz/merged $(FUZZ_CORPUS)

SECONDS ?= 300
SEED ?= 1

attack: dev ## damaged files and recordings, random experiments, killed commands, figures that must agree (SECONDS=300 SEED=1)
	PYTHONPATH=tests $(PY) -m attack --seconds $(SECONDS) --seed $(SEED) $(if $(ROUNDS),--rounds $(ROUNDS))
