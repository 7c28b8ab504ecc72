#!/bin/sh
# Checks and measures everything that needs a GPU, in a few runs of at most ten minutes:
#
#   sh bench/gpu.sh pack           here: builds the programs and packs them into carry/gpu.tar.xz (about 4 MB)
#   sh bench/gpu.sh check OUT      there: all golden tests, then compute-sanitizer over some of them
#   sh bench/gpu.sh speed OUT      there: steps of base and mini beside PyTorch, then a profile of their kernels
#   sh bench/gpu.sh tag OUT        there: tagging beside transformers
#
# `there` is a machine with an NVIDIA GPU and a Python with torch and transformers, in a copy of this repository with the
# folder carry. It needs no Rust. Results are written to the folder OUT.
set -eu
cd "$(dirname "$0")/.."
repository=$PWD
programs=/tmp/melm-gpu

pack() {
    cargo build --release -p melm-cli --no-default-features --features cuda
    cargo build --release -p melm-nn --example bench_step
    cargo test -p melm-nn --test golden --no-run
    mkdir -p carry/gpu
    cp target/release/melm target/release/examples/bench_step carry/gpu
    cp "$(ls -t target/debug/deps/golden-* | grep -v '\.d$' | head -n 1)" carry/gpu/golden
    strip carry/gpu/*
    # The tests open their data under the folder in which they were built.
    echo "$repository" > carry/gpu/built_in
    tar -C carry -cJf carry/gpu.tar.xz gpu
    rm -r carry/gpu
    ls -l carry/gpu.tar.xz
}

unpack() {
    mkdir -p "$programs" "$out"
    tar -C "$programs" --strip-components 1 -xJf carry/gpu.tar.xz
    built_in=$(cat "$programs/built_in")
    [ -e "$built_in" ] || { mkdir -p "$(dirname "$built_in")" && ln -s "$repository" "$built_in"; }
    MELM_CUDA_ROOT=$(python3 -c 'import sys; print(sys.prefix)')
    export MELM_CUDA_ROOT VIRTUAL_ENV="$MELM_CUDA_ROOT"
}

check() {
    "$programs/golden" cuda > "$out/golden.txt" 2>&1 || echo "golden tests FAILED"
    tail -n 40 "$out/golden.txt"
    sanitize() { # TOOL TEST…
        tool=$1
        shift
        echo "$tool: $*"
        timeout 150 compute-sanitizer --tool "$tool" --error-exitcode 9 "$programs/golden" --test-threads 1 "$@" \
            > "$out/$tool.txt" 2>&1 || echo "$tool ended with $?"
        tail -n 4 "$out/$tool.txt"
    }
    sanitize memcheck gradients_with_dropout_and_long_sentences masked_models_give_the_same_bits taggers_equal_torch
    sanitize racecheck gradients_with_dropout_and_long_sentences the_same_step_gives_the_same_bits
}

speed() {
    timeout 400 python3 bench/cuda.py --ours "$programs/bench_step" --only base-train,mini-train --batches 16,long \
        --sides ours,eager-bf16,eager-tf32,ceiling --json "$out/cuda.json" | tee "$out/cuda.md"
    sh bench/profile_cuda.sh "$programs/bench_step" > "$out/profile.txt" 2>&1 || echo "no profile: see profile.txt"
    grep -E 'in a step$' "$out/profile.txt" || true
}

tag() {
    MELM="$programs/melm" timeout 560 python3 bench/tagging.py mini base --device cuda | tee "$out/tagging.txt"
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
