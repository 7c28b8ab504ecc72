#!/usr/bin/env python3
"""Checks the seeds of the fuzz targets in fuzz/seeds: a folder for each target, with small files.

    python3 tools/check_seeds.py
"""

import re
import sys
from pathlib import Path

FUZZ = Path(__file__).resolve().parent.parent / "fuzz"
# The largest seed, and all seeds together, in bytes. The fuzzer reads short inputs faster, and the repository stays small.
MAX_SEED = 10_000
MAX_ALL = 200_000


def main() -> None:
    targets = set(re.findall(r'^name = "(\w+)"\npath', (FUZZ / "Cargo.toml").read_text(), re.M))
    folders = {path.name for path in (FUZZ / "seeds").iterdir()}
    problems = [f"fuzz/seeds has no folder `{name}`" for name in sorted(targets - folders)]
    problems += [f"fuzz/seeds/{name} is not the name of a target" for name in sorted(folders - targets)]
    sizes = {path: path.stat().st_size for path in (FUZZ / "seeds").rglob("*") if path.is_file()}
    problems += [f"{path.relative_to(FUZZ)} has {n} bytes, more than {MAX_SEED}" for path, n in sizes.items() if n > MAX_SEED]
    if sum(sizes.values()) > MAX_ALL:
        problems.append(f"the seeds have {sum(sizes.values())} bytes, more than {MAX_ALL}")
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(targets)} targets, {len(sizes)} seeds, {sum(sizes.values())} bytes")


if __name__ == "__main__":
    main()
