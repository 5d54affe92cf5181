# The two commands of a newcomer, `make sweep` and `make test`, and what a developer types.

.POSIX:
.DEFAULT_GOAL := help
.PHONY: help sweep build install dist dist-test release readme test test-pumas fleet-demo soak check ceiling bench bench-counted bench-memory fmt bpf golden size

# Tests and benches load this machine only, whatever they type.
test check ceiling bench bench-memory golden: export LONGTAIL_ALLOW_NET = 127.0.0.0/8,::1/128

# What `make sweep` asks for: make sweep ARGS="-w4 -t5:5 -d0.2 -k"
ARGS = -w2 -t5:5 -d0.1

# Where man pages and completions go (PREFIX/share, where the shell and man find them).
SHARE = $(HOME)/.local/share

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 20

sweep: ## Install what is missing, build, and measure Puma (ARGS="-w4 -t5:5" to choose how)
	@bin/install-missing sweep
	cargo run --release --locked --package longtail -- sweep $(ARGS)

build: ## The release build
	@bin/install-missing build
	cargo build --release --locked

install: ## Put longtail where cargo puts programs (~/.cargo/bin), man pages and completions under SHARE (~/.local/share)
	@bin/install-missing build
	cargo install --locked --path crates/longtail
	"$${CARGO_INSTALL_ROOT:-$${CARGO_HOME:-$$HOME/.cargo}}/bin/longtail" generate-docs "$(SHARE)"

# make dist ARGS=x86_64 for one architecture
dist: ARGS =
dist: ## What is released, into target/dist: static binaries for x86_64 and aarch64 as tarball, Debian package, gem, wheel, container image
	@bin/install-missing dist
	@bin/dist $(ARGS)

dist-test: ## Install, try and uninstall each of them in clean roots of Debian 12 and 13, and run the binary where there is nothing else (as root)
	@bin/install-missing dist-test
	@bin/try-in-roots

release: ARGS =
release: ## make dist twice in two folders, the same to the byte, after all that a release asks for; publishes nothing
	@bin/release $(ARGS)

readme: ## Run the command of the README's first screen, and put what it prints there
	@bin/install-missing sweep
	cargo build --release --locked --package longtail
	@bin/refresh-readme

# No documentation here has code that runs: run-tests leaves out the fourteen runs of rustdoc that would say so.
test: ## Install what is missing, then all that must pass: format, lints, documentation, tests
	@bin/install-missing test
	@$(MAKE) --no-print-directory check
	@bin/run-tests --workspace --locked --no-fail-fast
	@if $(COUNTS); then $(MAKE) --no-print-directory ceiling; else \
		echo "ceiling: skipped: perf counts no instructions here (make ceiling has valgrind count them, in some minutes more)"; \
	fi

# make test-pumas DIRS="/src/puma-6.6.1 /src/puma-8.0.2": checkouts whose extension is built; without DIRS the Puma on PATH
test-pumas: ## One contract for every Puma: start, counts, order of service, forecast, stop (DIRS="CHECKOUT …")
	LONGTAIL_PUMAS="$(DIRS)" cargo test --locked --package longtail --test cli -- pumas:: deploys:: --nocapture --test-threads=1

fleet-demo: ## Two boxes on this machine, with Puma on one and the load from the other, by the playbooks of longtail fleet (needs root)
	@bin/install-missing fleet
	cargo build --release --locked --package longtail
	@bin/fleet-demo

soak: ## The long form of what make test does in a short one: kill -9 of everything, of far generators too, each system call refused with each error, all situations, sockets and bodies, 1000 searches for a capacity on each of a dozen servers (25 minutes)
	@bin/install-missing test
	LONGTAIL_SOAK=1 LONGTAIL_SEED=$$(date +%s) cargo test --locked --package judge --test simulated -- --nocapture
	LONGTAIL_SOAK=1 CARGO_PROFILE_RELEASE_LTO=off cargo test --release --locked --package capacity --test simulated -- --nocapture
	LONGTAIL_SOAK=1 cargo test --locked --package queueing --test queueing -- coverage::
	LONGTAIL_SOAK=1 cargo test --locked --package longtail --test cli -- bodies:: fleet:: kills:: pumas:: refused:: scenarios:: situations::

check: ## The fast part of it: format, lints, documentation, what dependencies may be
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	@bin/check-dependencies

# Whether the processor counts instructions, and we may ask it.
COUNTS = perf stat -x, -e instructions:u true 2>&1 | grep -q '^[0-9]'

# A release build: of a debug build no instructions are worth counting.
ceiling: ## How many instructions a request takes, against their ceiling (perf's count, else valgrind's)
	@if $(COUNTS) || command -v valgrind >/dev/null; then \
		cargo build --release --locked --package longtail && \
		LONGTAIL_RELEASE="$$(cd "$${CARGO_TARGET_DIR:-target}" && pwd)/release/longtail" \
			cargo test --locked --package bench --test bench -- ceiling:: --nocapture; \
	else \
		echo "ceiling: skipped: neither perf nor valgrind counts instructions here"; \
	fi

# make bench ARGS="--only cost --rounds 9" (see target/release/bench --help)
bench: ARGS =
bench: ## What the generator costs, beside others (QUICK=1: under a minute, once built; ARGS="--only cost")
	@bin/install-missing bench
	cargo build --release --locked --package longtail --package bench
	PATH="$${CARGO_TARGET_DIR:-target}/tools/bin:$$PATH" \
		cargo run --release --locked --quiet --package bench --bin bench -- $${QUICK:+--quick} $(ARGS)

# make bench-counted ARGS="64" (numbers of connections)
bench-counted: ARGS =
bench-counted: ## Instructions a request, the kernel's too, beside wrk's and the floor's: counted in an emulated machine (12 minutes)
	@bin/install-missing counted
	cargo build --release --locked --package longtail --package bench
	@bin/count-instructions $(ARGS)

bench-memory: ## The memory of a run of 10^8 requests
	@$(MAKE) --no-print-directory bench ARGS="--only memory --memory-requests 100000000"

size: ## Lines of each crate, and the rules of the house: no name twice, no circle of files, no parameter that is a tuple
	@cargo run --locked --quiet --package bench --bin size

fmt: ## Format all code
	cargo fmt --all

bpf: ## Compile the kernel's part anew (clang 14): crates/probe/src/bpf/path.bpf.o
	@bin/build-bpf

golden: ## Write the expected reports anew from what the code prints; read the diff before you commit it
	UPDATE_GOLDEN=1 cargo test --workspace --locked --no-fail-fast
