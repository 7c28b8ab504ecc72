#!/bin/sh
# Continues all grids of the test sets on one GPU: run.sh MELM CONLL VECTORS DIR
# MELM is the program. If it is built without mini, set MODEL in the environment to the folder of mini. CONLL is the data as
# LANG/train.conll …, VECTORS is a folder of LANG.vec.gz, and DIR is the folder for the ledgers.
# Programs after commit 47e68cc have other keys for melm, melm-both and melm-codemix. They train these taggers again.
# The processes share the GPU under MPS if it can be started. MPS is left running. tables.sh writes the tables.
set -eu
melm=$1 conll=$2 vectors=$3 out=$4
here=$(dirname "$0")
nvidia-cuda-mps-control -d || echo "MPS was not started. Unless it runs already, the runs will be slower."
running=
grid() { # TABLE GRID SHARDS MORE…
    table=$1 name=$2 n=$3
    shift 3
    mkdir -p "$out/$name"
    if ! [ -e "$out/$name/ledger.jsonl" ]; then
        gunzip -c "$here/$name.jsonl.gz" > "$out/$name/committed"
        mv "$out/$name/committed" "$out/$name/ledger.jsonl"
    fi
    for i in $(seq "$n"); do
        "$melm" reproduce "$table" --config "$here/$name.toml" --data "$conll" --test -o "$out/$name" --model "${MODEL:-mini}" \
            --device cuda --shard "$i/$n" --jobs 2 --threads 1 "$@" > "$out/$name.$i.log" 2>&1 &
        running="$running $!:$out/$name.$i.log"
    done
}
all_done() {
    failed=0
    for job in $running; do
        wait "${job%%:*}" || { failed=1 && echo "failed, see ${job#*:}"; }
    done
    running=
    [ $failed = 0 ]
}
# The machine has 16 CPU cores. DAGA and MulDA run on the CPU.
grid multi multi 4 --vectors "en=$vectors/en.vec.gz" --vectors "de=$vectors/de.vec.gz" --vectors "es=$vectors/es.vec.gz" --vectors "nl=$vectors/nl.vec.gz"
grid mono large 6
grid mono mono 4
all_done
for name in control defaults cross cross-large cross-two cross-large-two; do grid mono $name 2; done
grid multi longer 2
all_done
