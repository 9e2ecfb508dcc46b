# How the environment and the native module are made.

# One lock has every package with its version and the hashes of its files. uv installs what is asked for at these
# versions, in a tenth of the time of pip, and refuses a file of another hash. pip brings uv itself.
define INSTALL
	@$(BIN)/uv pip install --quiet --system-certs -c requirements.lock -r pyproject.toml $(1)
	@touch $@
endef

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "redtail needs Python 3.11 or later; name it with: make PYTHON=python3.x"; exit 1; }
	@command -v cargo > /dev/null || \
		{ echo "redtail needs a Rust toolchain; see https://rustup.rs"; exit 1; }
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.uv: requirements.lock | $(VENV)/.created
	@sed -n '/^uv==/,/[^\\]$$/p' $< > $(VENV)/uv.txt
	@$(PY) -m pip install --quiet --require-hashes --no-deps -r $(VENV)/uv.txt
	@touch $@

$(VENV)/.runtime: requirements.lock pyproject.toml | $(VENV)/.uv
	@echo "Installing what redtail needs, at locked versions"
	$(call INSTALL,--extra build)

$(VENV)/.dev: requirements.lock pyproject.toml | $(VENV)/.runtime
	@echo "Installing what the tests need, at locked versions"
	$(call INSTALL,--extra build --extra dev $(EXTRAS))

$(VENV)/.docs: requirements.lock pyproject.toml | $(VENV)/.runtime
	@echo "Installing what the documentation site needs, at locked versions"
	$(call INSTALL,--extra docs)

# Two stamps: .native says that the module is built from the present sources, .release besides
# that it is the build for users, which benchmarks and figures of speed need.
# FEATURES=--no-default-features leaves out the compiler of plug-ins, which takes as long to build as all the rest.
FEATURES ?=
define BUILD_NATIVE
	@PIP_QUIET=1 $(BIN)/maturin develop --uv --profile $(1) --locked --quiet $(FEATURES) > $(VENV)/build.log 2>&1 || \
		{ cat $(VENV)/build.log; exit 1; }
	$(if $(filter Linux-x86_64,$(HOST)),$(call BUILD_GUEST,build,$(1),$(1)))
endef

# What virtual machines need, without the names of functions: it is loaded anew for each of them. With
# redtail-py named as well, dependencies have the same features as in the native module, and what was
# compiled for it is used. The second argument is a profile, the third the folder of what it builds.
define BUILD_GUEST
	@cargo $(1) --quiet --locked --profile $(2) $(FEATURES) -p redtail-py -p redtail-live --bin redtail-guest
	@cargo $(1) --quiet --locked --profile $(2) -p redtail-turns
	@strip -o $(VIRTUAL)/agent $(TARGET)/$(3)/redtail-guest
	@strip -o $(VIRTUAL)/turns.so $(TARGET)/$(3)/libredtail_turns.so
endef

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
