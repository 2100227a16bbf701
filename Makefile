# What a person or CI runs. `make help` lists it.
#
# One profile (release) and always the whole workspace, so that Wasmtime and Cranelift are compiled once: choosing a
# package chooses other features of what they depend on.

CARGO ?= cargo
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
BINARY := $(TARGET)/release/coracle
ISOLATE_TESTS := $(patsubst crates/isolate/tests/%.rs,--test %,$(wildcard crates/isolate/tests/*.rs))
JAVY_DIFFERENCES := $(shell sed 's/\#.*//; s/^[a-z].*/--skip &/' crates/isolate/tests/javy-differences.txt)
GUEST_JAVY := target/guest-javy/guest-javy.wasm

.DEFAULT_GOAL := help

help: ## This list.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

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
	$(CARGO) clippy --release --workspace --all-targets --locked -- -D warnings
	tools/check-tree

unit: setup-test ## All Rust tests, the end-to-end ones among them, and the prelude's.
	tools/promtool >/dev/null
	tools/workerd >/dev/null
	$(CARGO) test --release --workspace --locked
	node --test crates/guest/js/test/

wheel: build setup-test ## Build the Python package into dist/: a wheel with the server inside, and its sources.
	clients/python/build dist/coracle dist

javy: setup-test ## Build the guest on javy and run the isolate's tests on it.
	crates/guest/build-javy --out $(GUEST_JAVY)
	CORACLE_TEST_GUEST=$(CURDIR)/$(GUEST_JAVY) $(CARGO) test --release --workspace --locked $(ISOLATE_TESTS) -- $(JAVY_DIFFERENCES)

deploy: setup-test ## Render and validate the Helm chart and the Dockerfile, without a cluster.
	deploy/validate

bench: build ## Measure against workerd in the same run; writes docs/performance.md. Needs node and a quiet machine.
	benches/run

verify: setup-test ## What is too long for CI: fuzzing by the hour. Writes verification/.
	tools/verify

setup-build:
	@tools/setup build

setup-test:
	@tools/setup test

.PHONY: help demo build test lint unit wheel javy deploy bench verify setup-build setup-test
