#!/usr/bin/env python3
"""Measures `names.harvest`: one more round of drafts with names that the panel finds in unlabelled text.

    harvest.py MELM MODEL DATA OUT [SECONDS]

DATA is that of results/2026-11-16-text/cut_dev.py. For five draws of each language: 100 sentences of train, 100 of dev, and
1,000 other sentences of train as text. `augment --preset quick` runs with and without harvesting, a tagger is trained on each
result for 300 updates and scored on the rest of dev. OUT/harvest.jsonl gets a line for each tagger, with the keys of
harvest.jsonl.gz; the same command continues. Eight processes run at the same time and share one GPU.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

MELM, MODEL, DATA, OUT = sys.argv[1:5]
END = time.monotonic() + float(sys.argv[5] if len(sys.argv) > 5 else 86400)
DEVICE = os.environ.get("DEVICE", "cuda")
COMMON = ["--model", MODEL, "--device", DEVICE, "--threads", "1", "-q"]
TAGGER = "tagger.learning_rate=1.5e-4"
SETTINGS = [
    TAGGER,
    "finetune.learning_rate=4e-4",
    # The defaults of that day.
    "generate.avoid_repeats=false",
    "generate.keep_function_words=false",
    "generate.longest_mention=0",
    "substitute.match_before=false",
    "finetune.budget=8 epochs",
    "finetune.evaluate_every=2",
    "generate.whole_words=false",
    "generate.distinct_mentions=false",
    "generate.order=at-once",
    "generate.keep_case=false",
]


def melm(*words):
    left = END - time.monotonic()
    if left < 1:
        raise TimeoutError("no time left")
    done = subprocess.run([MELM, *map(str, words)], capture_output=True, text=True, timeout=left)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr[-500:]}")
    return done.stdout


def measure(language, draw, harvest):
    """Returns the line of one tagger."""
    folder = pathlib.Path(OUT) / f"{language}-{draw}-{harvest}"
    folder.mkdir(parents=True, exist_ok=True)
    data = pathlib.Path(DATA) / language
    for name, split, size, seed in [("train", "train", 100, draw), ("dev", "dev", 100, draw), ("text", "train", 1000, draw + 100)]:
        melm("sample", data / f"{split}.conll", "-n", size, "--seed", seed, "-o", folder / f"{name}.conll", "--force", "-q")
    one = {name: folder / f"{name}.conll" for name in ("train", "dev", "text")}
    extra = [word for setting in [*SETTINGS, f"names.harvest={harvest}"] for word in ("--set", setting)]
    melm("augment", one["train"], "--dev", one["dev"], "--unlabelled", one["text"], "--held-out", data / "test.conll",
         "--preset", "quick", *extra, "-o", folder / "more", "--force", *COMMON)
    augmented = folder / "more" / "train.augmented.conll"
    melm("train", augmented, "--dev", one["dev"], "--updates", 300, "--set", TAGGER, "-o", folder / "tagger", "--force", *COMMON)
    tagged = folder / "tagged.conll"
    melm("tag", folder / "tagger", data / "test.conll", "-o", tagged, "--device", DEVICE, "--threads", "1", "-q", "--force")
    score = json.loads(melm("score", data / "test.conll", tagged, "--json"))
    run = json.loads((folder / "more" / "run.json").read_text())
    return {
        "language": language,
        "draw": draw,
        "harvest": harvest,
        **{key: score[key] for key in ("f1", "correct", "predicted", "support")},
        "harvested_names": run.get("harvested_names", 0),
        **{key: run[key] for key in ("drafts", "device", "melm")},
    }


def main():
    path = pathlib.Path(OUT) / "harvest.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(line["language"], line["draw"], line["harvest"]) for line in known}
    jobs = [(language, draw, harvest) for draw in range(1, 6) for language in ("en", "de", "es", "nl") for harvest in ("false", "true")]
    with concurrent.futures.ThreadPoolExecutor(8) as pool, path.open("a") as ledger:
        waiting = [pool.submit(measure, *job) for job in jobs if job not in done]
        for one in concurrent.futures.as_completed(waiting):
            if error := one.exception():
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
                continue
            print(json.dumps(one.result()), file=ledger, flush=True)


main()
