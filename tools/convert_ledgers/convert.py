#!/usr/bin/env python3
"""Replace keys and data fingerprints in the ledgers under results/ by those of melm-eval. Was run once, on 2026-11-16.

    git worktree add /tmp/old 399eea7
    mkdir /tmp/old/crates/melm/examples && cp tools/convert_ledgers/old_*.rs /tmp/old/crates/melm/examples/
    (cd /tmp/old && cargo build -p melm --example old_keys --example old_vectors)
    cargo build -p melm-eval --example ledger_keys
    python3 tools/convert_ledgers/convert.py /tmp/old/target/debug/examples target/debug/examples VECTORS CONLL DEV

Up to commit 399eea7, keys and fingerprints of data files were hashes of texts that included Debug output. A ledger line
gets a new key if the old program computes the line's old key from the grid next to the ledger (GRID.toml for
GRID.jsonl.gz) and from the current data, models and vectors. All other lines keep their old key, because the old
program could not find them either. Fingerprints of known data files are replaced in all lines. Scores are not changed.

VECTORS is a folder with the files europarl.LANG.vec.gz. CONLL is a folder with LANG/train.conll, LANG/dev.conll and
LANG/test.conll. DEV is a folder of the same form, with split dev sets (docs/results.md, "How melm-both was found") and
politics.
"""
import collections
import gzip
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "crates/melm-mini/model"
# The Debug output of the default `ReadOptions`.
OPTIONS = (
    b"ReadOptions { format: None, scheme: None, token_column: None, tag_column: None, tokens_key: None, "
    b"tags_key: None, names: None }"
)


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]


def old_fingerprint(path):
    """Return the fingerprint that commit 399eea7 computes for a data file."""
    hash = hashlib.sha256()
    for part in path.read_bytes(), OPTIONS:
        hash.update(len(part).to_bytes(8, "little"))
        hash.update(part)
    return hash.hexdigest()


def fingerprints(new, folders):
    """Return the old and the new fingerprint of each data file."""
    paths = [path for folder in folders for path in sorted(folder.glob("*/*.conll"))]
    return dict(zip(map(old_fingerprint, paths), run(new / "ledger_keys", "data", *paths), strict=True))


def keys(program, grid, text, vectors):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as ledger:
        ledger.write(text)
        ledger.flush()
        return run(program, grid, ledger.name, MODEL, vectors)


def read(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def write(path, text):
    data = text.encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)


def check(name, lines):
    """Check that lines with the same key have the same scores, because they have the same settings and data."""
    scores = collections.defaultdict(set)
    for line in map(json.loads, lines):
        scores[line["key"]].add(json.dumps([line.get("dev"), line["n_train"], line["updates"]]))
    several = sum(len(found) > 1 for found in scores.values())
    if several:
        sys.exit(f"{name}: {several} keys have different scores")


def main():
    old, new, vectors, *folders = map(pathlib.Path, sys.argv[1:])
    data = fingerprints(new, folders)
    [of_vectors] = run(old / "old_vectors", folders[0], vectors)
    for path in sorted([*ROOT.glob("results/*/*.jsonl.gz"), *ROOT.glob("results/*/*.jsonl")]):
        before = read(path)
        after = before
        for one, other in data.items():
            after = after.replace(one, other)
        lines, n_converted = after.splitlines(), 0
        grid = path.with_name(path.name.split(".")[0] + ".toml")
        if grid.exists():
            own = [json.loads(line)["key"] for line in lines]
            expected = keys(old / "old_keys", grid, before, of_vectors)
            found = keys(new / "ledger_keys", grid, after, of_vectors)
            for at, (key, old_key, new_key) in enumerate(zip(own, expected, found, strict=True)):
                if key == old_key:
                    lines[at] = lines[at].replace(key, new_key)
                    n_converted += 1
        check(path.name, lines)
        write(path, "\n".join(lines) + "\n")
        print(f"{path.relative_to(ROOT)}: {n_converted} of {len(lines)} lines have new keys")


main()
