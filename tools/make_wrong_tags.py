#!/usr/bin/env python3
"""Plant errors in the gold tags of the example, to measure `melm augment --check-gold`.

    python3 tools/make_wrong_tags.py make SEED OUT.conll
    python3 tools/make_wrong_tags.py score SEED GOLD.jsonl [LIMIT ...]

`make` writes examples/politics/train-100.conll with errors in 5 % of its mentions: half of them get another type, half
lose or gain a token at one border. `score` reads the gold.jsonl of a run on that file. For each LIMIT it prints how many
sentences are suspect, and their precision and recall: a suspect sentence is right if an error was planted in it. It
also prints how many of the errors are at a token that the taggers contradict.
"""
import json
import pathlib
import random
import sys

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "examples/politics/train-100.conll"
SHARE = 0.05
LIMITS = [0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999]


def spans(tags):
    """Return the start and the end of every mention."""
    starts = [at for at, tag in enumerate(tags) if tag.startswith("B-")]
    ends = [next((k for k in range(at + 1, len(tags)) if not tags[k].startswith("I-")), len(tags)) for at in starts]
    return list(zip(starts, ends))


def borders(tags, start, end):
    """Return the other spans that the mention can have after one token is added or removed."""
    free = lambda at: 0 <= at < len(tags) and tags[at] == "O"
    longer = [(start - 1, end)] * free(start - 1) + [(start, end + 1)] * free(end)
    shorter = [(start + 1, end), (start, end - 1)] if end - start > 1 else []
    return longer + shorter


def write(tags, start, end, name):
    tags[start:end] = ["B-" + name] + ["I-" + name] * (end - start - 1)


def plant(seed):
    """Return the tokens and tags of each sentence, and the errors as (sentence, tokens, old, new)."""
    generator = random.Random(seed)
    texts = [text for text in EXAMPLE.read_text().split("\n\n") if text.strip()]
    sentences = [[list(column) for column in zip(*(row.split() for row in text.split("\n") if row))] for text in texts]
    types = sorted({tag[2:] for _, tags in sentences for tag in tags if tag != "O"})
    mentions = [(at, *span) for at, (_, tags) in enumerate(sentences) for span in spans(tags)]
    errors = []
    for number, (at, start, end) in enumerate(generator.sample(mentions, round(SHARE * len(mentions)))):
        tokens, tags = sentences[at]
        old = tags[start][2:]
        others = borders(tags, start, end)
        tags[start:end] = ["O"] * (end - start)
        if number % 2 == 0 or not others:
            new = generator.choice([name for name in types if name != old])
            write(tags, start, end, new)
            changed = set(range(start, end))
        else:
            new_start, new_end = generator.choice(others)
            write(tags, new_start, new_end, old)
            new = " ".join(tokens[new_start:new_end])
            changed = set(range(start, end)) ^ set(range(new_start, new_end))
            # The type stays, so the first token of either reading has the wrong tag too.
            changed |= {start, new_start} if start != new_start else set()
        errors.append((at + 1, changed, f"{old} {' '.join(tokens[start:end])}", new))
    return sentences, errors


def score(errors, lines, limit):
    against = lambda line: {one["token"]: 1 - one["probability"] for one in line.get("disagreements", [])}
    contradicted = {line["source"]: {k for k, p in against(line).items() if p >= limit} for line in lines}
    suspect = {source for source, tokens in contradicted.items() if tokens}
    wrong = {error[0] for error in errors}
    right = suspect & wrong
    found = [error for error in errors if error[1] & contradicted[error[0]]]
    print(f"limit {limit}: {len(suspect)} of {len(lines)} sentences are suspect, {len(right)} of the {len(wrong)} with "
          f"errors: precision {len(right) / max(len(suspect), 1):.2f}, recall {len(right) / len(wrong):.2f}; "
          f"{len(found)} of {len(errors)} errors")
    return found


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("make", "score"):
        sys.exit(__doc__)
    sentences, errors = plant(int(sys.argv[2]))
    if sys.argv[1] == "make":
        rows = ["".join(f"{token}\t{tag}\n" for token, tag in zip(*one)) + "\n" for one in sentences]
        pathlib.Path(sys.argv[3]).write_text("".join(rows))
        return
    lines = [json.loads(line) for line in pathlib.Path(sys.argv[3]).read_text().splitlines()]
    for limit in [float(word) for word in sys.argv[4:]] or LIMITS:
        score(errors, lines, limit)


if __name__ == "__main__":
    main()
