"""`melm.augment` against the command, and its results."""

from __future__ import annotations

import json
import logging
import pathlib
import shutil
import sys

import pytest
from conftest import FAST, TRAIN, parse, results, run_command

import melm

OPTIONS = ["--set", "finetune.budget=2 epochs", "--set", "tagger.budget=4 epochs", "--set", "filter.mode=off", "--device", "cpu"]


def augment_by_command(train: str, model: str, *more: str) -> dict[str, bytes]:
    done = run_command(
        "augment", train, "--dev", train, "-o", "by-command", "--model", model, "--rounds", "2", "--seed", "3", *OPTIONS, *more
    )
    assert done.returncode == 0, done.stderr
    return results(pathlib.Path("by-command"))


def test_files_are_those_of_the_command_byte_for_byte(corpus: pathlib.Path, model: str) -> None:
    out = melm.augment("train.conll", dev="train.conll", model=model, seed=3, **FAST)
    out.save("saved")
    expected = augment_by_command("train.conll", model)
    found = results(pathlib.Path("saved"))
    assert set(found) == set(expected) == {"drafts.jsonl", "metrics.jsonl", "plan.toml", "train.augmented.conll"}
    for name in expected:
        assert found[name] == expected[name], name
    assert "There is no command" in pathlib.Path("saved/README.md").read_text()
    assert "$ melm augment train.conll --dev" in pathlib.Path("by-command/README.md").read_text()
    recorded = json.loads(pathlib.Path("saved/run.json").read_text())
    assert recorded["train"] == json.loads(pathlib.Path("by-command/run.json").read_text())["train"]


def test_pairs_give_the_files_of_json_lines(corpus: pathlib.Path, model: str) -> None:
    assert run_command("convert", "train.conll", "-o", "train.jsonl").returncode == 0
    pairs = parse(TRAIN)
    out = melm.augment(pairs, dev=pairs, model=model, seed=3, **FAST)
    out.save("saved")
    expected = augment_by_command("train.jsonl", model)
    found = results(pathlib.Path("saved"))
    for name in ("drafts.jsonl", "metrics.jsonl", "plan.toml", "train.augmented.jsonl"):
        assert found[name] == expected[name], name


def test_dataset_is_gold_followed_by_the_kept_drafts(corpus: pathlib.Path, model: str) -> None:
    pairs = parse(TRAIN)
    out = melm.augment(pairs, model=model, **FAST)
    kept = [(draft["tokens"], draft["tags"]) for draft in out.drafts if draft["verdict"] == "kept"]
    assert kept and out.dataset == pairs + kept
    assert out.summary["drafts"]["kept"] == len(kept)
    assert out.summary["drafts"]["drafts"] == len(out.drafts)
    from_path = melm.augment("train.conll", model=model, **FAST).dataset
    assert isinstance(from_path, melm.Corpus) and list(from_path) == out.dataset
    only = melm.augment(pairs, model=model, union=False, **FAST).dataset
    assert only == kept


def test_drafts_and_report(corpus: pathlib.Path, model: str) -> None:
    pandas = pytest.importorskip("pandas")
    out = melm.augment("train.conll", model=model, **FAST)
    frame = out.drafts.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == len(out.drafts)
    assert list(frame["tokens"]) == [draft["tokens"] for draft in out.drafts]
    out.report("report.html")
    page = pathlib.Path("report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "label" in page


def test_a_folder_is_kept_and_read_again(corpus: pathlib.Path, model: str) -> None:
    first = melm.augment("train.conll", model=model, folder="more", **FAST)
    before = results(corpus / "more")
    again = melm.augment("train.conll", model=model, folder="more", **FAST)
    assert again.dataset == first.dataset and results(corpus / "more") == before
    with pytest.raises(melm.ConfigError, match="`more` has a run with other data or settings"):
        melm.augment("train.conll", model=model, folder="more", seed=2, **FAST)
    with pytest.raises(melm.ConfigError, match="has other files"):
        first.save("more")


def test_languages_are_a_dict(corpus: pathlib.Path, model: str) -> None:
    iobes = [(["Rom", "ist", "alt"], ["S-LOC", "O", "O"]), (["Ada", "King", "sang"], ["B-PER", "E-PER", "O"])]
    out = melm.augment({"en": "train.conll", "de": iobes}, model=model, **FAST)
    assert set(out.dataset) == {"en", "de"}
    assert isinstance(out.dataset["en"], melm.Corpus) and out.dataset["de"][:2] == iobes
    new = [tag for _, tags in out.dataset["de"][2:] for tag in tags]
    assert new and {tag[0] for tag in new} <= set("OSBE")


def test_a_corpus_of_several_languages_keeps_them(corpus: pathlib.Path, model: str) -> None:
    iobes = [(["Rom", "ist", "alt"], ["S-LOC", "O", "O"]), (["Ada", "King", "sang"], ["B-PER", "E-PER", "O"])]
    data = {"en": "train.conll", "de": iobes}
    by_dict = melm.augment(data, model=model, **FAST).dataset
    both = melm.read(data)
    found = melm.augment(both, model=model, **FAST).dataset
    assert found.languages == ["en", "de"]
    parts = dict(found.split_languages())
    assert parts["de"].scheme == "iobes" and list(parts["de"]) == by_dict["de"]
    assert list(parts["en"]) == list(by_dict["en"])
    only = melm.augment(both, model=model, union=False, **FAST).dataset
    assert [len(part) for _, part in only.split_languages()] == [len(parts["en"]) - 4, len(parts["de"]) - 2]
    predicted = melm.Tagger.train(found, model=model, tagger__budget="2 updates", device="cpu", progress=False).predict(found)
    assert predicted.languages == ["en", "de"]
    assert [tokens for tokens, _ in predicted] == [tokens for tokens, _ in found]


MISLEADING = [
    (["Bonn", "is", "not", "Berlin", "."], ["S-LOC", "O", "O", "S-LOC", "O"]),
    (["Acme", "Inc"], ["B-ORG", "E-ORG"]),
]
"""A dev set with a sentence of `TRAIN`, a type that `TRAIN` does not have, and another scheme."""


@pytest.mark.parametrize("function", ["augment", "train", "trial"])
def test_a_misleading_dev_set_has_the_warnings_of_the_command(
    corpus: pathlib.Path, model: str, caplog: pytest.LogCaptureFixture, function: str
) -> None:
    def call(dev: str) -> None:
        settings = dict(dev=dev, model=model, device="cpu", progress=False)
        if function == "augment":
            melm.augment("train.conll", method="label-wise", filter__mode="off", **settings)
        elif function == "train":
            melm.Tagger.train("train.conll", tagger__budget="1 updates", **settings)
        else:
            melm.trial("train.conll", folds=2, seeds=1, updates=1, methods=["label-wise"], **settings)

    def warnings() -> list[str]:
        return [record.message for record in caplog.records if record.levelno == logging.WARNING]

    melm.convert([(["Zuse", "spoke"], ["B-PER", "O"]), (["Rom"], ["B-LOC"])], "other.conll")
    call("other.conll")
    assert not [line for line in warnings() if "dev set" in line]
    caplog.clear()
    melm.convert(MISLEADING, "dev.conll")
    call("dev.conll")
    found = [line for line in warnings() if "dev set" in line]
    options = ["--dev", "dev.conll", "--model", model, "--updates", "1", "--device", "cpu", "-o", "by-command"]
    done = run_command("train", "train.conll", *options)
    lines = [line.removeprefix("warning: ") for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert found == [line for line in lines if "dev set" in line] and len(found) == 3
    assert "1 of 2 sentences of the dev set" in found[0] and "`ORG`" in found[1] and "IOBES" in found[2]


def test_an_edited_result_has_a_warning(corpus: pathlib.Path, model: str, caplog: pytest.LogCaptureFixture) -> None:
    melm.augment("train.conll", model=model, folder="more", **FAST)
    with (corpus / "more/train.augmented.conll").open("a") as file:
        file.write("Ada B-PER\n\n")
    caplog.clear()
    melm.augment("train.conll", model=model, folder="more", **FAST)
    assert "`more/train.augmented.conll` was changed after the run wrote it" in caplog.messages


def test_lists_of_names(corpus: pathlib.Path, model: str) -> None:
    pathlib.Path("places.txt").write_text("Reykjavík\n\nReykjavík\n", encoding="utf-8")
    names = {"PER": ["Emmy Noether"], "LOC": "places.txt"}
    settings = dict(method="label-wise", names__share=1.0)
    out = melm.augment("train.conll", names=names, model=model, **settings, **FAST)
    new = {" ".join(one["new"]) for draft in out.drafts for one in draft["replaced"] if one.get("from") == "names"}
    assert new == {"Emmy Noether", "Reykjavík"}
    counts = {one["entity_type"]: one for one in out.summary["names"]}
    assert (counts["LOC"]["names"], counts["LOC"]["repeated"], counts["LOC"]["empty"]) == (1, 1, 1)
    with pytest.raises((melm.DataError, melm.ConfigError), match="the types of TRAIN are"):
        melm.augment("train.conll", names={"GPE": ["Bonn"]}, model=model, **FAST)


def test_unlabelled_text(corpus: pathlib.Path, model: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="melm")
    texts = ["Ada Lovelace lived in Bonn.", "Grace Hopper wrote. Konrad Zuse spoke.", "It is not London."]
    settings = dict(self_training__panel=1, self_training__passes=1, self_training__budget="4 updates", method="gold")
    out = melm.augment("train.conll", unlabelled=texts, held_out=["It is not London."], model=model, **settings, **FAST)
    assert out.summary["text"]["sentences"] == 4 and out.summary["text"]["left_out"]["held_out"] == 1
    assert "sentences left out of the text: held_out 1" in caplog.messages
    lines = [draft for draft in out.drafts if draft["origin"] == "text"]
    assert [line["tokens"] for line in lines][0] == ["Ada", "Lovelace", "lived", "in", "Bonn", "."]
    pathlib.Path("text.txt").write_text("\n".join(texts) + "\n")
    done = run_command(
        "augment", "train.conll", "--unlabelled", "text.txt", "-o", "by-command", "--model", model, "--rounds", "2", "--method",
        "gold", *OPTIONS, "--set", "self_training.panel=1", "--set", "self_training.passes=1", "--set",
        "self_training.budget=4 updates",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    melm.augment("train.conll", unlabelled="text.txt", model=model, **settings, **FAST).save("saved")
    assert results(corpus / "saved") == results(corpus / "by-command")


def test_errors_have_the_messages_of_the_command(corpus: pathlib.Path, model: str) -> None:
    with pytest.raises(melm.ConfigError, match=r"`tagger__buget='3'`: a plan has no key `tagger.buget`; did you mean `tagger.budget`"):
        melm.augment("train.conll", model=model, tagger__buget="3")
    with pytest.raises(melm.DataError, match="(?s)cannot read `missing.conll`.*hint: check the path"):
        melm.augment("missing.conll", model=model)
    with pytest.raises(melm.DataError, match="(?s)2 tokens but 1 tag.*train:2:"):
        melm.augment([(["a"], ["B-LOC"]), (["b", "c"], ["O"])], model=model)
    with pytest.raises(melm.ModelError, match="is neither a folder nor a model name"):
        melm.augment("train.conll", model="./missing")
    with pytest.raises(melm.DataError, match="has no mentions to learn from"):
        melm.augment([(["a"], ["O"])], model=model)
    with pytest.raises(melm.DataError, match="builtins.int is no data that melm reads"):
        melm.augment(3, model=model)
    with pytest.raises(melm.ConfigError, match="`device=gpu`: expected auto, cpu, cuda or cuda:N"):
        melm.augment("train.conll", model=model, device="gpu")
    with pytest.raises(melm.ConfigError, match="use at least one thread"):
        melm.augment("train.conll", model=model, threads=0)
    with pytest.raises(melm.ConfigError, match="20000 threads are above the limit of 1024"):
        melm.augment("train.conll", model=model, threads=20000)
    assert issubclass(melm.DataError, melm.Error) and issubclass(melm.ModelError, melm.Error)


def test_without_mini_the_error_says_what_to_do(corpus: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("melm._settings.find_mini", lambda: None)
    with pytest.raises(melm.ModelError, match="pip install melm-mini"):
        melm.augment("train.conll", device="cpu", progress=False)


def test_notes_go_to_the_log(corpus: pathlib.Path, model: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = {**FAST, "filter__mode": "agreement", "tagger__budget": "1 updates"}
    with caplog.at_level(logging.INFO, logger="melm"):
        melm.augment("train.conll", model=model, **settings)
    assert any("fine-tuning the masked language model: epoch 1" in line for line in caplog.messages)
    assert any("no draft was kept" in line for line in caplog.messages)


def test_progress_is_shown_with_tqdm(corpus: pathlib.Path, model: str, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    melm.augment("train.conll", model=model, **{**FAST, "progress": True})
    shown = capfd.readouterr().err
    assert "fine-tuning the masked language model" in shown and "100%" in shown


def make_cache(model: str, name: str, cache: pathlib.Path) -> None:
    """Copy a model into a cache of Hugging Face."""
    repository = cache / f"models--{name.replace('/', '--')}"
    shutil.copytree(model, repository / "snapshots/abc")
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("abc")


def test_a_name_on_the_hub_is_found_in_the_cache(
    corpus: pathlib.Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_cache(model, "someone/tiny", corpus / "cache")
    monkeypatch.setenv("HF_HUB_CACHE", str(corpus / "cache"))
    for offline in (None, "huggingface_hub"):
        if offline:
            # Without huggingface_hub, melm looks into the cache itself.
            monkeypatch.setitem(sys.modules, offline, None)
        out = melm.augment("train.conll", model="someone/tiny", **FAST)
        assert out.summary["masked_lm"].endswith("abc") and len(out.dataset) > 4
        out.save(f"saved-{offline}")
        assert 'masked_lm = "someone/tiny"' in (corpus / f"saved-{offline}/plan.toml").read_text()


def test_missing_models_are_downloaded_by_huggingface_hub(
    corpus: pathlib.Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_CACHE", str(corpus / "cache"))
    asked: list[str] = []

    def download(name: str, *, allow_patterns: list[str], cache_dir: pathlib.Path) -> str:
        asked.append(name)
        if name != "someone/tiny":
            raise OSError("no network")
        make_cache(model, name, cache_dir)
        return str(cache_dir)

    monkeypatch.setattr(hub, "snapshot_download", download)
    for _ in range(2):
        melm.augment("train.conll", model="someone/tiny", **FAST)
    assert asked == ["someone/tiny"]
    with pytest.raises(melm.ModelError, match="cannot download the model `someone/other`: no network"):
        melm.augment("train.conll", model="someone/other", **FAST)
