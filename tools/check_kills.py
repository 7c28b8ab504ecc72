#!/usr/bin/env python3
"""Kills `melm augment` at random moments, and checks that the result equals that of a run that was never killed.

    python3 tools/check_kills.py target/debug/melm --kills 200 [--updates 500]

A trial starts the same command again and again in one folder, and kills each process with SIGKILL after a random time,
until the trial has its number of kills. Then the command runs to its end. All files must equal those of the whole run.
Half of the trials have unlabelled text.
"""

import argparse
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "faults"))
import tiny  # noqa: E402

RUN = "augment train.conll --dev train.conll --model model --config plan.toml --threads 1 --save-every 0 -q"


def variants(updates: int | None) -> list[str]:
    """Returns the commands. With `updates`, each training has this number of updates instead of a few."""
    run = RUN
    for key in ("finetune", "tagger", "self_training") if updates else ():
        run += f" --set {key}.budget='{updates} updates'"
    return [run, run + " --unlabelled text.conll --method label-wise"]


def start(melm: Path, folder: Path, args: str, out: str) -> subprocess.Popen:
    command = [melm, *shlex.split(args), "-o", out]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(melm: Path, folder: Path, args: str, out: str) -> None:
    process = start(melm, folder, args, out)
    messages = process.communicate()[1]
    if process.returncode != 0:
        raise SystemExit(f"`{args} -o {out}` fails: {messages}")


def comparable(folder: Path) -> dict[str, bytes]:
    """Returns the files of a run. `run.json` and the card have the command, which names the folder, so these are left out."""
    results = tiny.read_results(folder).items()
    return {name: content for name, content in results if name not in ("run.json", "README.md")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("melm", type=Path)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--most", type=int, default=4, help="the most kills of a trial (4)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--updates", type=int, help="the updates of each training, for longer runs")
    options = parser.parse_args()
    melm, generator = options.melm.resolve(), random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny.write_folder(folder)
        wanted, seconds = [], []
        commands = variants(options.updates)
        for number, args in enumerate(commands):
            begin = time.monotonic()
            finish(melm, folder, args, f"whole-{number}")
            seconds.append(time.monotonic() - begin)
            wanted.append(comparable(folder / f"whole-{number}"))
        n_killed = n_trials = n_equal = 0
        while n_killed < options.kills:
            variant, out = n_trials % len(commands), f"trial-{n_trials}"
            left = min(options.most, options.kills - n_killed)
            while left > 0:
                process = start(melm, folder, commands[variant], out)
                time.sleep(generator.uniform(0, seconds[variant]))
                process.kill()
                process.communicate()
                left -= 1
                # A run that ended first was not killed. The next one finds the finished run.
                if process.returncode >= 0:
                    break
                n_killed += 1
            finish(melm, folder, commands[variant], out)
            wrong = tiny.differences(wanted[variant], comparable(folder / out))
            n_trials += 1
            n_equal += not wrong
            if wrong:
                print(f"{out}: {'; '.join(wrong)}", file=sys.stderr)
    print(f"{n_killed} kills in {n_trials} trials of {min(seconds):.1f} to {max(seconds):.1f} s; {n_equal} equal results")
    sys.exit(n_equal != n_trials)


if __name__ == "__main__":
    main()
