#!/usr/bin/env python3
"""Counts in how many runs of `augment` the evaluations of the first half of a training decide which epoch is kept.

    python3 epochs.py MELM DATA OUT [N]

MELM is the program, DATA the folder that results/2026-11-16-text/cut_dev.py makes. OUT gets the runs: N draws
[default: 5] of 100 training and 100 dev sentences of each language, with an evaluation after every epoch. Runs that are
finished are used again. A run takes about 25 seconds on two cores.
"""

import json
import os
import subprocess
import sys

LANGUAGES = ["en", "de", "es", "nl"]
# The epochs that the default settings evaluate, and those of the second half.
FINETUNE = {"default": [2, 4, 5], "last": [5], "second half": [4, 5]}
JUDGE = {"default": [3, 6, 9, 12, 15], "last": [15], "second half": [9, 12, 15]}


def run(melm, data, language, draw, out):
    """Runs `augment` on a draw, unless it is finished. Returns the dev loss and the dev F1 of each epoch."""
    folder = os.path.join(out, f"{language}-{draw}")
    os.makedirs(folder, exist_ok=True)
    metrics = os.path.join(folder, "run", "metrics.jsonl")
    if not os.path.exists(os.path.join(folder, "run", "drafts.jsonl")):
        parts = {}
        for split in ("train", "dev"):
            parts[split] = os.path.join(folder, f"{split}.conll")
            source = os.path.join(data, language, f"{split}.conll")
            command = [melm, "sample", source, "-n", "100", "--seed", str(draw), "-o", parts[split], "-q", "--force"]
            subprocess.run(command, check=True)
        command = [melm, "augment", parts["train"], "--dev", parts["dev"], "--seed", str(draw), "--device", "cpu", "-q"]
        every = ["--set", "tagger.evaluate_every=1", "--set", "finetune.evaluate_every=1"]
        subprocess.run([*command, *every, "-o", os.path.join(folder, "run")], check=True)
    losses, scores = {}, {}
    with open(metrics, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if "dev_loss" in line and line["stage"] == "finetune":
                losses[line["epoch"]] = line["dev_loss"]
            if "dev_f1" in line and line["stage"] == "judge":
                scores[line["epoch"]] = line["dev_f1"]
    return losses, scores


def main():
    melm, data, out = sys.argv[1:4]
    n_draws = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    runs = [run(melm, data, language, draw, out) for draw in range(1, n_draws + 1) for language in LANGUAGES]
    print("| training | evaluated | runs that keep the epoch of the default |\n| --- | --- | --- |")
    # The first of equal epochs is kept, as in the program.
    for name, epochs, at, best in (("fine-tuning", FINETUNE, 0, min), ("judge", JUDGE, 1, max)):
        for rule, evaluated in epochs.items():
            same = sum(best(evaluated, key=run[at].get) == best(epochs["default"], key=run[at].get) for run in runs)
            print(f"| {name} | {rule}: {', '.join(map(str, evaluated))} | {same} of {len(runs)} |")


main()
