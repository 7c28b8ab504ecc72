#!/bin/sh
# Runs everything behind the paper's remaining tables and figures on one GPU: run.sh MELM CONLL VECTORS OUT SECONDS
# MELM is the program; if it is built without mini, set MODEL to the folder of mini. CONLL is a folder of LANG/train.conll …,
# VECTORS one of LANG.vec.gz, or `pieces`. Each process is stopped after SECONDS. The same command continues where it stopped.
# It leaves OUT/NAME/ledger.jsonl (entities: entities.jsonl), one file for each grid, and OUT/*.log. tables.sh makes the tables.
# Other environment variables: DEVICE (default cuda), SHARDS (most processes of a grid), GRIDS (folder of the grids, default: this
# one). A test runs this script with small grids.
set -eu
melm=$1 conll=$2 vectors=$3 out=$4 seconds=$5
here=$(cd "$(dirname "$0")" && pwd)
grids=${GRIDS:-$here}
most=${SHARDS:-99}
if [ "$vectors" = pieces ]; then
    vectors="--vectors pieces"
else
    vectors=$(for l in en de es nl; do printf ' --vectors %s=%s' $l "$(ls "$vectors"/*$l.vec.gz)"; done)
fi
[ "${DEVICE:-cuda}" != cuda ] || nvidia-cuda-mps-control -d || echo "MPS was not started. Unless it runs already, the runs will be slower."
mkdir -p "$out"
running=
start() { # TABLE OUT SHARDS JOBS MORE…
    table=$1 name=$2 n=$3 jobs=$4
    shift 4
    [ "$n" -le "$most" ] || n=$most
    for i in $(seq "$n"); do
        shard="--shard $i/$n"
        [ "$n" != 1 ] || shard=
        # shellcheck disable=SC2086 # options are several words
        timeout "$seconds" "$melm" reproduce "$table" --config "$grids/$table.toml" --data "$conll" -o "$out/$name" \
            --model "${MODEL:-mini}" --device "${DEVICE:-cuda}" $shard --jobs "$jobs" --threads 1 "$@" \
            > "$out/$name.$i.log" 2>&1 &
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
# One process alone, for times that no other process lengthens. About a minute.
start costs costs-alone 1 1 --only language=en --only draw=1
all_done
# shellcheck disable=SC2086 # options are several words
start costs-multi costs-alone-multi 1 1 --only draw=1 $vectors
all_done
# Everything else together. DAGA runs on the CPU, one training set in each shard of entities; the machine has 16 cores.
start entities entities 12 1
start predictions predictions 1 1
start add-entity add-entity 3 2 --test
start rounds rounds 2 2
start masking masking 2 2
start costs costs 2 2
# shellcheck disable=SC2086 # options are several words
start costs-multi costs-multi 1 3 $vectors
all_done
# One file for each grid.
for name in costs-alone costs-alone-multi add-entity rounds masking costs costs-multi entities; do
    for kind in ledger entities; do
        set -- "$out/$name/$kind"-*-of-*.jsonl
        [ -e "$1" ] || continue
        cat "$@" >> "$out/$name/$kind.jsonl"
        rm "$@"
    done
done
echo "done: $out"
