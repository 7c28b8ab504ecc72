#!/bin/sh
# Runs one grid on one GPU, in several processes that share the GPU under MPS: run.sh MELM DATA GRID OUT SHARDS JOBS SECONDS
# MELM is the program; if it is built without mini, set MODEL to the folder of mini. DATA is a folder of LANG/train.conll …
# Finished cells are in OUT/ledger*.jsonl. The same command continues an interrupted grid. TABLE sets the table (default: mono).
set -eu
melm=$1 data=$2 grid=$3 out=$4 n=$5 jobs=$6 seconds=$7
nvidia-cuda-mps-control -d 2>/dev/null || true
mkdir -p "$out"
for i in $(seq "$n"); do
    timeout "$seconds" "$melm" reproduce "${TABLE:-mono}" --config "$grid" --data "$data" --test -o "$out" --model "${MODEL:-mini}" \
        --device cuda --shard "$i/$n" --jobs "$jobs" --threads 1 > "$out/log.$i" 2>&1 &
done
wait
