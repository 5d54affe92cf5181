# The two commands of a newcomer, `make sweep` and `make test`, and what a developer types.

.POSIX:
.DEFAULT_GOAL := help
.PHONY: help sweep build install test check fmt bpf golden

# What `make sweep` asks for: make sweep ARGS="-w4 -t5:5 -d0.2 -k"
ARGS = -w2 -t5:5 -d0.1

help: ## This list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 16

sweep: ## Install what is missing, build, and measure Puma (ARGS="-w4 -t5:5" to choose how)
	@bin/install-missing sweep
	cargo run --release --locked --package longtail -- sweep $(ARGS)

build: ## The release build
	@bin/install-missing build
	cargo build --release --locked

install: ## Put longtail where cargo puts programs (~/.cargo/bin)
	@bin/install-missing build
	cargo install --locked --path crates/longtail

test: ## Install what is missing, then all that must pass: format, lints, documentation, tests
	@bin/install-missing test
	@$(MAKE) --no-print-directory check
	cargo test --workspace --locked --no-fail-fast

check: ## The fast part of it: format, lints, documentation
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

fmt: ## Format all code
	cargo fmt --all

bpf: ## Compile the kernel's part anew (clang 14): crates/probe/src/bpf/path.bpf.o
	@bin/build-bpf

golden: ## Write the expected reports anew from what the code prints; read the diff before you commit it
	UPDATE_GOLDEN=1 cargo test --workspace --locked --no-fail-fast
