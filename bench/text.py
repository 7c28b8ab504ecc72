"""Scores, checks and converts one million sentences with melm, and scores and converts them with Python.

    cargo build --release && pip install seqeval && python3 bench/text.py [--sentences N]

The example corpus is repeated until it has N sentences (default: one million). In the predictions, one gold tag in
twenty is replaced at random. For melm, the whole command is timed from start to exit on one core, and the median of
three runs is printed. For seqeval, only the scoring of lists that are already parsed is timed, so the ratio understates
our advantage.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import resource
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).parent.parent
MELM = ROOT / "target" / "release" / "melm"


def example():
    text = (ROOT / "examples/politics/train.conll").read_text()
    return [[line.split("\t") for line in block.split("\n")] for block in text.strip().split("\n\n")]


def disturb(sentences, rng):
    tags = sorted({tag for rows in sentences for _, tag in rows})
    return [[[token, tag if rng.random() < 0.95 else rng.choice(tags)] for token, tag in rows]
            for rows in sentences]


def write(path, sentences, times):
    block = "".join("\n".join("\t".join(row) for row in rows) + "\n\n" for rows in sentences)
    with path.open("w") as file:
        for _ in range(times):
            file.write(block)


def timed(command):
    """Returns the seconds and the peak memory of a command on one core."""
    start = time.perf_counter()
    process = subprocess.Popen(["taskset", "-c", "0", *map(str, command)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def python_convert(source, target):
    """Converts IOB2 to IOBES line by line, with code that a careful user would write."""
    with source.open() as lines, target.open("w") as out:
        for blank, group in itertools.groupby(lines, key=lambda line: line == "\n"):
            if blank:
                out.write("\n")
                continue
            rows = [line.rstrip("\n").split("\t") for line in group]
            for at, (token, tag) in enumerate(rows):
                after = rows[at + 1][1] if at + 1 < len(rows) else "O"
                ends = not after.startswith("I-")
                if tag.startswith("B-") and ends:
                    tag = "S-" + tag[2:]
                elif tag.startswith("I-") and ends:
                    tag = "E-" + tag[2:]
                out.write(f"{token}\t{tag}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=1_000_000)
    options = parser.parse_args()
    gold = example()
    predicted = disturb(gold, random.Random(1))
    times = max(1, options.sentences // len(gold))
    # Uses a folder in memory if possible, so that the speed of the disk is not measured.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        folder = pathlib.Path(folder)
        gold_file, predicted_file = folder / "gold.conll", folder / "predicted.conll"
        write(gold_file, gold, times)
        write(predicted_file, predicted, times)
        size = gold_file.stat().st_size
        print(f"{times * len(gold):,} sentences, {size / 1e6:.0f} MB a file, one core")

        iobes = folder / "iobes.conll"
        commands = {
            "score": [MELM, "score", "--json", gold_file, predicted_file],
            "check": [MELM, "check", gold_file],
            "convert": [MELM, "convert", gold_file, "--to-scheme", "iobes", "-o", iobes, "--force"],
        }
        runs = {name: [] for name in commands}
        for _ in range(3):
            for name, command in commands.items():
                runs[name].append(timed(command))
        (score, score_memory), (check, check_memory), (convert, convert_memory) = (
            sorted(runs[name])[1] for name in ("score", "check", "convert"))

        ours = subprocess.run([MELM, "score", "--json", gold_file, predicted_file],
                              capture_output=True, text=True, check=True).stdout
        start = time.perf_counter()
        python_convert(gold_file, folder / "python.conll")
        python_seconds = time.perf_counter() - start
        same = subprocess.run(["cmp", iobes, folder / "python.conll"], check=False).returncode == 0

        # Imported only here, because the peak memory of a child process is at least the memory of its parent when it
        # starts.
        from seqeval.metrics import f1_score
        y_true = [[tag for _, tag in rows] for rows in gold] * times
        y_pred = [[tag for _, tag in rows] for rows in predicted] * times
        start = time.perf_counter()
        f1 = f1_score(y_true, y_pred)
        seqeval_seconds = time.perf_counter() - start

    assert abs(json.loads(ours)["f1"] - f1) < 1e-9, "scores differ"
    assert same, "conversions differ"
    print(f"score    melm {score:7.2f} s, {score_memory / size:.2f} x one file in memory; "
          f"seqeval {seqeval_seconds:7.2f} s: ratio {seqeval_seconds / score:.1f}")
    print(f"convert  melm {convert:7.2f} s, {convert_memory / size:.2f} x the file in memory, "
          f"{size / 1e6 / convert:.0f} MB/s; Python {python_seconds:7.2f} s: "
          f"ratio {python_seconds / convert:.1f}")
    print(f"check    melm {check:7.2f} s, {check_memory / size:.2f} x the file in memory, "
          f"{size / 1e6 / check:.0f} MB/s")
    print("all runs: " + "; ".join(f"{name} {', '.join(f'{seconds:.2f}' for seconds, _ in found)}"
                                  for name, found in runs.items()))
    print(f"F1 ({f1:.6f}) and converted bytes are equal on both sides; "
          f"peak memory of this script {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


main()
