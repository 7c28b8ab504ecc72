#!/bin/sh
# Checks and measures everything that needs a GPU, in a few runs of at most ten minutes:
#
#   sh bench/gpu.sh pack           here: builds the programs and packs them into carry/check.tar.xz, speed.tar.xz and tag.tar.xz
#   sh bench/gpu.sh check OUT      there: all golden tests, then compute-sanitizer over some of them
#   sh bench/gpu.sh speed OUT      there: steps of base and mini beside PyTorch, then a profile of their kernels
#   sh bench/gpu.sh tag OUT        there: tagging beside transformers
#
# `there` is a machine with an NVIDIA GPU and a Python with torch and transformers, in a copy of this repository with the
# archive of the command in the folder carry. It needs no Rust. Results are written to the folder OUT.
set -eu
cd "$(dirname "$0")/.."
repository=$PWD
programs=/tmp/melm-gpu

pack() {
    cargo build --release -p melm-cli --no-default-features --features cuda
    cargo build --release -p melm-nn --example bench_step
    cargo test -p melm-nn --test golden --no-run
    pack_one check "$(ls -t target/debug/deps/golden-* | grep -v '\.d$' | head -n 1)" golden
    pack_one speed target/release/examples/bench_step bench_step
    pack_one tag target/release/melm melm
    ls -l carry/*.tar.xz
}

# Packs one program: pack_one COMMAND FILE NAME
pack_one() {
    folder=$(mktemp -d)
    cp "$2" "$folder/$3"
    strip "$folder/$3"
    # The tests open their data under the folder in which they were built.
    echo "$repository" > "$folder/built_in"
    mkdir -p carry
    tar -C "$folder" -cJf "carry/$1.tar.xz" .
    rm -r "$folder"
}

unpack() {
    mkdir -p "$programs" "$out"
    tar -C "$programs" -xJf "carry/$command.tar.xz"
    built_in=$(cat "$programs/built_in")
    [ -e "$built_in" ] || { mkdir -p "$(dirname "$built_in")" && ln -s "$repository" "$built_in"; }
    MELM_CUDA_ROOT=$(python3 -c 'import sys; print(sys.prefix)')
    export MELM_CUDA_ROOT VIRTUAL_ENV="$MELM_CUDA_ROOT"
}

check() {
    status=0
    "$programs/golden" cuda --show-output > "$out/golden.txt" 2>&1 || status=1
    # Without a GPU the tests say `no GPU` and run on the emulator.
    grep -E '^on |no GPU|FAILED|^test result' "$out/golden.txt" | sort | uniq -c
    sanitize memcheck gradients_with_dropout_and_long_sentences masked_models_give_the_same_bits taggers_equal_torch
    sanitize racecheck gradients_with_dropout_and_long_sentences the_same_step_gives_the_same_bits
    return $status
}

# Runs some golden tests under compute-sanitizer: sanitize TOOL TEST…
sanitize() {
    tool=$1
    shift
    timeout 150 compute-sanitizer --tool "$tool" --error-exitcode 9 "$programs/golden" --test-threads 1 "$@" \
        > "$out/$tool.txt" 2>&1 || status=1
    echo "$tool: $(tail -n 1 "$out/$tool.txt")"
}

speed() {
    status=0
    timeout 400 python3 bench/cuda.py --ours "$programs/bench_step" --only base-train,mini-train --batches 16,long \
        --sides ours,eager-bf16,eager-tf32,ceiling --json "$out/cuda.json" > "$out/cuda.md" || status=1
    cat "$out/cuda.md"
    sh bench/profile_cuda.sh "$programs/bench_step" > "$out/profile.txt" 2>&1 || echo "no profile: see profile.txt"
    grep -E 'in a step$' "$out/profile.txt" || true
    return $status
}

tag() {
    status=0
    MELM="$programs/melm" timeout 560 python3 bench/tagging.py mini base --device cuda > "$out/tagging.txt" || status=1
    cat "$out/tagging.txt"
    return $status
}

command=${1:-}
out=${2:-}
case $command in
pack) pack ;;
check | speed | tag)
    [ -n "$out" ] || { echo "usage: sh bench/gpu.sh $command OUT" >&2; exit 2; }
    unpack
    "$command"
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
