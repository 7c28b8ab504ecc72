#!/usr/bin/env python3
"""Lists the error variants whose message no test of the command line expects.

    python3 tools/check_errors.py [--check]

Reads the variants with `#[error("…")]` in `crates/*/src`. A variant has a test if the tests in `crates/melm-cli/tests`, or
the pages whose commands they run, contain a part of its message. --check fails if a variant has none and is not in
UNREACHABLE.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTED = ["crates/melm-cli/tests", "crates/melm-py/tests", "docs/reference/bad-inputs.md", "docs/guides", "README.md"]
# A part of a message is long enough to be recognised if it has this many characters.
MIN_LENGTH = 12
VARIANT = re.compile(r"#\[error\(\s*\"((?:[^\"\\]|\\.|\\\n)*)\"[^#]*?\)\]\s*(?:///[^\n]*\s*)*(\w+)", re.S)
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
# Variants that no command can trigger, and why.
UNREACHABLE: dict[str, str] = {}


def variants() -> list[tuple[str, str]]:
    """Returns the name and the message of every variant."""
    found = []
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        crate = path.relative_to(ROOT / "crates").parts[0]
        for message, name in VARIANT.findall(path.read_text()):
            text = re.sub(r"\\\n\s*", "", message).replace('\\"', '"').replace("{{", "{").replace("}}", "}")
            found.append((f"{crate}::{path.stem}::{name}", text))
    return found


def parts(message: str) -> list[str]:
    """Returns the texts between the placeholders of a message, the longest first."""
    texts = [text.strip("` ,;:.") for text in PLACEHOLDER.split(message)]
    return sorted((text for text in texts if len(text) >= MIN_LENGTH), key=len, reverse=True)


def is_tested(message: str, tests: str) -> bool:
    """Returns true if the tests contain the start, the end or the whole of a part of the message."""
    for part in parts(message):
        # Tests often quote only the beginning of a message.
        starts = [part[:n] for n in range(MIN_LENGTH, len(part) + 1)]
        words = [text for text in starts if text == part or part[len(text)] in " `,;:"]
        if any(text in tests for text in words):
            return True
    return False


def main() -> None:
    files = []
    for name in TESTED:
        path = ROOT / name
        files += [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in (".rs", ".py", ".md", ".trycmd"))
    tests = re.sub(r"\\\n\s*", "", "\n".join(path.read_text() for path in files))
    known = variants()
    missing = [name for name, message in known if not is_tested(message, tests) and name not in UNREACHABLE]
    for name in missing:
        print(name)
    print(f"{len(known)} variants, {len(missing)} without a test, {len(UNREACHABLE)} unreachable", file=sys.stderr)
    if "--check" in sys.argv and missing:
        sys.exit("add a test in crates/melm-cli/tests that triggers each variant above")


if __name__ == "__main__":
    main()
