# What a person or CI runs. `make help` lists it.
#
# One profile (release) and always the whole workspace, so that Wasmtime and Cranelift are compiled once: choosing a
# package chooses other features of what they depend on.

CARGO ?= cargo
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
BINARY := $(TARGET)/release/coracle
ISOLATE_TESTS := $(addprefix --test ,isolate determinism growth image stretches)
JAVY_DIFFERENCES := $(shell sed 's/\#.*//; s/^[a-z].*/--skip &/' crates/isolate/tests/javy-differences.txt)
GUEST_JAVY := target/guest-javy/guest-javy.wasm

.DEFAULT_GOAL := help

help: ## This list.
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: build ## Start a server, do a real job in it, watch hostile code being stopped.
	$(CARGO) build --release --workspace --example demo --locked
	$(TARGET)/release/examples/demo --server dist/coracle

build: setup-build ## Build dist/coracle: one file, with the compiled guest inside.
	$(CARGO) build --release --workspace --bins --locked
	mkdir -p dist
	$(BINARY) image append --output dist/coracle.new
	mv dist/coracle.new dist/coracle

test: setup-test lint unit javy deploy ## Everything that CI runs.
	@echo "all tests passed"

lint: setup-build ## Formatting, clippy, and the rules that no compiler checks.
	$(CARGO) fmt --all --check
	cd crates/guest && $(CARGO) fmt --check
	cd crates/transpiler && $(CARGO) fmt --check
	$(CARGO) clippy --release --workspace --all-targets --locked -- -D warnings
	tools/check-tree

unit: setup-test ## All Rust tests, the end-to-end ones among them, and the prelude's.
	tools/promtool >/dev/null
	tools/workerd >/dev/null
	tools/capnweb >/dev/null
	tools/typescript >/dev/null
	$(CARGO) test --release --workspace --locked
	node --test crates/guest/js/test/

wheel: build setup-test ## Build the Python package into dist/: a wheel with the server inside, and its sources.
	clients/python/build dist/coracle dist

javy: setup-test ## Build the guest on javy and run the isolate's tests on it.
	crates/guest/build-javy --out $(GUEST_JAVY)
	CORACLE_TEST_GUEST=$(CURDIR)/$(GUEST_JAVY) $(CARGO) test --release --workspace --locked $(ISOLATE_TESTS) -- $(JAVY_DIFFERENCES)

test262: build ## Run test262 (TEST262_DIR is a checkout of it) in sandboxes, on both guests, beside the engine alone.
	@test -d "$(TEST262_DIR)/harness" || { echo "TEST262_DIR is a checkout of tc39/test262" >&2; exit 2; }
	tests/test262/run --checkout "$(TEST262_DIR)" --binary dist/coracle $(TEST262_FLAGS)
	crates/guest/build-javy --out $(GUEST_JAVY)
	tests/test262/run --checkout "$(TEST262_DIR)" --binary dist/coracle --guest javy --image $(GUEST_JAVY) $(TEST262_FLAGS)

deploy: setup-test ## Render and validate the Helm chart and the Dockerfile, without a cluster.
	deploy/validate

deny: ## Check the dependencies: licences, sources, banned crates, known vulnerabilities. Needs cargo-deny and the network.
	@command -v cargo-deny >/dev/null || { echo "make deny needs cargo-deny: cargo install --locked cargo-deny" >&2; exit 2; }
	$(CARGO) deny check --hide-inclusion-graph

wpt: build setup-test ## Run web-platform-tests of the checkout WPT_DIR, beside Node 20; ARGS=--update writes what is expected.
	tests/wpt/run --checkout $(WPT_DIR) --binary dist/coracle $(ARGS)

bench: build ## Measure against workerd in the same run; writes docs/performance.md. Needs node and a quiet machine.
	benches/run

codemode-bench: build ## Count tokens and time of Code Mode beside single calls of tools; writes docs/codemode-benchmark.md. Needs node and a quiet machine.
	benches/codemode/run

reliability: build ## An hour under full load with hostile workers; writes docs/reliability.md. Needs node and a quiet machine.
	$(CARGO) build --release --workspace --locked --bin coracle-bench
	$(TARGET)/release/coracle-bench reliability --output docs/reliability.md

fuzz: setup-test ## What is too long for CI: hostile input by the hour. Adds to docs/fuzzing.md.
	tools/fuzz

setup-build:
	@tools/setup build

setup-test:
	@tools/setup test

.PHONY: help demo build test lint unit wheel javy test262 deny wpt deploy bench codemode-bench reliability fuzz setup-build setup-test
