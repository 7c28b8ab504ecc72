"""`melm.pick`, and `melm.augment` with labels from elsewhere."""

from __future__ import annotations

import json
import logging
import pathlib

import pytest
from conftest import FAST, parse, run_command

import melm

TEXTS = ["Grace Lovelace lived in Bonn.", "Konrad Hopper wrote.", "Berlin is not London.", "Ada spoke in Berlin."]
PANEL = dict(self_training__panel=2, self_training__budget="4 updates")
OPTIONS = ["--set", "self_training.panel=2", "--set", "self_training.budget=4 updates", "--device", "cpu"]


def test_picked_sentences_are_those_of_the_command(corpus: pathlib.Path, model: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="melm")
    pathlib.Path("text.txt").write_text("\n".join(TEXTS) + "\n")
    words = ["pick", "text.txt", "--train", "train.conll", "-n", "2", "--tagger-model", model, *OPTIONS]
    for name in ("command.conll", "command.json"):
        done = run_command(*words, "-o", name, *(["--to", "label-studio"] if name.endswith("json") else []))
        assert done.returncode == 0, done.stderr
    settings = dict(train="train.conll", n=2, tagger_model=model, device="cpu", progress=False, **PANEL)
    picked = melm.pick("text.txt", **settings)
    picked.save("python.conll")
    picked.save("python.json", to="label-studio")
    for name in ("{}.conll", "{}.conll.pick.jsonl", "{}.json", "{}.json.pick.jsonl"):
        assert pathlib.Path(name.format("python")).read_bytes() == pathlib.Path(name.format("command")).read_bytes()
    assert [one["rank"] for one in picked] == [1, 2] and picked.summary["picked"] == 2
    assert picked[0]["tokens"] and len(picked[0]["tags"]) == len(picked[0]["tokens"])
    assert repr(picked) == "Picked(2 of 4 sentences)" and len(picked.to_pandas()) == 2
    with pytest.raises(melm.ConfigError, match="`python.conll` exists already"):
        picked.save("python.conll")
    # Texts in memory give the same sentences. Those that are held out are left out.
    from_list = melm.pick(TEXTS, held_out=[picked[0]["tokens"]], **settings)
    assert picked[0]["tokens"] not in [one["tokens"] for one in from_list]
    assert "sentences left out, known or repeated: 1" in caplog.messages


def test_a_token_may_have_a_line_separator(corpus: pathlib.Path, model: str) -> None:
    tokens = ["Ada\u2028Zuse", "spoke", "."]
    picked = melm.pick([tokens], train="train.conll", n=1, tagger_model=model, device="cpu", progress=False, **PANEL)
    assert [one["tokens"] for one in picked] == [tokens]


def test_votes_in_a_folder_are_used_again(corpus: pathlib.Path, model: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="melm")
    settings = dict(train="train.conll", tagger_model=model, device="cpu", progress=False, folder="votes", **PANEL)
    one = melm.pick(TEXTS, n=1, **settings)
    assert any("training" in message for message in caplog.messages)
    caplog.clear()
    two = melm.pick(TEXTS, n=2, **settings)
    assert len(two) == 2 and list(two)[:1] == list(one)
    assert not any("training" in message for message in caplog.messages), caplog.messages
    with pytest.raises(melm.ConfigError, match="it had another unlabelled text"):
        melm.pick(TEXTS[1:], n=1, **settings)
    with pytest.raises(melm.ConfigError, match="at least 1"):
        melm.pick(TEXTS, train="train.conll", n=0)


def test_silver_labels_are_those_of_the_command(corpus: pathlib.Path, model: str) -> None:
    silver = parse("Emmy B-PER\nNoether I-PER\nspoke O\n\nRom B-LOC\nis O\nnot O\nBonn B-LOC\n")
    melm.convert(silver, "llm.conll")
    settings = dict(silver__folds=1, method="gold", self_training__passes=1, **PANEL)
    out = melm.augment("train.conll", silver={"llm": "llm.conll"}, model=model, **settings, **FAST)
    assert {draft["origin"] for draft in out.drafts} == {"silver:llm"} and len(out.drafts) == 2
    edits = [f"{key.replace('__', '.')}={json.dumps(value)}" for key, value in {**settings, **FAST}.items()]
    sets = [word for edit in edits if not edit.startswith(("device", "progress")) for word in ("--set", edit)]
    done = run_command("augment", "train.conll", "--silver", "llm=llm.conll", "--model", model, "--device", "cpu", "-o", "more", *sets)
    assert done.returncode == 0, done.stderr
    assert (corpus / "more/drafts.jsonl").read_bytes() == pathlib.Path(out.folder, "drafts.jsonl").read_bytes()
    other = [(["Acme", "spoke"], ["B-ORG", "O"])]
    with pytest.raises(melm.Error, match="entity type `ORG`"):
        melm.augment("train.conll", silver={"llm": other}, model=model, **settings, **FAST)
    with pytest.raises(melm.ConfigError, match="`silver` maps names of sources"):
        melm.augment("train.conll", silver="llm.conll", model=model, **settings, **FAST)
    dropped = melm.augment("train.conll", silver={"llm": other}, silver_drop_types=True, model=model, **settings, **FAST)
    assert all("B-ORG" not in draft["tags"] for draft in dropped.drafts)
