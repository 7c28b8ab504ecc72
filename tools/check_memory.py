#!/usr/bin/env python3
"""Measures the peak memory of commands against the size of their input, and of long runs against their length.

    python3 tools/check_memory.py target/debug/melm                       1,000 to 1,000,000 sentences
    python3 tools/check_memory.py target/debug/melm --most 10000 --check  for CI: also fails if a limit is exceeded

Prints a table of peak resident memory (the maximum that the kernel counted for the process), and the growth per sentence
between the two largest inputs. The model of `tag` and of the long runs is tiny.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "faults"))
import tiny  # noqa: E402

SIZES = [1_000, 10_000, 100_000, 1_000_000]
# The command, and the most bytes that a sentence of 6 tokens may take.
COMMANDS = {
    "check": ("check IN", 2_000),
    "convert": ("convert IN --to-scheme iobes -o OUT --force", 2_000),
    "score": ("score IN IN", 4_000),
    "tag": ("tag tagger IN -o OUT --force --threads 2", 3_000),
    "augment": ("augment IN -o OUT --method label-wise --set filter.mode=off --rounds 1 --force --threads 2", 12_000),
}
WORDS = ["Ada", "Grace", "Konrad", "wrote", "spoke", "lived", "London", "Bonn", "Berlin"]


def write_corpus(path: Path, n_sentences: int) -> None:
    """Writes sentences of 6 tokens that differ from each other."""
    with path.open("w") as file:
        for number in range(n_sentences):
            person, place = WORDS[number % 3], WORDS[6 + number // 3 % 3]
            file.write(f"{person} B-PER\nX{number} I-PER\nlived O\nin O\n{place} B-LOC\n. O\n\n")


def peak_bytes(melm: Path, folder: Path, args: str) -> int:
    """Runs a command and returns the peak of its resident memory."""
    with (folder / "messages").open("w+") as messages:
        process = subprocess.Popen([melm, *args.split()], cwd=folder, stdout=subprocess.DEVNULL, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            messages.seek(0)
            raise SystemExit(f"`{args}` fails: {messages.read()}")
    return usage.ru_maxrss * 1024


def compare_sizes(melm: Path, folder: Path, sizes: list[int], only: str | None) -> list[str]:
    """Prints the table of commands and sizes. Returns the exceeded limits."""
    print("| command | " + " | ".join(f"{size:,}" for size in sizes) + " | bytes per sentence |")
    print("| --- |" + " ---: |" * (len(sizes) + 1))
    exceeded = []
    for command, (args, most) in COMMANDS.items():
        if only not in (None, command):
            continue
        peaks = []
        for size in sizes:
            line = args.replace("IN", f"in-{size}.conll").replace("OUT", f"out-{command}-{size}")
            peaks.append(peak_bytes(melm, folder, line))
            subprocess.run(["rm", "-rf", folder / f"out-{command}-{size}"], check=True)
        growth = (peaks[-1] - peaks[-2]) / (sizes[-1] - sizes[-2])
        print(f"| `{command}` | " + " | ".join(f"{peak / 2**20:.0f} MiB" for peak in peaks) + f" | {growth:.0f} |",
              flush=True)
        if growth > most:
            exceeded.append(f"`{command}` takes {growth:.0f} bytes per sentence, more than {most}")
    return exceeded


def compare_lengths(melm: Path, folder: Path) -> list[str]:
    """Prints the memory of short and long runs. Returns the runs that grow."""
    train = "train train.conll --dev train.conll -o OUT --model model --threads 1 --force --updates"
    augment = ("augment train.conll -o OUT --method label-wise --set filter.mode=off --threads 1 --force --rounds")
    print("\n| run | short | long |")
    print("| --- | ---: | ---: |")
    exceeded = []
    for name, args, short, long in [("updates of `train`", train, 100, 1_000), ("rounds of `augment`", augment, 10, 100)]:
        peaks = [peak_bytes(melm, folder, f"{args} {n}".replace("OUT", "long")) for n in (short, long)]
        print(f"| {short} and {long:,} {name} | {peaks[0] / 2**20:.1f} MiB | {peaks[1] / 2**20:.1f} MiB |", flush=True)
        if peaks[1] > peaks[0] * 1.1 + 2**20:
            exceeded.append(f"{name} take more memory in a long run")
    return exceeded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("melm", type=Path)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the largest number of sentences")
    parser.add_argument("--only", choices=COMMANDS)
    parser.add_argument("--check", action="store_true", help="fail if a limit is exceeded")
    options = parser.parse_args()
    melm, sizes = options.melm.resolve(), [size for size in SIZES if size <= options.most]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny.write_folder(folder)
        for size in sizes:
            write_corpus(folder / f"in-{size}.conll", size)
        peak_bytes(melm, folder, "train train.conll -o tagger --model model --updates 2 --threads 1")
        exceeded = compare_sizes(melm, folder, sizes, options.only)
        if options.only is None:
            exceeded += compare_lengths(melm, folder)
    for line in exceeded:
        print(line, file=sys.stderr)
    sys.exit(options.check and bool(exceeded))


if __name__ == "__main__":
    main()
