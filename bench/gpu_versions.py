"""Compares versions of the GPU kernels: python3 bench/gpu_versions.py FOLDER [--rounds 3] [--json FILE] [--device cpu]

FOLDER has a program bench_step-NAME for each version; `sh bench/gpu.sh pack` builds them. The versions run in turns, so that all
see the same state of the machine. Prints the milliseconds of a training step, measured as in bench/cuda.py: the median of the
rounds, and all of them.
`--device cpu` runs single steps of mini, a test of this script for machines without a GPU.
"""
import argparse, json, pathlib, statistics, subprocess, sys
from types import SimpleNamespace

from cuda import ours

RUNS = [("mini", "16"), ("base", "16"), ("base", "long"), ("mini", "long")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="the file for all times; written after every round")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    programs = {path.name.removeprefix("bench_step-"): path for path in sorted(options.folder.glob("bench_step-*"))}
    if not programs:
        parser.error(f"{options.folder} has no program bench_step-NAME; `sh bench/gpu.sh pack` builds them")
    runs = RUNS if options.device == "cuda" else RUNS[:1]
    times = {name: {f"{shape} {batch}": [] for shape, batch in runs} for name in programs}
    errors = {}
    for _ in range(options.rounds):
        for shape, batch in runs:
            for name, program in programs.items():
                try:
                    settings = SimpleNamespace(ours=program, tiny=options.device == "cpu")
                    times[name][f"{shape} {batch}"].append(ours(settings, shape, "train", batch)["ms"])
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    errors[name, f"{shape} {batch}"] = str(error)
        if options.json:
            options.json.write_text(json.dumps(times, indent=1))
    print("| version | " + " | ".join(f"{shape} {batch}" for shape, batch in runs) + " |\n|---" + "|---" * len(runs) + "|")
    for name, found in times.items():
        cells = [f"{statistics.median(ms):.2f} ({', '.join(f'{one:.2f}' for one in ms)})" if ms else "failed" for ms in found.values()]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for (name, run), error in errors.items():
        print(f"\n{name}, {run}: {error}")
    return 1 if errors else 0


sys.exit(main())
