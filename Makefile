# Everything a checkout needs is made on demand: .venv (tools), the native module in python/kafkaseg,
# downloads in .cache. A second run of any target does only what changed sources ask for.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := $(VENV)/.tools
NATIVE := python/kafkaseg/_native.abi3.so
WHEEL := dist/.wheel

# One interpreter for maturin, clippy and cargo test; two would make each rebuild what the other built.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# Seconds a stored fuzz corpus is replayed and mutated, per target.
export KAFKASEG_FUZZ_SECONDS ?= 20

RUST_SOURCES := $(shell find rust -path rust/fuzz -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print) \
  Cargo.toml Cargo.lock rust-toolchain.toml
PYTHON_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi' -o -name py.typed 2>/dev/null)
# Side-by-side comparisons; the other modules in bench serve these and the micro-benchmarks.
BENCH_SCRIPTS := bench/scan.py bench/append.py bench/lookup.py bench/read.py bench/recover.py
PYTHON_CODE := $(wildcard python tests bench examples)

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(NATIVE) ## scan a real Kafka directory from tests/data
	@$(BIN)/python examples/demo.py

.PHONY: test
test: test-rust test-python ## every test

.PHONY: test-rust
test-rust: $(TOOLS) ## the Rust tests, with the fuzz smoke
	@$(build-tools)
	cargo test --locked --workspace

.PHONY: test-crash
test-crash: $(TOOLS) ## every crash and fault of the simulated disk, not the sample of test-rust
	@$(build-tools)
	KAFKASEG_LONG=1 CARGO_PROFILE_DEV_OPT_LEVEL=1 \
	  cargo test --locked -p kafkaseg-core --test crash -- --include-ignored --show-output

.PHONY: test-python
test-python: $(NATIVE) ## the Python tests: corpus, live brokers, damage
	@$(broker-tools)
	$(BIN)/python -m pytest tests

.PHONY: fuzz-smoke
fuzz-smoke: $(TOOLS) ## only the fuzz smoke (KAFKASEG_FUZZ_SECONDS=n)
	@$(build-tools)
	cargo test --locked -p kafkaseg-core --test fuzz_smoke

.PHONY: lint
lint: $(NATIVE) ## formats, lints, types, stubs, layers
	@$(build-tools)
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/mypy --strict python
	$(BIN)/python -m mypy.stubtest kafkaseg._native
	$(BIN)/python -m pytest -q tests/python/test_layers.py

.PHONY: format
format: $(TOOLS) ## rewrite sources in the house format
	cargo fmt --all
	$(BIN)/ruff check --fix-only --quiet $(PYTHON_CODE)
	$(BIN)/ruff format $(PYTHON_CODE)

.PHONY: bench
bench: $(NATIVE) ## measure; tables on the terminal, JSON in bench/results
	@mkdir -p bench/results
	$(BIN)/python -m pytest bench --benchmark-only --benchmark-json=bench/results/micro.json
	@for script in $(BENCH_SCRIPTS); do echo "== $$script"; $(BIN)/python $$script; done

.PHONY: wheel
wheel: $(WHEEL) ## build dist/*.whl
	@ls dist/*.whl

.PHONY: test-wheel
test-wheel: $(WHEEL) ## install the wheel in an empty environment and scan with it
	rm -rf .cache/wheel-venv
	$(PYTHON) -m venv .cache/wheel-venv
	.cache/wheel-venv/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd .cache && wheel-venv/bin/python ../tests/wheel_smoke.py ../tests/data

.PHONY: clean
clean: ## remove what was built (downloads in .cache stay)
	rm -rf target rust/fuzz/target dist $(VENV) .cache/wheel-venv $(NATIVE)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks bench/results
	find python tests bench examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(TOOLS): requirements-dev.txt
	@$(build-tools)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

$(NATIVE): $(TOOLS) $(RUST_SOURCES) pyproject.toml
	@$(build-tools)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet
	@touch $@

$(WHEEL): $(TOOLS) $(RUST_SOURCES) $(PYTHON_SOURCES) pyproject.toml README.md LICENSE
	@$(build-tools)
	rm -f dist/*.whl
	$(BIN)/maturin build --release --quiet --interpreter $(BIN)/python --out dist
	@touch $@

# One line for each tool that is missing, naming what to install.
define build-tools
fail=0; \
need() { command -v "$$1" >/dev/null || { echo "make: $$1 not found; install $$2" >&2; fail=1; }; }; \
need cargo "Rust with https://rustup.rs (rust-toolchain.toml picks the version)"; \
need cc "a C compiler (apt install gcc, or xcode-select --install)"; \
need $(PYTHON) "Python 3.11 or newer with venv (apt install python3-venv), or set PYTHON="; \
[ $$fail = 1 ] || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "make: $(PYTHON) is older than 3.11; install Python 3.11 or newer, or set PYTHON=" >&2; fail=1; }; \
[ $$fail = 0 ]
endef

define broker-tools
for tool in java mvn; do command -v $$tool >/dev/null || \
  echo "make: $$tool not found; tests against a real broker will be skipped (install a JDK 17 and Maven)" >&2; done
endef
