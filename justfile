# The checks of CI as recipes. Each one is also a plain command.

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

# Needs cargo-fuzz. Runs each target for a minute. RUSTC_BOOTSTRAP allows the sanitizer flags on a stable toolchain.
fuzz seconds="60":
    for target in conll configs jsonl parquet repair spacy spacy_data tokenizers unlabelled vectors weights; do \
        RUSTC_BOOTSTRAP=1 cargo fuzz run $target -- -max_total_time={{seconds}}; \
    done

bench-text:
    python3 bench/text.py
