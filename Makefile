# Lists its targets when called alone. `make ready` is what CI runs.

# The machine's own triple; `make build TARGET=x86_64-unknown-linux-musl` where that is installed.
TARGET  ?= $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
BUILT   := $(or $(CARGO_TARGET_DIR),target)
KEYWARD := $(BUILT)/$(TARGET)/release/keyward
# OpenSSL is much of the binary, and what is fast in it is assembly. Cargo builds it anew when CFLAGS are others, and
# they are when it is to be configured otherwise.
SMALL   := -Os -DCI_PERL=$(shell cksum < .ci/perl | cut -d ' ' -f 1)
STATIC  := CFLAGS='$(SMALL)' RUSTFLAGS='-C target-feature=+crt-static' cargo
RELEASE := --locked --release --target $(TARGET)
STAGES  := check test static interop bench

.PHONY: help demo build $(STAGES) ready
.NOTPARALLEL:

help: ## lists the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 17

demo: build ## shows the main job in a minute: a call allowed, one denied, one malformed
	@$(STATIC) run --quiet $(RELEASE) --example demo -- $(KEYWARD)

build: ## builds the static binary
	@.ci/need build
	$(STATIC) rustc $(RELEASE) --bin keyward -- $$(.ci/link $(TARGET))
	@.ci/threads $(BUILT)/$(TARGET)/release
	@ls -l $(KEYWARD)

test: ## runs the tests against a debug build
	@.ci/need test
	cargo test --locked

check: ## formatting, lints and documentation, without a warning
	@.ci/need check
	cargo fmt --check && cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --quiet

static: build ## shows that the binary is static, passes the tests, and runs in an empty root
	@.ci/need static
	tests/static/run $(KEYWARD)

interop: build ## runs MCP clients that others wrote against the static binary
	@.ci/need interop
	INTEROP_CACHE=$(abspath $(BUILT))/interop tests/interop/run $(KEYWARD)

bench: build ## measures the static binary beside its peers
	@.ci/need bench
	@$(STATIC) build $(RELEASE) --example record
	@CARGO_TARGET_DIR=$(abspath $(BUILT))/bench cargo run --locked --release --manifest-path tests/bench/Cargo.toml -- $(KEYWARD) $(dir $(KEYWARD))examples/record

ready: ## all of check, test, static, interop and bench: what CI runs
	@.ci/need build $(STAGES)
	@set -e; for stage in $(STAGES); do begun=$$(date +%s); $(MAKE) --no-print-directory $$stage; \
	echo "-- $$stage: $$(($$(date +%s) - begun)) s"; done
