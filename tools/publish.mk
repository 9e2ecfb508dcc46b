# What users install: wheels, the source distribution, the container.

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

$(VENV)/.wheel: requirements.lock pyproject.toml | $(VENV)/.runtime
	@echo "Installing what wheels for Linux are built with, at locked versions"
	$(call INSTALL,--extra build --extra wheel)

wheel: build-wheel ## a wheel of the build for users in dist, and runs with it in an empty environment
	$(MAKE) test-wheel

# RUSTFLAGS and CARGO_TARGET_DIR are Cargo's own; WHEEL_FLAGS are maturin's, for instance --target.
ifneq ($(ZIG),)
build-wheel: export PATH := $(abspath $(BIN)):$(PATH)
endif
# The laboratory's page, for `redtail explore`. LAB= (nothing) builds a wheel without it, which needs neither Node.js nor
# a compiler for WebAssembly.
LAB ?= yes
.PHONY: packed-lab
packed-lab: $(if $(LAB),lab)
	@rm -rf python/redtail/lab
	$(if $(LAB),@cp -R target/lab python/redtail/lab)

# Numbers of lines, three quarters of a native module, stay out of what users install.
build-wheel: $(VENV)/.runtime $(if $(ZIG),$(VENV)/.wheel) packed-lab ## the wheel alone (LAB= without the laboratory's page)
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

# In the order in which crates.io needs them.
CRATES := redtail-inert redtail-core redtail-qdisc redtail-transport

# Each is packed and compiled from its package alone, without features, and nothing is sent. Needs the index of crates.io.
check-publish: ## whether the crates for other projects can be published (nothing is)
	cargo publish --dry-run --locked $(addprefix --package ,$(CRATES))

check-release: ## whether version, changelog and citation agree with TAG=v0.1.0; prints the release's notes
	@$(PYTHON) tests/release.py $(TAG)
