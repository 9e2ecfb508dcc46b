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

# npm's packages at the versions of the lock; none of them runs a script when it is installed.
LAB_PACKAGES := lab/node_modules/.package-lock.json
$(LAB_PACKAGES): lab/package.json lab/package-lock.json
	@command -v npm > /dev/null || { echo "The page needs Node.js and npm (Debian: apt install npm)"; exit 1; }
	cd lab && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

LAB_PAGE := target/lab/index.html
LAB_SOURCES := $(wildcard lab/build.mjs lab/src/* lab/scenes/*)

lab: $(LAB_PAGE) ## the laboratory in a web page, in target/lab (needs Node.js and npm)

$(LAB_PAGE): $(LAB_ENGINE) $(LAB_PACKAGES) $(LAB_SOURCES)
	node lab/build.mjs
	@echo "to use it: $(PYTHON) -m http.server --bind 127.0.0.1 --directory target/lab"

check-lab: $(LAB_PACKAGES) ## types, lints and unit tests of the laboratory's page
	cd lab && npm run --silent check && npm run --silent test
