#!/usr/bin/env python3
"""Writes lists of names for names-1.toml: the distinct gold mentions of DATA/LANG/train.conll.

    make_names.py DATA LANG…

Writes DATA/LANG/names/TYPE.txt, one name on each line, in alphabetical order. A name that has several types is written
for the type that it has most often.
"""

import collections
import pathlib
import sys


def read_mentions(path):
    """Yields the type and the tokens of each mention of a CoNLL file, in IOB1 or IOB2."""
    kind, tokens = None, []
    for line in path.read_text(encoding="utf-8").splitlines() + [""]:
        columns = line.split()
        tag = columns[-1] if columns else "O"
        prefix, _, name = tag.partition("-")
        if tokens and (prefix in ("O", "B") or name != kind):
            yield kind, tokens
            tokens = []
        if prefix != "O":
            kind, tokens = name, tokens + [columns[0]]


def main():
    data, *languages = sys.argv[1:]
    for language in languages:
        folder = pathlib.Path(data) / language
        counts = collections.defaultdict(collections.Counter)
        for kind, tokens in read_mentions(folder / "train.conll"):
            counts[" ".join(tokens)][kind] += 1
        names = collections.defaultdict(list)
        for name, kinds in counts.items():
            names[min(kinds, key=lambda kind: (-kinds[kind], kind))].append(name)
        (folder / "names").mkdir(exist_ok=True)
        for kind, some in names.items():
            (folder / "names" / f"{kind}.txt").write_text("".join(f"{name}\n" for name in sorted(some)), encoding="utf-8")
            print(language, kind, len(some))


if __name__ == "__main__":
    main()
