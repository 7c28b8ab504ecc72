"""Check `melm.ray`: tag 100,000 sentences on two actors, kill one of them, and compare with one process, row by row.

    python tools/check_ray.py [n_sentences]

Needs the package `melm` and `ray[data]`. Run it by hand: Ray is too large for CI. It takes about three minutes on two cores.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "crates/melm-py/tests"))

# Ray gives its workers a low priority (15). On a busy machine, they would wait for other programs.
os.environ.setdefault("RAY_worker_niceness", "0")

import ray
from conftest import TRAIN, parse, write_model

import melm
import melm.ray


def write_rows(folder: pathlib.Path, n: int) -> list[str]:
    """Write `n` different sentences into four files. Return their paths."""
    tokens = [token for sentence, _ in parse(TRAIN) for token in sentence]
    paths = []
    for part in range(4):
        path = folder / f"part-{part}.jsonl"
        with open(path, "w", encoding="utf-8") as out:
            for at in range(part * n // 4, (part + 1) * n // 4):
                sentence = [tokens[(at * 7 + step * (at % 5 + 1)) % len(tokens)] for step in range(5 + at % 20)]
                out.write(json.dumps({"tokens": [*sentence, str(at)]}) + "\n")
        paths.append(str(path))
    return paths


def find_workers() -> list[int]:
    """Return the processes of the actors. Ray changes the command line of a process to what it does."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::MapWorker"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def kill_worker(after: float, killed: list[int]) -> None:
    """Kill one of two actors with SIGKILL, some seconds after both have started."""
    while len(find_workers()) < 2:
        time.sleep(0.5)
    time.sleep(after)
    worker = find_workers()[0]
    os.kill(worker, signal.SIGKILL)
    killed.append(worker)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    folder = pathlib.Path(tempfile.mkdtemp(prefix="check-ray-"))
    write_model(folder / "model")
    train = parse(TRAIN)
    settings = {"tagger__budget": "20 epochs", "tagger__learning_rate": 0.02}
    melm.Tagger.train(train, dev=train, model=folder / "model", device="cpu", progress=False, **settings).save(folder / "tagger")
    paths = write_rows(folder, n)

    rows = [json.loads(line)["tokens"] for path in paths for line in open(path, encoding="utf-8")]
    tagger = melm.Tagger.from_pretrained(folder / "tagger", device="cpu")
    start = time.time()
    expected = [tags for _, tags in tagger.predict(rows)]
    alone = time.time() - start
    n_mentions = sum(tag.startswith("B-") for tags in expected for tag in tags)
    print(f"one process, two threads: {n} sentences, {n_mentions} mentions, {alone:.1f} s, {n / alone:.0f} sentences/s", flush=True)

    start = time.time()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    print(f"Ray {ray.__version__} started in {time.time() - start:.1f} s", flush=True)
    for kill in (False, True):
        killed: list[int] = []
        start = time.time()
        if kill:
            threading.Thread(target=kill_worker, args=(alone / 6, killed), daemon=True).start()
        out = folder / f"out-{kill}"
        tagged = melm.ray.tag(paths, folder / "tagger", out=out, actors=2, cpus=1, batch_size=512)
        elapsed = time.time() - start
        found = {row["id"]: (row["tokens"], row["tags"]) for row in tagged.iter_rows()}
        ids = [f"{path}:{at}" for path in paths for at in range(1, 1 + sum(1 for _ in open(path, encoding="utf-8")))]
        assert len(found) == n == tagged.count(), (len(found), tagged.count())
        assert [found[one] for one in ids] == list(zip(rows, expected)), "the rows differ"
        assert len(killed) == kill, "no actor was killed"
        what = f"process {killed[0]} killed with SIGKILL, " if kill else ""
        print(f"two actors, {what}{n} rows equal, {elapsed:.1f} s, {n / elapsed:.0f} sentences/s", flush=True)


if __name__ == "__main__":
    main()
