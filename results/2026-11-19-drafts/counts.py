#!/usr/bin/env python3
"""Compare the drafts and the entities of the variants of `melm-both`, from ledgers. Prints Markdown tables.

    python3 counts.py LEDGER…

A ledger is a .jsonl or .jsonl.gz file of `melm reproduce` or of `melm reproduce entities`. Rows are the variants, in the order
`before`, `rules`, `words`. The variant `base` of results/2026-11-17-paper/entities.jsonl.gz is `before`, and its variant
`readable` is `rules` with 8 epochs of fine-tuning. The unit is a draw of a language. A new mention or entity is one that gold does
not have, counted once. Valid: a tagger trained on all gold of the language finds it too.
"""
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).parent.parent / "2026-11-16-text"))
from compare import interval, place, read, show

NAMES = {"base": "before", "readable": "rules, 8 epochs"}
ORDER = ["before", "rules, 8 epochs", "rules", "words"]


def by_variant(lines):
    """Return the lines of `melm-both` by size and variant, then by draw."""
    rows = defaultdict(dict)
    for line in lines:
        if line["method"] == "melm-both":
            rows[line["size"], NAMES.get(line["variant"], line["variant"])][place(line)] = line
    return {row: rows[row] for row in sorted(rows, key=lambda row: (row[0], ORDER.index(row[1])))}


def header(*cells):
    show(cells)
    show(["---"] * len(cells))


def drafts(lines):
    """Print the means of the counts of drafts."""
    header("gold", "variant", "draws", "drafts", "kept", "new mentions")
    for (size, variant), own in by_variant(lines).items():
        counts = [line["drafts"] for line in own.values()]
        new = mean(sum(one["new_mentions"].values()) for one in counts)
        show([size, variant, len(own), *(f"{mean(one[key] for one in counts):.0f}" for key in ("drafts", "kept")), f"{new:.0f}"])


def entities(lines):
    """Print the means of unique and valid entities, and the difference of new valid ones from `before`."""
    gold = {(line["size"], place(line)): line["unique"] for line in lines if line["method"] == "gold"}
    rows = by_variant(lines)
    header("gold", "variant", "unique", "valid", "valid and new", "to `before`", "valid share of new")
    for (size, variant), own in rows.items():
        before = {} if variant == "before" else rows.get((size, "before"), {})
        differences = [line["valid_new"] - before[at]["valid_new"] for at, line in own.items() if at in before]
        change = sum(differences) / sum(line["valid_new"] for line in before.values()) if before else 0
        new = [line["unique"] - gold[size, at] for at, line in own.items() if (size, at) in gold]
        means = [f"{mean(line[key] for line in own.values()):.0f}" for key in ("unique", "valid", "valid_new")]
        share = f"{100 * sum(line['valid_new'] for line in own.values()) / sum(new):.1f} %" if len(new) == len(own) else ""
        show([size, variant, *means, f"{interval(differences, 0)} ({100 * change:+.1f} %)" if differences else "", share])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lines = [line for path in sys.argv[1:] for line in read(path)]
    (entities if "valid_new" in lines[0] else drafts)(lines)


if __name__ == "__main__":
    main()
