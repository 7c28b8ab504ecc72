#!/usr/bin/env python3
"""Lists the error variants whose message no test of the command line expects.

    python3 tools/check_errors.py [--check]

Reads the variants and structs with `#[error("…")]` in `crates/*/src`. A variant has a test in one of two ways:

- A test in `crates/melm-cli/tests` names it: a case, a comment or the name of a test contains `melm::error::Read`, or an end
  of this name that no other variant has, with at least one `::`.
- A string of these tests, or `docs/reference/bad-inputs.md`, whose commands they run, contains at least 25 characters of its
  message without a gap, or the whole message. A text that two messages have does not count.

Other comments, guides and the tests of other crates do not count. --check fails if a variant has no test and is not in
UNREACHABLE, or if one in UNREACHABLE has one or does not exist.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = "crates/melm-cli/tests"
BAD_INPUTS = "docs/reference/bad-inputs.md"
# A part of a message is long enough to be recognised if it has this many characters.
MIN_LENGTH = 25
# Any text can stand for a placeholder, up to this length.
MAX_VALUE = 200
VARIANT = re.compile(
    r"#\[error\(\s*\"((?:[^\"\\]|\\.|\\\n)*)\"[^#]*?\)\]\s*(?:///[^\n]*\s*)*(?:pub(?:\(\w+\))? struct )?(\w+)", re.S
)
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
# Variants that no command can trigger in a test, and why. A test in their crate does.
UNREACHABLE = {
    "melm::error::DeviceFailed": "needs a GPU; melm/tests/tagger/gpu.rs",
    "melm::error::TooManyGpuTags": "needs a GPU; melm/tests/tagger/gpu.rs",
    "melm::error::NoEmbeddedModel": "needs a program without the feature `mini`; melm/src/models/store.rs",
    "melm::error::NoMarker": "markers are made from all corpora that are linearized; melm/tests/method/markers.rs",
    "melm::error::NoText": "the reader refuses a text without sentences before; melm/tests/unlabelled/main.rs",
    "melm::hub::error::NotCached": "needs a program without the feature `hub`; melm/src/hub/mod.rs",
    "melm::hub::error::Unavailable": "takes 31 s of pauses; melm/tests/hub/faults.rs",
    "melm::shard::error::Empty": "`merge` needs at least one file; melm/src/shard/file.rs",
    "melm::generate::settings::InvalidTemperature": "a plan has the temperature in a text: InvalidSampling; melm/src/generate/settings.rs",
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
    "melm-nn::error::NoParameter": "melm asks only for tensors of the model; melm-nn/tests/wrong_batches.rs",
    "melm-nn::error::NothingToPredict": "melm gives each sequence a start and an end; melm-nn/tests/wrong_batches.rs",
    "melm-nn::error::PieceOutOfRange": "a tokenizer with more pieces than the model is refused before: TooManyPieces; melm-nn/tests/wrong_batches.rs",
    "melm-nn::error::SentenceLength": "long sentences are divided into windows before; melm-nn/tests/wrong_batches.rs",
    "melm-nn::error::TagNames": "melm saves a tagger with a name for each tag; melm-nn/tests/golden/tagger_invariants.rs",
    "melm-nn::error::TagOutOfRange": "melm makes batches with the tags of the tagger; melm-nn/tests/wrong_batches.rs",
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


def windows(message: str) -> set[str]:
    """Returns all texts of MIN_LENGTH characters between the placeholders of a message."""
    parts = PLACEHOLDER.split(message)
    return {part[at : at + MIN_LENGTH] for part in parts for at in range(len(part) - MIN_LENGTH + 1)}


def whole(message: str) -> str | None:
    """Returns an expression that matches the whole message with values. A message of placeholders only has none."""
    parts = PLACEHOLDER.split(message)
    if not "".join(parts).strip():
        return None
    return (r"[^\n]{1,%d}?" % MAX_VALUE).join(re.escape(part) for part in parts)


def is_tested(message: str, others: list[str], tests: str) -> bool:
    """Returns true if the tests contain a part of the message that is long enough and in no other message, or all of it."""
    if any(text in tests and not any(text in other for other in others) for text in windows(message)):
        return True
    pattern = whole(message)
    return pattern is not None and message not in others and re.search(pattern, tests) is not None


def is_named(name: str, names: list[str], tests: str) -> bool:
    """Returns true if a test says that it covers the variant."""
    modules = name.split("::")
    ends = ["::".join(modules[at:]) for at in range(len(modules) - 1)]
    own = [end for end in ends if sum(("::" + other).endswith("::" + end) for other in names) == 1]
    return any(re.search(rf"(?<![\w:-]){re.escape(end)}(?![\w:])", tests) for end in own)


def without_comments(source: str) -> str:
    """Returns the code of a test without comments, with the text of its strings as the program sees it."""
    code = re.sub(r"^\s*//[^\n]*$", "", source, flags=re.M)
    return re.sub(r"\\\n\s*", "", code).replace('\\"', '"')


def main() -> None:
    sources = [path.read_text() for path in sorted((ROOT / TESTS).rglob("*.rs"))]
    tests = "\n".join([without_comments(source) for source in sources] + [(ROOT / BAD_INPUTS).read_text()])
    known = variants()
    names = [name for name, _ in known]
    untested = []
    for name, message in known:
        others = [other for other_name, other in known if other_name != name]
        if not is_named(name, names, "\n".join(sources)) and not is_tested(message, others, tests):
            untested.append(name)
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
