#!/bin/sh
# Checks and measures everything that needs a GPU, in a few runs of at most ten minutes:
#
#   sh bench/gpu.sh pack           here: builds the programs and packs them into carry/check.tar.xz, speed.tar.xz and tag.tar.xz
#   sh bench/gpu.sh check OUT      there: all golden tests of four versions, then compute-sanitizer over some of them
#   sh bench/gpu.sh speed OUT      there: steps of five versions of the kernels in turns, steps of base and mini beside PyTorch, and a
#                                  profile of their kernels
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
    build_versions
    pack_programs check target/versions/golden-*
    pack_programs speed target/versions/bench_step-*
    pack_programs tag target/release/melm
    ls -l carry/*.tar.xz
}

# Builds bench_step and the golden tests of these versions into target/versions: `before`, the last commit that was measured as a whole
# (without tests); `main`, this one; and this one with each of the patches in results/2026-11-19-gpu.
build_versions() {
    git worktree prune
    rm -rf target/versions target/patches target/tree
    mkdir -p target/versions
    for patch in eight-warps f16-tiles; do
        mkdir -p "target/patches/$patch"
        zcat "results/2026-11-19-gpu/$patch.patch.gz" | git mailsplit -o"target/patches/$patch" > /dev/null
    done
    build_version before 38c73ae
    rm target/versions/golden-before
    build_version main HEAD
    build_version eight-warps HEAD eight-warps/0001
    build_version f16-tiles HEAD f16-tiles/0001
    build_version f16-tiles-eight-warps HEAD f16-tiles/0001 f16-tiles/0002
}

# Builds one version: build_version NAME COMMIT PATCH…
build_version() {
    version=$1
    git worktree add --quiet --force --detach target/tree "$2"
    shift 2
    for patch; do
        git -C target/tree apply "$repository/target/patches/$patch"
    done
    export CARGO_TARGET_DIR="$repository/target/tree-build"
    (cd target/tree && cargo build --release -p melm-nn --example bench_step && cargo test -p melm-nn --test golden --no-run)
    cp target/tree-build/release/examples/bench_step "target/versions/bench_step-$version"
    cp "$(ls -t target/tree-build/debug/deps/golden-* | grep -v '\.d$' | head -n 1)" "target/versions/golden-$version"
    unset CARGO_TARGET_DIR
    git worktree remove --force target/tree
}

# Packs programs: pack_programs COMMAND FILE…
pack_programs() {
    archive=carry/$1.tar.xz
    shift
    folder=$(mktemp -d)
    cp "$@" "$folder"
    strip "$folder"/*
    # The tests open their data under the folder in which they were built, which is target/tree in this one.
    echo "$repository" > "$folder/built_in"
    mkdir -p carry
    XZ_OPT=-9 tar -C "$folder" -cJf "$archive" .
    rm -r "$folder"
}

unpack() {
    mkdir -p "$programs" "$out"
    tar -C "$programs" -xJf "carry/$command.tar.xz"
    built_in=$(cat "$programs/built_in")
    [ -e "$built_in" ] || { mkdir -p "$(dirname "$built_in")" && ln -s "$repository" "$built_in"; }
    mkdir -p target
    [ -e target/tree ] || ln -s "$repository" target/tree
    MELM_CUDA_ROOT=$(python3 -c 'import sys; print(sys.prefix)')
    export MELM_CUDA_ROOT VIRTUAL_ENV="$MELM_CUDA_ROOT"
}

check() {
    status=0
    for version in main eight-warps f16-tiles f16-tiles-eight-warps; do
        echo "$version:"
        timeout 90 "$programs/golden-$version" cuda --show-output > "$out/golden-$version.txt" 2>&1 || status=1
        # Without a GPU the tests say `no GPU` and run on the emulator.
        grep -q '^on ' "$out/golden-$version.txt" && ! grep -q 'no GPU' "$out/golden-$version.txt" || status=1
        grep -E '^on |no GPU|FAILED|^test result' "$out/golden-$version.txt" | sort | uniq -c
    done
    sanitize memcheck gradients_with_dropout_and_long_sentences masked_models_give_the_same_bits taggers_equal_torch
    sanitize racecheck gradients_with_dropout_and_long_sentences the_same_step_gives_the_same_bits
    return $status
}

# Runs some golden tests under compute-sanitizer: sanitize TOOL TEST…
sanitize() {
    tool=$1
    shift
    timeout 100 compute-sanitizer --tool "$tool" --error-exitcode 9 "$programs/golden-main" --test-threads 1 "$@" \
        > "$out/$tool.txt" 2>&1 || status=1
    echo "$tool: $(tail -n 1 "$out/$tool.txt")"
}

speed() {
    status=0
    timeout 180 python3 bench/gpu_versions.py "$programs" --json "$out/versions.json" > "$out/versions.md" || status=1
    cat "$out/versions.md"
    timeout 280 python3 bench/cuda.py --ours "$programs/bench_step-main" --only base-train,mini-train --batches 16,long \
        --sides ours,eager-bf16,eager-tf32,ceiling --json "$out/cuda.json" > "$out/cuda.md" || status=1
    cat "$out/cuda.md"
    timeout 120 sh bench/profile_cuda.sh "$programs/bench_step-main" > "$out/profile.txt" 2>&1 || echo "no profile: see profile.txt"
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
