#!/usr/bin/env python3
"""Change the entity type of one mention in 15 sentences of the example, to measure `melm augment --check-gold`.

    python3 tools/make_wrong_tags.py make OUT.conll
    python3 tools/make_wrong_tags.py score GOLD.jsonl

`make` writes examples/politics/train-100.conll with the changes. `score` reads the gold.jsonl of a run on that file,
and prints how many of the changed sentences are suspect, and how many are among the first 15, 30 and 50.
"""
import json
import pathlib
import random
import sys

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "examples/politics/train-100.conll"
TYPES = ["politician", "politicalparty", "election", "organisation", "location", "country", "event", "misc", "person"]
N_CHANGED = 15


def spans(rows):
    """Return the start and the end of every mention."""
    starts = [at for at, row in enumerate(rows) if row[1].startswith("B-")]
    ends = [next((k for k in range(at + 1, len(rows)) if not rows[k][1].startswith("I-")), len(rows)) for at in starts]
    return list(zip(starts, ends))


def changed():
    """Return the sentences as rows, and the numbers (from 1) of the changed ones with what was changed."""
    generator = random.Random(7)
    texts = [text for text in EXAMPLE.read_text().split("\n\n") if text.strip()]
    sentences = [[row.split() for row in text.split("\n") if row.strip()] for text in texts]
    changes = {}
    chosen = set(generator.sample(range(len(sentences)), N_CHANGED))
    for at, rows in enumerate(sentences):
        if at not in chosen:
            continue
        start, end = generator.choice(spans(rows))
        old = rows[start][1][2:]
        new = generator.choice([name for name in TYPES if name != old] + ["O"] * 4)
        for token in range(start, end):
            rows[token][1] = "O" if new == "O" else ("B-" if token == start else "I-") + new
        changes[at + 1] = (" ".join(row[0] for row in rows[start:end]), old, new)
    return sentences, changes


def main():
    sentences, changes = changed()
    if sys.argv[1:2] == ["make"]:
        text = "".join("".join("\t".join(row) + "\n" for row in rows) + "\n" for rows in sentences)
        pathlib.Path(sys.argv[2]).write_text(text)
    elif sys.argv[1:2] == ["score"]:
        lines = [json.loads(line) for line in pathlib.Path(sys.argv[2]).read_text().splitlines()]
        against = lambda line: max([1 - one["probability"] for one in line.get("disagreements", [])], default=0)
        ranked = [line["source"] for line in sorted(lines, key=against, reverse=True)]
        suspect = [line["source"] for line in lines if against(line) >= 0.99]
        print(f"{len(suspect)} of {len(lines)} sentences are suspect, {len(set(suspect) & set(changes))} of them changed")
        for n in [15, 30, 50]:
            print(f"among the first {n}: {len(set(ranked[:n]) & set(changes))} of {len(changes)} changed sentences")
        for number, change in changes.items():
            print(number, *change, f"rank {ranked.index(number) + 1}", sep="\t")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
