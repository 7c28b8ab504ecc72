# The commands of the README, the checks of CI and the documentation as recipes. Each one is also a plain command.

default: check

# Lists the recipes.
list:
    @just --list

# The first command of the README: builds `melm` and augments the example into the folder `more`.
example:
    cargo run --release -p melm-cli -- augment examples/politics/train-100.conll --dev examples/politics/dev-100.conll -o more

# The second command of the README.
test:
    cargo test --workspace

# The checks to run before you send a change.
check: fmt lint docs test arrows figures supply

# Everything that CI runs.
ci:
    bash .ci/run

fmt:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Clippy for the builds without the embedded model, the hub or CUDA.
lint-features:
    cargo clippy -p melm-cli --no-default-features -- -D warnings
    cargo clippy -p melm-nn --no-default-features -- -D warnings
    cargo clippy -p melm-cli --no-default-features --features mini,hub -- -D warnings

# The documentation of the crates.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

arrows:
    bash tools/check_arrows.sh

figures:
    python3 tools/code_figures.py --check

# Checks the licences and the sources of all dependencies.
supply:
    python3 tools/check_supply.py

# Disturbs every file operation of the commands in turn, and kills runs at random moments. Takes some minutes.
faults: build-tests
    python3 tools/check_faults.py target/debug/melm
    python3 tools/check_kills.py target/debug/melm

# Prints the peak memory of commands against the size of their input.
memory: build-tests
    python3 tools/check_memory.py target/debug/melm

# Builds `melm` with the settings of the tests.
build-tests:
    CARGO_PROFILE_DEV_OPT_LEVEL=2 CARGO_PROFILE_DEV_DEBUG=line-tables-only cargo build -p melm-cli

# Runs the tests of the engine with AddressSanitizer. RUSTC_BOOTSTRAP allows the flag on a stable toolchain.
# One test asks for more memory than there is, and expects an error.
asan:
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address RUSTDOCFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/asan \
        ASAN_OPTIONS=allocator_may_return_null=1 cargo test -p melm-nn --target x86_64-unknown-linux-gnu

# Runs the thread pool of the engine in every order in which its threads can run, up to a number of forced switches.
loom:
    cargo run --manifest-path loom/Cargo.toml --target-dir target/loom

# Checks the links of the documentation, and the commands and messages that it shows.
doc-tests:
    cargo test -p melm-cli --test book --test doc_commands --test reference --test transcripts --test bad_inputs

# Writes the generated pages: docs/reference/settings.md, and the options in docs/reference/commands.md.
reference:
    cargo run -q -p melm-cli --example reference

# Builds the documentation in `docs` as a book, into target/book.
book:
    @command -v mdbook > /dev/null || { echo "mdBook is not installed: run \`cargo install mdbook --locked\`" >&2; exit 1; }
    mdbook build docs
    @echo "wrote target/book/index.html"

# Writes the man pages of `melm` and of every command. Read one with `man -l target/man/melm-augment.1`.
man folder="target/man":
    cargo run -q -p melm-cli --example man_pages -- {{folder}}

# Needs cargo-fuzz. Runs each target for a minute, from the seeds in fuzz/seeds. An allocation of more than 512 MB is a
# fault too. RUSTC_BOOTSTRAP allows the sanitizer flags on a stable toolchain.
fuzz seconds="60":
    for target in $(cargo fuzz list); do \
        mkdir -p fuzz/corpus/$target; \
        RUSTC_BOOTSTRAP=1 cargo fuzz run $target fuzz/corpus/$target fuzz/seeds/$target -- \
            -max_total_time={{seconds}} -malloc_limit_mb=512 -timeout=20 || exit 1; \
    done

bench-text:
    python3 bench/text.py
