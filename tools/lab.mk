# The laboratory in a web page: its engine. The page itself is made in `lab`.

LAB_ENGINE := target/lab-engine/redtail.wasm
WASM := wasm32-unknown-unknown
# A page takes no more memory than this, in bytes. The flags that the host's code has are not for WebAssembly.
lab-engine: export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS := -Clink-arg=--max-memory=1073741824

lab-engine: $(LAB_ENGINE) ## the engine as a WebAssembly module, in target/lab-engine

# rustup adds the target if it is missing; rust-toolchain.toml names it.
$(LAB_ENGINE): $(RUST_SOURCES)
	@rustup target add $(WASM) > /dev/null 2>&1 || true
	cargo rustc --locked --quiet --package redtail-web --lib --crate-type cdylib --profile web --target $(WASM)
	@mkdir -p $(@D)
	cp $(TARGET)/$(WASM)/web/redtail_web.wasm $@
	@$(PYTHON) -c 'import gzip, sys; data = open(sys.argv[1], "rb").read(); \
		print(f"{sys.argv[1]}: {len(data)} bytes, {len(gzip.compress(data, 9))} with gzip -9")' $@
