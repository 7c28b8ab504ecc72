#!/bin/sh
# Goes on with all grids of this folder on one card: run.sh MELM CONLL VECTORS DIR
# MELM the program (MODEL in the environment: the folder of mini for one without it), CONLL the data as LANG/train.conll …, VECTORS a folder of LANG.vec.gz, DIR where ledgers and tables go.
# Processes share the card under MPS, where that can be started.
set -eu
melm=$1 conll=$2 vectors=$3 out=$4
here=$(dirname "$0")
for t in mono large multi; do
    mkdir -p "$out/$t"
    [ -e "$out/$t/ledger.jsonl" ] || gunzip -c "$here/$t.jsonl.gz" > "$out/$t/ledger.jsonl"
done
nvidia-cuda-mps-control -d || echo "no MPS: slower"
grid() { # TABLE GRID SHARDS JOBS MORE…
    table=$1 name=$2 n=$3 jobs=$4
    shift 4
    for i in $(seq "$n"); do
        "$melm" reproduce "$table" --config "$here/$name.toml" --data "$conll" --test -o "$out/$name" --model "${MODEL:-mini}" \
            --device cuda \
            --shard "$i/$n" --jobs "$jobs" "$@" > "$out/$name.$i.log" 2>&1 &
    done
}
# A processor of 16 cores: DAGA and MulDA are computed there.
grid multi multi 3 3 --threads 1 $(for l in en de es nl; do echo "--vectors $l=$vectors/$l.vec.gz"; done)
grid mono large 6 2 --threads 1
(
    grid mono mono 4 2 --threads 1
    wait
    grid mono control 6 2 --threads 1
    wait
) &
wait
for t in mono large multi control; do
    table=$t
    [ "$t" = multi ] || table=mono
    "$melm" reproduce $table --config "$here/$t.toml" -o "$out/$t" --table-only > /dev/null
done
for t in mono large; do "$melm" reproduce cross --config "$here/$t.toml" -o "$out/$t" --table-only > /dev/null; done
