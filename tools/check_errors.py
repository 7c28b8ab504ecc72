#!/usr/bin/env python3
"""Lists the error variants whose message no test of the command line expects.

    python3 tools/check_errors.py [--check]

Reads the variants and structs with `#[error("…")]` in `crates/*/src`. A variant has a test if the tests in
`crates/melm-cli/tests`, or the pages whose commands they run, contain its name, such as `melm::error::Read`, or a part of
its message. --check fails if a variant has none and is not in UNREACHABLE, or if one in UNREACHABLE has one or does not
exist.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTED = ["crates/melm-cli/tests", "crates/melm-py/tests", "docs/reference/bad-inputs.md", "docs/guides", "README.md"]
# A part of a message is long enough to be recognised if it has this many characters.
MIN_LENGTH = 12
VARIANT = re.compile(
    r"#\[error\(\s*\"((?:[^\"\\]|\\.|\\\n)*)\"[^#]*?\)\]\s*(?:///[^\n]*\s*)*(?:pub(?:\(\w+\))? struct )?(\w+)", re.S
)
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
# Variants that no command can trigger in a test, and why. A test in their crate does.
UNREACHABLE = {
    "melm::generate::settings::InvalidTemperature": "a plan has the temperature in a text: InvalidSampling",
    "melm::hub::client::Stalled": "takes 30 s of waiting and 31 s of pauses; melm/tests/hub/faults.rs",
    "melm::hub::client::Status": "takes 31 s of pauses; melm/tests/hub/faults.rs",
    "melm::hub::client::TooLong": "needs a server that sends more than it stated; melm/tests/hub/faults.rs",
    "melm::hub::client::Truncated": "takes 31 s of pauses; melm/tests/hub/faults.rs",
    "melm-eval::error::OtherDevice": "needs GPUs of two kinds",
    "melm-eval::error::Schemes": "the command reads all files of a grid in one scheme; melm-eval/src/tests/grids.rs",
    "melm-nn::error::Cuda": "needs a GPU that fails",
    "melm-nn::error::DeviceMemory": "needs a GPU; melm-nn tests it with the emulator",
    "melm-nn::error::DuplicateTensor": "the models have one tensor of each name; melm-nn/tests/weights/golden.rs",
    "melm-nn::error::ForbiddenTag": "the constraints are made from the scheme of the tags; melm-nn/src/crf/tests.rs",
    "melm-nn::error::Limit": "so many tags and layers are refused before: TooManyTags, Config; melm-nn/tests/weights/hostile.rs",
    "melm-nn::error::MaskedPositions": "melm makes batches with an original for each position; melm-nn/tests/wrong_batches.rs",
    "melm-nn::error::NoKernels": "needs a GPU; melm-nn/tests/wrong_batches.rs",
    "melm-nn::error::NoParameter": "melm asks only for tensors of the model",
    "melm-nn::error::PieceOutOfRange": "a tokenizer with more pieces than the model is refused before: TooManyPieces",
    "melm-nn::error::SentenceLength": "long sentences are divided into windows before; melm-nn/tests/wrong_batches.rs",
    "melm-nn::error::TaggedTokens": "melm makes batches with a tag for each token; melm-nn/tests/wrong_batches.rs",
    "melm-nn::error::TensorLength": "the models save tensors of the right length; melm-nn/tests/weights/golden.rs",
}


def variants() -> list[tuple[str, str]]:
    """Returns the name and the message of every variant."""
    found = []
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        crate, _, *modules = path.relative_to(ROOT / "crates").with_suffix("").parts
        for message, name in VARIANT.findall(path.read_text()):
            text = re.sub(r"\\\n\s*", "", message).replace('\\"', '"').replace("{{", "{").replace("}}", "}")
            found.append(("::".join([crate, *modules, name]), text))
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


def is_named(name: str, tests: str) -> bool:
    """Returns true if a test says that it covers the variant."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", tests) is not None


def main() -> None:
    files = []
    for name in TESTED:
        path = ROOT / name
        files += [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in (".rs", ".py", ".md", ".trycmd"))
    tests = re.sub(r"\\\n\s*", "", "\n".join(path.read_text() for path in files))
    known = variants()
    untested = [name for name, message in known if not is_named(name, tests) and not is_tested(message, tests)]
    missing = [name for name in untested if name not in UNREACHABLE]
    stale = [name for name in UNREACHABLE if name not in untested]
    for name in missing:
        print(name)
    for name in stale:
        print(f"{name} is in UNREACHABLE, but has a test or does not exist")
    print(f"{len(known)} variants, {len(missing)} without a test, {len(UNREACHABLE)} unreachable", file=sys.stderr)
    if "--check" in sys.argv and (missing or stale):
        sys.exit("add a test in crates/melm-cli/tests that triggers each variant above, or correct UNREACHABLE")


if __name__ == "__main__":
    main()
