#!/bin/sh
# Shows where the time of a training step on a GPU goes: bench/profile_cuda.sh BENCH_STEP ["SHAPE BATCH" ...]
#
# Runs BENCH_STEP (a built bench_step) under Nsight Compute, every kernel launched separately, and prints for each kernel
# its calls and its microseconds in one step, the slowest first. Without further arguments it profiles "mini 16",
# "base 16" and "base long". Kernels run one after another, so that the sum is more than the time of a step. The clocks
# and the caches are left as they are. MELM_CUDA_ROOT names the folder of the CUDA libraries, as for bench_step.
set -eu
ours=$1
shift
[ $# -gt 0 ] || set -- "mini 16" "base 16" "base long"
export MELM_CUDA_ROOT="${MELM_CUDA_ROOT:-$(python3 -c 'import sys; print(sys.prefix)')}"
N_STEPS=3          # the first step and two more
MAX_KERNELS=2500   # keeps a run below 40 seconds
for run in "$@"; do
    shape=${run% *} batch=${run#* }
    timeout 60 "${NCU:-ncu}" --clock-control none --cache-control none --metrics gpu__time_duration.sum --csv --page raw \
        --print-units base --launch-count $MAX_KERNELS --kill yes \
        "$ours" "$shape" train $((N_STEPS - 1)) cuda-eager "$batch" |
        python3 "$(dirname "$0")/profile_table.py" "$shape $batch" $N_STEPS
done
