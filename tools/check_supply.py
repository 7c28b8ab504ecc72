#!/usr/bin/env python3
"""Checks the licences and the sources of all dependencies.

    python3 tools/check_supply.py [--list]

Reads `cargo metadata` for the versions in Cargo.lock, on all platforms and with all features. Fails if a package is not
from crates.io, has no licence, or has a licence that LICENCES does not allow. --list prints the packages by licence.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFESTS = ["Cargo.toml", "fuzz/Cargo.toml", "loom/Cargo.toml"]
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
# Licences that allow use in a program under MIT or Apache-2.0 without further duties than a notice.
LICENCES = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0",
    "CC0-1.0", "CDLA-Permissive-2.0", "ISC", "MIT", "MIT-0", "NCSA", "Unicode-3.0", "Unlicense", "Zlib",
}
# Packages with another licence, and why it is acceptable.
EXCEPTIONS = {"option-ext": "MPL-2.0 covers its own files only, and they are used unchanged (through `dirs`)"}


def packages(manifest: str) -> list[dict]:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features", "--manifest-path", manifest]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(found.stdout)["packages"]


def is_allowed(expression: str) -> bool:
    """Evaluates an SPDX expression: `A OR B` needs one allowed licence, `A AND B` both. Old packages write `A/B`."""
    tokens = re.findall(r"\(|\)|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))

    def atom() -> bool:
        token = tokens.pop(0)
        if token != "(":
            return token in LICENCES
        value = either()
        tokens.pop(0)
        return value

    def both() -> bool:
        value = atom()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            value = atom() and value
        return value

    def either() -> bool:
        value = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            value = both() or value
        return value

    return either()


def problems(package: dict) -> list[str]:
    name = f"{package['name']} {package['version']}"
    if package["source"] is None:
        # A package of this repository.
        return []
    found = []
    if package["source"] != CRATES_IO:
        found.append(f"{name} comes from {package['source']}")
    if not package["license"]:
        found.append(f"{name} states no licence")
    elif not is_allowed(package["license"]) and package["name"] not in EXCEPTIONS:
        found.append(f"{name} has the licence {package['license']}")
    return found


def main() -> None:
    known = {package["id"]: package for manifest in MANIFESTS for package in packages(manifest)}
    others = [package for package in known.values() if package["source"] is not None]
    wrong = [problem for package in others for problem in problems(package)]
    if "--list" in sys.argv:
        for licence, n in Counter(package["license"] for package in others).most_common():
            print(f"{n:>4}  {licence}")
    if wrong:
        sys.exit("\n".join(sorted(wrong)))
    print(f"{len(others)} packages from crates.io, all with an allowed licence")


if __name__ == "__main__":
    main()
