#!/usr/bin/env python3
"""Print the figures of picking that no table of `melm reproduce` has, from a ledger: python3 curve.py LEDGER

For each size and variant of picked sentences: F1, the difference from random sentences of the same size, tokens and mentions of
both, precision and recall of the suggested mentions (over all batches up to that size), and the difference from the largest random
set. 95 % intervals by Student's t; the unit is a draw of a language.
"""
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).parent.parent / "2026-11-16-text"))
from compare import accuracy, differ, interval, paired, place, read, score, show


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows = defaultdict(dict)
    for line in read(sys.argv[1]):
        rows[line["method"], line["variant"], line["size"]][place(line)] = line
    random = {size: own for (method, _, size), own in rows.items() if method == "gold"}
    head = ["sentences", "variant", "draws", "F1", "to random", "tokens, random / picked", "mentions, random / picked"]
    head += ["precision of suggestions", "recall", f"to {max(random)} random"]
    show(head)
    show(["---"] * len(head))
    for (method, variant, size), own in sorted(rows.items(), key=lambda row: row[0][::-1]):
        if method != "picked":
            continue
        counts = [line["picked"] for line in own.values()]
        means = {key: f"{mean(one[key] for one in counts):,.0f}" for key in counts[0] if key != "suggestions"}
        cells = [size, variant, len(own), f"{mean(score(line, None) for line in own.values()):.1f}"]
        cells += [interval(differ(paired(own, random[size]), None))]
        cells += [f"{means['random_' + key]} / {means[key]}" for key in ("tokens", "mentions")]
        cells += accuracy([one["suggestions"] for one in counts], 0)[1:]
        show([*cells, interval(differ(paired(own, random[max(random)]), None))])


if __name__ == "__main__":
    main()
