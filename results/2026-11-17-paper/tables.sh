#!/bin/sh
# Makes the paper's remaining tables and figures from ledgers, without training: tables.sh MELM [LEDGERS [FIGURES]] > tables.md
# LEDGERS is the OUT of run.sh [default: this folder, where ledgers are NAME.jsonl.gz]. A table without a ledger is named as not
# measured. Figures are written to FIGURES [default: none], those of docs/figures among them.
set -eu
melm=$1
here=$(cd "$(dirname "$0")" && pwd)
ledgers=${2:-$here} figures=${3:-}
paper=$here/../../crates/melm-eval/configs/paper
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fill() { # NAME KIND: puts the ledger of NAME into $dir/NAME; fails if there is none
    [ ! -e "$dir/$1/$2.jsonl" ] || return 0
    mkdir -p "$dir/$1"
    if [ -e "$ledgers/$1/$2.jsonl" ]; then
        cp "$ledgers/$1/$2.jsonl" "$dir/$1/"
    elif [ -e "$ledgers/$1.jsonl.gz" ]; then
        gunzip -c "$ledgers/$1.jsonl.gz" > "$dir/$1/$2.jsonl"
    else
        return 1
    fi
}
draw() { # FILE NAME: copies a figure
    [ -z "$figures" ] || cp "$1" "$figures/$2.svg"
}
table() { # TITLE TABLE NAME MORE…
    title=$1 table=$2 name=$3
    shift 3
    printf '## %s\n\n' "$title"
    kind=ledger
    config="--config $paper/$table.toml"
    [ "$table" != entities ] || kind=entities
    if fill "$name" $kind; then
        # shellcheck disable=SC2086 # options are several words
        "$melm" reproduce "$table" $config -o "$dir/$name" --table-only -q "$@"
    else
        echo "Not measured yet."
    fi
    echo
}
echo "# The paper's remaining tables and figures"
echo
echo "\`tables.sh\` writes this page from ledgers. docs/results.md explains it."
echo
printf '## Table 3: predictions\n\n'
for place in "$ledgers/predictions/table-predictions.md" "$ledgers/predictions.md"; do
    [ ! -e "$place" ] || { cat "$place" && cp "$place" "$dir/found.md"; }
done
[ -e "$dir/found.md" ] || echo "Not measured yet."
echo
table "Figure 1: new entities against new contexts" add-entity add-entity --test
[ ! -e "$dir/add-entity/table-add-entity-test-gains-updates.svg" ] ||
    draw "$dir/add-entity/table-add-entity-test-gains-updates.svg" add-entity
table "Figure 4: unique valid entities" entities entities
# The figure shows the systems with the settings of that day: eight lines are enough.
[ ! -e "$dir/entities/entities.jsonl" ] ||
    "$melm" reproduce entities --config "$paper/entities.toml" -o "$dir/entities" --table-only -q --only variant=base > /dev/null
[ ! -e "$dir/entities/table-entities.svg" ] || draw "$dir/entities/table-entities.svg" entities
table "Table 4: mask rates" masking masking
table "Table 5: rounds" rounds rounds
for name in masking rounds; do
    for file in "$dir/$name/table-$name-dev-variants"-*.svg; do
        [ ! -e "$file" ] || draw "$file" "$name-$(basename "$file" .svg | sed 's/.*variants-//')"
    done
done
table "Tables 6 and 7: costs, with trained markers" costs costs
table "Tables 6 and 7: times of one process alone" costs costs-alone
table "Table 8: costs of the multilingual method, with trained markers" costs-multi costs-multi
table "Table 8: times of one process alone" costs-multi costs-alone-multi

# The ledgers of 2026-11-15 have the same systems with untrained markers, in several processes on one GPU.
ledgers=$here/../2026-11-15-tables
join() { # OUT NAME NAME: joins two ledgers
    mkdir "$dir/$1"
    fill "$2" ledger
    fill "$3" ledger
    cat "$dir/$2/ledger.jsonl" "$dir/$3/ledger.jsonl" > "$dir/$1/ledger.jsonl"
}
join all mono large
join all-cross cross cross-large
table "Tables 6 and 7, 2026-11-15, untrained markers" costs all
table "Table 8, 2026-11-15, untrained markers" costs-multi multi
# Tables 1 and 2 as figures.
for one in "mono all" "cross all-cross" "multi multi"; do
    name=${one% *} from=${one#* }
    "$melm" reproduce "$name" --config "$paper/$name.toml" -o "$dir/$from" --table-only --test -q \
        --only method=gold,label-wise,melm,melm-both > /dev/null
    stem=table
    [ "$name" = mono ] || stem=table-$name
    draw "$dir/$from/$stem-test-gains-updates.svg" "gains-$name"
done
