#!/usr/bin/env python3
"""Makes every file operation of a command fail in turn, and checks that the same command then ends with the same bytes.

    python3 tools/check_faults.py target/debug/melm            every operation (some minutes)
    python3 tools/check_faults.py target/debug/melm --every 9  every ninth operation, for CI

Each command runs with a tiny model. First it runs without a fault: this counts its operations below its output folder
(create, write, truncate, rename, remove, sync) and gives the expected bytes. Then, for each operation and each kind of
fault, it runs in a new folder with this one fault, and again without a fault. The second run must succeed, and all files
must equal the expected ones, including those in `.stages`. Only the times in `run.json` are not compared.

The faults are injected below the standard library by `tools/faults/inject.c`, which LD_PRELOAD loads. A hook in our own
functions would miss operations of other libraries and those that someone adds later.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "faults"))
import tiny  # noqa: E402

KINDS = ["no-space", "io-error", "kill-before", "kill-after"]
RUN = "augment train.conll --dev train.conll -o out --model model --config plan.toml --threads 1 --save-every 0"
# The arguments of each command. Its output is below the folder `out`.
COMMANDS = {
    "augment": RUN + " --set gold_check.folds=2",
    "augment with text": RUN + " --unlabelled text.conll --method label-wise",
    "train": "train train.conll --dev train.conll -o out --model model --config plan.toml --threads 1 --save-every 0",
    "tag": "tag tagger train.conll -o out/tagged.conll --force --threads 1",
    "reproduce": "reproduce mono --config grid.toml --data data --model model -o out --threads 1",
}
# A killed process cannot remove these files. They never have the name of a result.
LEFTOVERS = (".unfinished", ".part", ".lock")
# Commands that resume remove what a killed process left, so that nothing may stay.
RESUMING = {"augment", "augment with text", "train"}


@dataclass
class Tally:
    """The outcome of all faults of a command."""

    n_operations: int = 0
    n_faults: int = 0
    n_equal: int = 0
    n_leftovers: int = 0
    failures: list[str] = field(default_factory=list)


def build_library(folder: Path) -> Path:
    library = folder / "inject.so"
    source = Path(__file__).parent / "faults/inject.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


@dataclass
class Bench:
    """The command to test, the library, and the folder with the input files."""

    melm: Path
    library: Path
    inputs: Path

    def run(self, folder: Path, args: str, **faults: str) -> subprocess.CompletedProcess:
        env = os.environ | {"RUST_BACKTRACE": "0"}
        if faults:
            env |= {"LD_PRELOAD": str(self.library), "FAULT_ROOT": str(folder / "out")} | faults
        return subprocess.run([self.melm, *args.split()], cwd=folder, env=env, capture_output=True, text=True)

    def fresh(self, folder: Path) -> Path:
        """Makes a folder with links to the input files, and an empty output folder."""
        folder.mkdir()
        for path in self.inputs.iterdir():
            (folder / path.name).symlink_to(path)
        (folder / "out").mkdir()
        return folder

    def expect(self, folder: Path, args: str) -> tuple[list[str], dict[str, bytes]]:
        """Runs without a fault. Returns the operations and the files."""
        log = folder / "log"
        done = self.run(self.fresh(folder / "whole"), args, FAULT_LOG=str(log))
        if done.returncode != 0:
            raise SystemExit(f"`{args}` fails without a fault: {done.stderr}")
        return log.read_text().splitlines(), tiny.read_results(folder / "whole/out")

    def check(self, folder: Path, args: str, kind: str, number: int, wanted: dict[str, bytes]) -> tuple[str, int]:
        """Runs with one fault and then without. Returns what is wrong, or nothing, and the number of leftovers."""
        self.fresh(folder)
        broken = self.run(folder, args, FAULT_AT=str(number), FAULT_KIND=kind)
        is_killed = broken.returncode < 0
        again = self.run(folder, args)
        found = tiny.read_results(folder / "out")
        leftovers = [name for name in found if name.endswith(LEFTOVERS) and name not in wanted]
        for name in leftovers:
            del found[name]
        shutil.rmtree(folder)
        problem = ""
        if kind.startswith("kill") != is_killed or "panicked" in broken.stderr:
            problem = f"exit {broken.returncode}: {broken.stderr}"
        elif not is_killed and broken.returncode not in (0, 1):
            problem = f"exit {broken.returncode}: {broken.stderr}"
        elif again.returncode != 0:
            problem = f"the same command fails: {again.stderr}"
        elif wrong := tiny.differences(wanted, found):
            problem = "; ".join(wrong)
        return problem, len(leftovers)


def check_command(bench: Bench, folder: Path, command: str, every: int, jobs: int) -> Tally:
    args = COMMANDS[command]
    folder.mkdir()
    operations, wanted = bench.expect(folder, args)
    tally = Tally(n_operations=len(operations))
    # To be killed after an operation is to be killed before the next one, except for a write, which is then partial.
    faults = [
        (kind, number)
        for number, operation in list(enumerate(operations, 1))[::every]
        for kind in KINDS
        if kind != "kill-after" or operation.split()[1] == "write"
    ]

    def check(fault: tuple[str, int]) -> tuple[str, int]:
        kind, number = fault
        return bench.check(folder / f"{kind}-{number}", args, kind, number, wanted)

    with ThreadPoolExecutor(jobs) as pool:
        for (kind, number), (problem, n_leftovers) in zip(faults, pool.map(check, faults)):
            tally.n_faults += 1
            tally.n_leftovers += n_leftovers
            if n_leftovers and command in RESUMING:
                problem = problem or f"{n_leftovers} files are left"
            if problem:
                tally.failures.append(f"{kind} at {operations[number - 1]}: {problem}")
            else:
                tally.n_equal += 1
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("melm", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="disturb only every Nth operation")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=COMMANDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        inputs = folder / "inputs"
        tiny.write_folder(inputs)
        bench = Bench(options.melm.resolve(), build_library(folder), inputs)
        trained = bench.run(inputs, COMMANDS["train"].replace("-o out", "-o tagger"))
        if trained.returncode != 0:
            raise SystemExit(trained.stderr)
        print("| command | operations | faults | equal bytes | leftover temporary files |")
        print("| --- | ---: | ---: | ---: | ---: |")
        failures = []
        for command in COMMANDS:
            if options.only not in (None, command):
                continue
            own = folder / command.replace(" ", "-")
            tally = check_command(bench, own, command, options.every, options.jobs)
            print(f"| `{command}` | {tally.n_operations} | {tally.n_faults} | {tally.n_equal} | {tally.n_leftovers} |",
                  flush=True)
            failures += [f"{command}: {failure}" for failure in tally.failures]
        for failure in failures:
            print(failure, file=sys.stderr)
        sys.exit(bool(failures))


if __name__ == "__main__":
    main()
