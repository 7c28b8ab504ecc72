#!/usr/bin/env python3
"""Does it lose F1 to evaluate fine-tuning only after its last epoch, instead of after epochs 2, 4 and 5?

    python3 last_epoch.py MELM DATA OUT LANGUAGES DRAWS SIZE     runs, for example with en,pol 1-20 100
    python3 last_epoch.py OUT                                    prints the table of all runs in OUT

MELM is the program and DATA the folder that results/2026-11-16-text/cut_dev.py makes. A draw has SIZE training and 100 dev
sentences. Where the lowest dev loss of epochs 2, 4 and 5 is that of epoch 5, both settings give the same model, and all later
results are the same bytes. Elsewhere `augment` runs with both settings, a tagger of 300 updates is trained on each result, and
both are scored on DATA's test.conll, which is the rest of the dev set. Finished runs are used again. A process uses one thread.
"""

import json
import os
import subprocess
import sys
from statistics import mean, stdev

EVERY = {"before": 2, "last": 5}
# Fine-tuning alone: the judge and the drafts are as short as possible.
FINE_TUNING_ONLY = ["--set", "tagger.budget=1 updates", "--rounds", "1"]


class Draw:
    """A training set and a dev set, and the runs on them."""

    def __init__(self, program, data, folder, language, number, size):
        self.program, self.folder = program, folder
        self.test = os.path.join(data, language, "test.conll")
        self.common = ["--seed", str(number), "--device", "cpu", "--threads", "1", "-q"]
        os.makedirs(folder, exist_ok=True)
        for split, n in (("train", size), ("dev", "100")):
            source = os.path.join(data, language, f"{split}.conll")
            self.run("sample", source, "-n", n, "--seed", str(number), "-o", self.path(f"{split}.conll"), "--force", "-q")

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(done.args)}\n{done.stderr.decode()}")
        return done.stdout

    def augment(self, name, *settings):
        dev = ["--dev", self.path("dev.conll")]
        self.run("augment", self.path("train.conll"), *dev, "-o", self.path(name), *settings, *self.common)

    def dev_losses(self, name):
        with open(os.path.join(self.path(name), "metrics.jsonl"), encoding="utf-8") as lines:
            found = [line for line in map(json.loads, lines) if line["stage"] == "finetune" and "dev_loss" in line]
        return {line["epoch"]: line["dev_loss"] for line in found}

    def f1(self, name):
        """Returns the F1 in percent of a tagger that is trained on the result of the run `name`."""
        augmented = os.path.join(self.path(name), "train.augmented.conll")
        model, tagged = self.path(f"{name}-tagger"), self.path(f"{name}.tagged.conll")
        self.run("train", augmented, "--dev", self.path("dev.conll"), "-o", model, "--updates", "300", *self.common)
        self.run("tag", model, self.test, "-o", tagged, "--force", *self.common[2:])
        return 100 * json.loads(self.run("score", self.test, tagged, "--json"))["f1"]

    def compare(self):
        self.augment("probe", *FINE_TUNING_ONLY)
        losses = self.dev_losses("probe")
        found = {"dev_losses": losses, "kept": min(losses, key=losses.get)}
        if found["kept"] != max(losses):
            found["f1"] = {}
            for name, every in EVERY.items():
                self.augment(name, "--set", f"finetune.evaluate_every={every}")
                found["f1"][name] = self.f1(name)
        with open(self.path("result.json"), "w", encoding="utf-8") as file:
            json.dump(found, file)


def table(out):
    results = {}
    for name in sorted(os.listdir(out)):
        result = os.path.join(out, name, "result.json")
        if os.path.exists(result):
            with open(result, encoding="utf-8") as file:
                results[name] = json.load(file)
    differing = {name: found for name, found in results.items() if "f1" in found}
    for size in sorted({name.split("-")[1] for name in results}, key=int):
        kept = [name in differing for name in results if name.split("-")[1] == size]
        print(f"{size} sentences: {kept.count(False)} of {len(kept)} draws keep the last epoch.")
    print()
    print("| draw | dev loss by epoch | F1 before | F1 with the last epoch |\n| --- | --- | --- | --- |")
    for name, found in differing.items():
        losses = ", ".join(f"{epoch}: {loss:.3f}" for epoch, loss in found["dev_losses"].items())
        print(f"| {name} | {losses} | {found['f1']['before']:.1f} | {found['f1']['last']:.1f} |")
    differences = [found["f1"]["last"] - found["f1"]["before"] if "f1" in found else 0.0 for found in results.values()]
    error = stdev(differences) / len(differences) ** 0.5
    print(f"\nMean difference of all draws: {mean(differences):+.2f} (standard error {error:.2f})")


def main():
    if len(sys.argv) == 2:
        return table(sys.argv[1])
    program, data, out, languages, draws, size = sys.argv[1:]
    first, last = map(int, draws.split("-"))
    for number in range(first, last + 1):
        for language in languages.split(","):
            folder = os.path.join(out, f"{language}-{size}-{number}")
            if not os.path.exists(os.path.join(folder, "result.json")):
                Draw(program, data, folder, language, number, size).compare()


main()
