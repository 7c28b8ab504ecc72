#!/usr/bin/env bash
# Checks that crates depend on each other in one direction only: py -> cli -> report -> eval -> melm -> {text, nn}.
# Only melm-py, melm-cli and melm-report use melm-eval; melm-text, melm-nn and melm-mini use no other crate of the workspace.
set -euo pipefail
ours() { cargo tree -p "$1" -e normal --prefix none --depth 1 | awk -v self="$1" '$1 ~ /^melm/ && $1 != self { print $1 }' | sort -u | tr '\n' ' '; }
allow() {
    local crate=$1 found; shift
    found=$(ours "$crate")
    for name in $found; do
        case " $* " in *" $name "*) ;; *) echo "dependency not allowed: $crate -> $name" >&2; exit 1 ;; esac
    done
    echo "$crate -> ${found:-no crate of the workspace}"
}
allow melm-text
allow melm-nn
allow melm-mini
allow melm melm-text melm-nn melm-mini
allow melm-eval melm melm-text melm-nn
allow melm-report melm melm-text melm-eval
allow melm-cli melm melm-text melm-nn melm-eval melm-report
allow melm-py melm melm-text melm-nn melm-eval melm-report melm-cli
