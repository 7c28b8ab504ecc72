"""`score`, `check`, `convert`, `read`, `trial` and the command line in the package."""

from __future__ import annotations

import json
import logging
import pathlib
import subprocess
import sys

import pytest
from conftest import FAST, TRAIN, parse, run_command

import melm


def test_scores_are_those_of_the_command(corpus: pathlib.Path) -> None:
    predicted = [(tokens, ["O" if tag == "B-LOC" else tag for tag in tags]) for tokens, tags in parse(TRAIN)]
    found = melm.score("train.conll", predicted)
    # Three persons of seven mentions are found, and nothing else is predicted.
    assert (found["precision"], found["recall"], found["support"]) == (1.0, 3 / 7, 7)
    melm.convert(predicted, "predicted.jsonl")
    done = run_command("score", "train.conll", "predicted.jsonl", "--json")
    assert json.loads(done.stdout) == found
    with pytest.raises(melm.DataError, match="(?s)predictions need the same sentences"):
        melm.score("train.conll", predicted[:2])


def test_strict_scores_reject_malformed_mentions() -> None:
    gold, predicted = [(["a", "b"], ["B-X", "I-X"])], [(["a", "b"], ["I-X", "I-X"])]
    assert melm.score(gold, predicted)["f1"] == 1.0
    assert melm.score(gold, predicted, strict=True)["f1"] == 0.0


def test_check_is_that_of_the_command(corpus: pathlib.Path) -> None:
    found = melm.check("train.conll", "train.conll")
    assert json.loads(run_command("check", "train.conll", "train.conll", "--json").stdout) == found
    assert found["files"][1]["repeats"]["leaks"]["n"] == 4
    wrong = melm.check([(["a", "b"], ["B-X"])])
    assert wrong["problems"] == 1 and wrong["files"][0]["problems"][0]["line"] == 1


def test_convert_writes_the_bytes_of_the_command(corpus: pathlib.Path) -> None:
    for ending, to in (("jsonl", "jsonl"), ("json", "gliner"), ("spacy", "spacy"), ("parquet", "parquet")):
        assert run_command("convert", "train.conll", "--to", to, "-o", f"command.{ending}").returncode == 0
        melm.convert("train.conll", f"python.{ending}", to=to)
        assert pathlib.Path(f"python.{ending}").read_bytes() == pathlib.Path(f"command.{ending}").read_bytes(), to
    assert melm.convert(parse(TRAIN), to="conll").splitlines()[0] == "Ada\tB-PER"
    assert melm.convert("train.conll", scheme="iobes").splitlines()[1] == "Lovelace E-PER"
    with pytest.raises(melm.ConfigError, match="`to=xyz`: expected one of"):
        melm.convert("train.conll", to="xyz")


def test_convert_chooses_the_format_by_the_ending_and_replaces_nothing(corpus: pathlib.Path) -> None:
    for name in ("ending.spacy", "ending.jsonl"):
        assert run_command("convert", "train.conll", "-o", f"command-{name}").returncode == 0
        melm.convert("train.conll", name)
        assert pathlib.Path(name).read_bytes() == pathlib.Path(f"command-{name}").read_bytes()
    with pytest.raises(melm.ConfigError, match="`ending.spacy` exists already"):
        melm.convert("train.conll", "ending.spacy")
    assert isinstance(melm.convert("ending.spacy"), bytes)
    with pytest.raises(melm.ConfigError, match="no format has the ending"):
        melm.convert("train.conll", "ending.xyz")
    melm.convert("train.conll", "pair.ann", to="brat")
    assert pathlib.Path("pair.ann").read_text().startswith("T1\tPER 0 12\tAda Lovelace")
    assert pathlib.Path("pair.txt").read_text().startswith("Ada Lovelace ")


def test_read_takes_the_options_of_the_command(corpus: pathlib.Path) -> None:
    pathlib.Path("latin.conll").write_bytes("Köln B-LOC\n".encode("latin-1"))
    with pytest.raises(melm.DataError, match="latin1"):
        melm.read("latin.conll")
    read = melm.read("latin.conll", encoding="latin1")
    assert list(read) == [(["Köln"], ["B-LOC"])] and read[-1] == read[0]
    assert (read.scheme, read.types, len(read)) == ("iob2", ["LOC"], 1)
    with pytest.raises(IndexError):
        read[1]
    with pytest.raises(melm.ConfigError, match="there is no option `colour`"):
        melm.read("train.conll", colour="red")


def test_trial_compares_methods(corpus: pathlib.Path, model: str) -> None:
    settings = {key: value for key, value in FAST.items() if key not in ("tagger__budget",)}
    pairs = parse(TRAIN) * 2
    found = melm.trial(pairs, folds=2, seeds=1, updates=3, methods=["label-wise"], model=model, folder="trial", **settings)
    assert "label-wise" in found and "| gold |" in found["table"] and found["verdict"]
    ledger = (corpus / "trial/ledger.jsonl").read_text()
    again = melm.trial(pairs, folds=2, seeds=1, updates=3, methods=["label-wise"], model=model, folder="trial", **settings)
    assert again == found and (corpus / "trial/ledger.jsonl").read_text() == ledger
    melm.convert(pairs, "pairs.jsonl")
    done = run_command(
        "trial", "pairs.jsonl", "--folds", "2", "--seeds", "1", "--updates", "3", "--methods", "label-wise", "--model", model,
        "--json", "--device", "cpu", "--set", "generate.rounds=2", "--set", "finetune.budget=2 epochs", "--set",
        "filter.mode=off",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {key: value for key, value in found.items() if key != "table"}
    with pytest.raises(melm.ConfigError, match="two folds or more"):
        melm.trial(pairs, folds=1, model=model)


def test_sentences_held_out_of_a_trial_are_left_out(
    corpus: pathlib.Path, model: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="melm")
    settings = dict(folds=2, seeds=1, updates=1, methods=["label-wise"], model=model, device="cpu", progress=False)
    settings |= dict(self_training__panel=1, self_training__passes=1, self_training__budget="1 updates")
    texts = ["Zuse lived in Bonn.", "It is not London."]
    found = melm.trial("train.conll", unlabelled=texts, held_out=texts[1:], **settings)
    assert "gold + text" in found
    assert any(line.startswith("1 sentence of unlabelled text; 1 left out") for line in caplog.messages)
    with pytest.raises(melm.ConfigError, match="no sentence of the unlabelled text is left"):
        melm.trial("train.conll", unlabelled=texts, held_out=texts, **settings)


def test_the_command_line_is_in_the_package(corpus: pathlib.Path) -> None:
    done = subprocess.run([sys.executable, "-m", "melm", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "augment" in done.stdout
    done = subprocess.run([sys.executable, "-m", "melm", "check", "missing.conll"], capture_output=True, text=True)
    assert done.returncode == 1 and "cannot read `missing.conll`" in done.stderr
    done = subprocess.run([sys.executable, "-m", "melm", "tag"], capture_output=True, text=True)
    assert done.returncode == 2
    version = subprocess.run([sys.executable, "-m", "melm", "--version"], capture_output=True, text=True)
    assert version.stdout.strip() == f"melm {melm.__version__}"
