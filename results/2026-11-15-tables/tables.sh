#!/bin/sh
# Writes all tables of the test sets from the ledgers in this folder, as Markdown: tables.sh MELM > tables.md
set -eu
melm=$1
here=$(dirname "$0")
paper=$here/../../crates/melm-eval/configs/paper
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
table() { # TABLE GRID TITLE
    mkdir -p "$dir/$2"
    gunzip -c "$here/$2.jsonl.gz" > "$dir/$2/ledger.jsonl"
    echo "## $2: $3"
    echo
    "$melm" reproduce "$1" --config "$paper/$1.toml" -o "$dir/$2" --table-only --test -q
    echo
}
echo "# Tables of the test sets"
echo
echo "\`tables.sh\` writes this page from the ledgers in this folder. docs/results.md explains the tables. The values in brackets are the paper's: XLM-R, ten epochs, also next to our other budgets. \`melm\`, \`melm-both\` and \`melm-codemix\` were measured with untrained markers (docs/fidelity.md)."
echo
table mono mono "one language, 100 and 200 sentences"
table mono large "one language, 400 and 800 sentences"
table mono control "MELM and label-wise with twelve rounds"
table mono defaults "the plan's own settings"
table cross mono "English taggers on the other languages"
table cross large "the same, 400 and 800 sentences"
table cross cross "the same, fifteen draws"
table cross cross-large "the same, nine draws of 400 and 800 sentences"
table cross cross-two "fifteen draws, two rounds"
table cross cross-large-two "nine draws, two rounds"
table multi multi "four languages together"
table multi longer "four languages together, three times the updates"
