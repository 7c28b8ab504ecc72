#!/usr/bin/env python3
"""Prints a random sample of kept drafts, for a reader who judges them.

    tools/sample_drafts.py SEED DRAFTS.jsonl [-n 30]

Half of the sample are drafts whose mentions a masked language model guessed, half are drafts with mentions of other
sentences or of lists of names. The same seed and file give the same sample. Counts of all kept drafts follow.
"""

import argparse
import json
import random


def mention_kind(replaced):
    """Returns `guessed`, or `own` for a mention that was taken from elsewhere."""
    return "guessed" if replaced.get("pieces") else "own"


def kind(draft):
    """Returns the kind of the draft's replaced mentions."""
    return "guessed" if any(mention_kind(one) == "guessed" for one in draft["replaced"]) else "own"


def is_repeat(token, beside):
    """Returns True if two tokens are equal, ignoring case."""
    return token.lower() == beside.lower()


def adjacent_repeats(replaced):
    """Counts the tokens of a guessed mention that repeat the token before, where the source does not."""
    new = zip(replaced["new"], replaced["new"][1:])
    old = zip(replaced["old"], replaced["old"][1:])
    return sum(is_repeat(*pair) and not is_repeat(*source) for pair, source in zip(new, old))


def show(draft):
    """Returns the draft as text, with `[new <- old]` at each replaced mention that changed."""
    words, at = [], 0
    for one in sorted(draft["replaced"], key=lambda one: one["start"]):
        words += draft["tokens"][at : one["start"]]
        new, old = " ".join(one["new"]), " ".join(one["old"])
        words.append(f"[{new} <- {old} | {one['entity_type']}]" if new != old else f"[{new}]")
        at = one["end"]
    return " ".join(words + draft["tokens"][at:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("drafts")
    parser.add_argument("-n", type=int, default=30, help="the number of drafts (default: 30)")
    options = parser.parse_args()
    with open(options.drafts, encoding="utf-8") as lines:
        drafts = [json.loads(line) for line in lines if line.strip()]
    kept = [one for one in drafts if one.get("origin", "draft") == "draft" and one["verdict"] in ("kept", "accepted")]
    by_kind = {name: [one for one in kept if kind(one) == name] for name in ("guessed", "own")}
    generator = random.Random(options.seed)
    half = options.n // 2
    for name, n in (("guessed", options.n - half), ("own", half)):
        sample = generator.sample(by_kind[name], min(n, len(by_kind[name])))
        for number, draft in enumerate(sample, 1):
            print(f"{name} {number}  (sentence {draft['source']}, round {draft['round']})\n    {show(draft)}")
    for name, some in by_kind.items():
        mentions = [one for draft in some for one in draft["replaced"]]
        changed = [one for one in mentions if one["old"] != one["new"]]
        repeats = sum(adjacent_repeats(one) > 0 for one in mentions if mention_kind(one) == "guessed")
        print(
            f"{name}: {len(some)} kept drafts, {len(changed)} changed mentions, {repeats} guessed mentions with an adjacent "
            "repeat"
        )


if __name__ == "__main__":
    main()
