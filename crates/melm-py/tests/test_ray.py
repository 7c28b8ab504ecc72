"""`melm.ray` on a local cluster. Skipped without Ray, which is too large for CI: `pip install "ray[data]"` to run it.

`tools/check_ray.py` is the larger test, which kills an actor.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import FAST, TRAIN, parse, run_command

import melm

ray: Any = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture()
def tagger(corpus: pathlib.Path, model: str) -> str:
    melm.Tagger.train(parse(TRAIN), model=model, device="cpu", progress=False, tagger__budget="4 epochs").save("tagger")
    return "tagger"


def test_rows_are_tagged_as_in_one_process(cluster: None, tagger: str) -> None:
    import melm.ray

    rows = [tokens for tokens, _ in parse(TRAIN)] * 20
    for part, start in enumerate((0, 30)):
        lines = [json.dumps({"tokens": tokens, "n": at}) for at, tokens in enumerate(rows)][start : start + 30 + 20 * part]
        pathlib.Path(f"part-{part}.jsonl").write_text("\n".join(lines) + "\n")
    tagged = melm.ray.tag("part-*.jsonl", tagger, out="tagged", actors=2, batch_size=7)
    expected = melm.Tagger.from_pretrained(tagger, device="cpu").predict(rows)
    found = sorted(tagged.take_all(), key=lambda row: row["n"])
    assert [(row["tokens"], row["tags"]) for row in found] == expected
    assert len({row["id"] for row in found}) == 80 and found[79]["id"].endswith("part-1.jsonl:50")
    with pytest.raises(melm.DataError, match="79 rows and the input 80"):
        melm.ray.verify(tagged, tagged.limit(79))
    doubled = ray.data.from_items([{"id": "a"}, {"id": "a"}])
    with pytest.raises(melm.DataError):
        melm.ray.verify(ray.data.from_items([{"id": "a"}, {"id": "b"}]), doubled)


def test_shards_of_generate_are_merged(cluster: None, corpus: pathlib.Path, model: str) -> None:
    import melm.ray

    fast = [f"--set={key.replace('__', '.')}={value}" for key, value in FAST.items() if "__" in key]
    learnt = run_command("finetune", "train.conll", "--model", model, "--device", "cpu", "-o", "lm", *fast)
    assert learnt.returncode == 0, learnt.stderr
    assert run_command("generate", "lm", "train.conll", "-o", "alone.jsonl").returncode == 0
    merged = melm.ray.generate(str(corpus / "lm"), str(corpus / "train.conll"), "drafts.jsonl", shards=3)
    assert pathlib.Path(merged).read_bytes() == pathlib.Path("alone.jsonl").read_bytes()


GRID = """
files = "{language}/{split}.conll"
evaluations = 2
[plan]
tagger.budget = "4 updates"
filter.mode = "off"
[[grid]]
languages = ["en"]
sizes = [3]
draws = [1, 2]
seeds = [1]
methods = ["gold", "label-wise"]
budgets = ["4 updates"]
"""


def test_shards_of_a_grid_fill_one_folder(cluster: None, corpus: pathlib.Path, model: str) -> None:
    import melm.ray

    (corpus / "data/en").mkdir(parents=True)
    for split in ("train", "dev"):
        (corpus / f"data/en/{split}.conll").write_text(TRAIN)
    (corpus / "grid.toml").write_text(GRID)
    arguments = ["--config", str(corpus / "grid.toml"), "--data", str(corpus / "data"), "--model", model]

    def scores(folder: str) -> list[tuple[str, str]]:
        ledgers = sorted(pathlib.Path(folder).glob("ledger*.jsonl"))
        lines = [json.loads(line) for path in ledgers for line in path.read_text().splitlines()]
        return sorted((line["key"], json.dumps(line["dev"])) for line in lines)

    alone = run_command("reproduce", "mono", "-o", "alone", "--device", "cpu", *arguments)
    assert alone.returncode == 0, alone.stderr
    out = melm.ray.reproduce("mono", "grid", shards=2, arguments=arguments)
    assert scores(out) == scores("alone") and len(scores(out)) == 4
