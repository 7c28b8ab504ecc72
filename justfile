# What a reviewer runs; plain cargo does it all too.

default: check

check: fmt lint docs test arrows

fmt:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings

docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

test:
    cargo test --workspace

arrows:
    bash tools/check_arrows.sh

# Needs cargo-fuzz; a minute each. On a stable toolchain RUSTC_BOOTSTRAP lets the sanitizer flags through.
fuzz seconds="60":
    for target in conll jsonl repair vectors; do \
        RUSTC_BOOTSTRAP=1 cargo fuzz run $target -- -max_total_time={{seconds}}; \
    done

bench-text:
    python3 bench/text.py
