#!/usr/bin/env python3
"""Compare the methods, texts and settings of ledgers with gold alone, on the same draws. Prints Markdown tables.

    python3 compare.py [--on LANG,…] [--gold-budget BUDGET] [--base VARIANT] [--votes] [--intervals] [--decimals N] LEDGER…

A ledger is a .jsonl or .jsonl.gz file of `melm reproduce --test`, or of results/2026-11-16-drafts/harvest.py. Each size has its own table. A row is a method, a text
and a variant of the settings. Differences are paired by language, draw and seed, with one standard error. The score of a
tagger is its F1 on the language that it was trained on. --on scores other languages instead, and takes their mean.
Gold alone has the same budget as the row, or the one of --gold-budget. The column "to base" compares variants with the
variant `base`, or the one of --base, of the same method, text and budget.

The last four columns describe the labelled sentences that were kept: their number in the mean over draws, the share of
them without an error, and precision and recall of their mentions, in percent with --decimals N decimals. --votes prints the same for all sentences in which the
panel found a mention, by the number of taggers that predict exactly these tags for the whole sentence. --intervals prints
95 % intervals (Student's t) instead of standard errors: by draw (the unit is a draw of a language) and by language (the
unit is a language, the mean of its draws), to gold and to the same text without drafts. --intervals together with --base
adds a column: the difference to that variant, by draw.
"""
import argparse
import gzip
import json
import math
from collections import defaultdict
from statistics import mean, stdev


def central_probability(angle, n):
    """Return P(|t| <= sqrt(n) tan(angle)) for Student's t with `n` degrees of freedom (Abramowitz and Stegun, 26.7.3 and 4)."""
    cosine = math.cos(angle)
    term, total = (cosine, 0.0) if n % 2 else (1.0, 0.0)
    for power in range(2 + n % 2, n + 1, 2):
        total += term
        term *= cosine**2 * (power - 1) / power
    return 2 / math.pi * (angle + math.sin(angle) * total) if n % 2 else math.sin(angle) * total


def student_t(n):
    """Return the quantile of Student's t at 97.5 % for `n` degrees of freedom, by bisection."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if central_probability(middle, n) < 0.95 else (low, middle)
    return math.sqrt(n) * math.tan(low)


def as_cell(line):
    """Return a line of harvest.py with the keys of `melm reproduce`, and any other line unchanged."""
    if "harvest" not in line:
        return line
    counts = {"all": [line["support"], line["predicted"], line["correct"]]}
    return {
        **{"language": line["language"], "draw": line["draw"], "seed": 1, "size": 100},
        **{"method": "melm-both", "text": "1000", "budget": "300 updates"},
        "variant": "harvest" if line["harvest"] == "true" else "without",
        "test": {line["language"]: {"by_type": counts}},
    }


def read(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [as_cell(json.loads(line)) for line in file if line.strip()]


def f1(score):
    gold, predicted, correct = (sum(counts[i] for counts in score["by_type"].values()) for i in range(3))
    return 200 * correct / (gold + predicted) if gold + predicted else 0.0


def score(line, on):
    return mean(f1(line["test"][name]) for name in on or [line["language"]])


def place(line):
    return line["language"], line["draw"], line["seed"]


def row_of(line):
    return line["method"], line.get("text", "none"), line["variant"], line["budget"]


def percent(part, whole, decimals):
    return f"{100 * part / whole:.{decimals}f} %" if whole else "–"


def accuracy(counts, decimals):
    """Return the columns on labels: share of right sentences, precision and recall of mentions."""
    total = {name: sum(one[name] for one in counts) for name in counts[0]}
    return [
        percent(total["right_sentences"], total["sentences"], decimals),
        percent(total["right_mentions"], total["mentions"], decimals),
        percent(total["right_mentions"], total["true_mentions"], decimals),
    ]


def with_error(differences):
    error = f" ± {stdev(differences) / math.sqrt(len(differences)):.1f}" if len(differences) > 1 else ""
    return f"{mean(differences):+.1f}{error}"


def show(cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def gold_of(rows, budget):
    """Return gold alone with `budget`: the lines of its first variant."""
    found = [row for row in rows if row[:2] == ("gold", "none") and row[3] == budget]
    return rows[found[0]] if found else {}


def base_of(rows, row, options):
    """Return the lines of the variant `base`, or of the one of --base, of the same method, text and budget."""
    return rows.get((*row[:2], options.base or "base", row[3]), {})


def paired(own, others):
    return [(line, others[at]) for at, line in own.items() if at in others and line is not others[at]]


def differ(pairs, on):
    return [score(one, on) - score(other, on) for one, other in pairs]


def compare(lines, options):
    """Print the table of one size."""
    on = options.on
    rows = defaultdict(dict)
    for line in lines:
        rows[row_of(line)][place(line)] = line
    languages = sorted({line["language"] for line in lines})
    names = on if on and len(languages) == 1 else languages
    head = ["method", "text", "variant", "updates", "n", "F1", "to gold", "to base", *names, "kept", "right", "precision", "recall"]
    show(head)
    show(["---"] * len(head))
    for row, own in rows.items():
        gold = gold_of(rows, options.gold_budget or row[3])
        pairs, to_base = paired(own, gold), paired(own, base_of(rows, row, options))
        by_name = [(on and [name], [p for p in pairs if names is on or p[0]["language"] == name]) for name in names]
        cells = [*row[:3], row[3].replace(" updates", ""), len(own), f"{mean(score(line, on) for line in own.values()):.1f}"]
        cells += [with_error(differ(of, on)) if of else "" for of in (pairs, to_base)]
        cells += [f"{mean(differ(of, tests)):+.1f}" if of else "" for tests, of in by_name]
        kept = [line["labelled"]["kept"] for line in own.values() if line.get("labelled")]
        cells += [f"{mean(one['sentences'] for one in kept):.0f}", *accuracy(kept, options.decimals)] if kept else [""] * 4
        show(cells)


def interval(differences, decimals=1):
    n, centre = len(differences), mean(differences)
    margin = student_t(n - 1) * stdev(differences) / math.sqrt(n)
    return f"{centre:+.{decimals}f} [{centre - margin:+.{decimals}f}, {centre + margin:+.{decimals}f}]"


def by_language(pairs, on):
    """Return the mean difference of each language, or of each language of --on."""
    languages = sorted({one["language"] for one, _ in pairs})
    if on and len(languages) == 1:
        return [mean(differ(pairs, [name])) for name in on]
    return [mean(differ([pair for pair in pairs if pair[0]["language"] == name], on)) for name in languages]


def intervals(lines, options):
    """Print the table of one size with 95 % intervals."""
    on = options.on
    rows = defaultdict(dict)
    for line in lines:
        rows[row_of(line)][place(line)] = line
    head = ["method", "text", "variant", "updates", "F1", "to gold, by draw", "by language", "to text alone, by draw"]
    head += [f"to `{options.base}`, by draw"] if options.base else []
    show(head)
    show(["---"] * len(head))
    for row, own in rows.items():
        cells = [*row[:3], row[3].replace(" updates", ""), f"{mean(score(line, on) for line in own.values()):.1f}"]
        pairs = paired(own, gold_of(rows, options.gold_budget or row[3]))
        languages = by_language(pairs, on) if pairs else []
        alone = paired(own, rows.get(("gold", *row[1:]), {})) if row[1] != "none" else []
        cells += [interval(differ(pairs, on)) if pairs else "", interval(languages) if len(languages) > 3 else ""]
        cells += [interval(differ(alone, on)) if alone else ""]
        if options.base:
            pairs = paired(own, base_of(rows, row, options))
            cells += [interval(differ(pairs, on)) if pairs else ""]
        show(cells)


def votes(lines, decimals):
    """Print the accuracy of the labels of one size by the number of votes."""
    rows = defaultdict(list)
    for line in lines:
        if line.get("labelled", {}).get("by_votes"):
            rows[row_of(line)].append(line["labelled"]["by_votes"])
    head = ["method", "text", "variant", "votes", "sentences", "right", "precision", "recall"]
    show(head)
    show(["---"] * len(head))
    for row, ledgers in rows.items():
        for n, counts in enumerate(zip(*ledgers)):
            if any(one["sentences"] for one in counts):
                show([*row[:3], n, f"{mean(one['sentences'] for one in counts):.0f}", *accuracy(counts, decimals)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", type=lambda text: text.split(","))
    parser.add_argument("--gold-budget")
    parser.add_argument("--base")
    parser.add_argument("--votes", action="store_true")
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--decimals", type=int, default=0)
    parser.add_argument("ledgers", nargs="+")
    options = parser.parse_args()
    lines = [line for path in options.ledgers for line in read(path)]
    for size in sorted({line["size"] for line in lines}):
        of_size = [line for line in lines if line["size"] == size]
        print(f"\n{size} sentences of gold\n")
        (intervals if options.intervals else compare)(of_size, options)
        if options.votes:
            print()
            votes(of_size, options.decimals)


if __name__ == "__main__":
    main()
