#!/usr/bin/env python3
"""Make the data of the dev runs: cut the dev sets, so that test sets are not needed.

    python3 cut_dev.py CONLL POLITICS OUT

CONLL is a folder of LANG/train.conll and LANG/dev.conll, POLITICS is examples/politics. OUT gets LANG/train.conll,
LANG/dev.conll (the first 1,000 sentences of dev, which choose the epoch) and LANG/test.conll (the rest of dev, which is
scored). For politics (`pol`): train and dev sentences 101 to 321 as train, dev sentences 1 to 100 as dev, the rest of dev
as test.
"""
import os
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    return [block.strip("\n") for block in blocks if block.strip()]


def write(folder, **splits):
    os.makedirs(folder, exist_ok=True)
    for split, sentences in splits.items():
        with open(os.path.join(folder, f"{split}.conll"), "w", encoding="utf-8") as file:
            file.writelines(sentence + "\n\n" for sentence in sentences)


def main():
    conll, politics, out = sys.argv[1:]
    for language in ["en", "de", "es", "nl"]:
        train, dev = (read(os.path.join(conll, language, f"{split}.conll")) for split in ["train", "dev"])
        write(os.path.join(out, language), train=train, dev=dev[:1000], test=dev[1000:])
    train, dev = (read(os.path.join(politics, f"{split}.conll")) for split in ["train", "dev"])
    write(os.path.join(out, "pol"), train=train + dev[100:321], dev=dev[:100], test=dev[321:])


main()
