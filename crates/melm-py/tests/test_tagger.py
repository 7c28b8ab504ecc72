"""`melm.Tagger`: training, saving, opening and predicting."""

from __future__ import annotations

import json
import pathlib

import pytest
from conftest import TRAIN, parse, results, run_command

import melm

PAIRS = parse(TRAIN)
FIT = dict(
    tagger__budget="40 epochs", tagger__batch_size=4, tagger__learning_rate=0.02, tagger__evaluate_every=20, device="cpu",
    progress=False,
)  # fmt: skip
OPTIONS = [
    "--set", "tagger.budget=40 epochs", "--set", "tagger.batch_size=4", "--set", "tagger.learning_rate=0.02", "--set",
    "tagger.evaluate_every=20", "--device", "cpu",
]  # fmt: skip


@pytest.fixture(scope="module")
def tagger(model: str) -> melm.Tagger:
    return melm.Tagger.train(PAIRS, dev=PAIRS, model=model, **FIT)


def test_a_trained_tagger_is_that_of_the_command(corpus: pathlib.Path, model: str, tagger: melm.Tagger) -> None:
    done = run_command("train", "train.conll", "--dev", "train.conll", "-o", "by-command", "--model", model, *OPTIONS)
    assert done.returncode == 0, done.stderr
    melm.Tagger.train("train.conll", dev="train.conll", model=model, folder="in-folder", **FIT)
    assert results(corpus / "in-folder") == results(corpus / "by-command")
    tagger.save("saved")
    for name in ("config.json", "model.safetensors", "tagger.json"):
        assert (corpus / "saved" / name).read_bytes() == (corpus / "by-command" / name).read_bytes(), name
    assert tagger.dev_f1 == json.loads((corpus / "by-command/run.json").read_text())["best"]["value"]


def test_predictions_are_those_of_the_command(corpus: pathlib.Path, tagger: melm.Tagger) -> None:
    tagger.save("saved")
    opened = melm.Tagger.from_pretrained("saved", device="cpu")
    assert run_command("tag", "saved", "train.conll", "-o", "tagged.conll", "--device", "cpu").returncode == 0
    expected = list(melm.read("tagged.conll"))
    sentences = [tokens for tokens, _ in PAIRS]
    for one in (tagger, opened):
        assert one.predict(sentences) == expected
        assert one.predict(PAIRS) == expected
        assert list(one.predict("train.conll")) == expected
    pathlib.Path("bare.conll").write_text("\n\n".join("\n".join(tokens) for tokens in sentences) + "\n")
    assert list(tagger.predict("bare.conll")) == expected
    assert tagger.tags == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert melm.score(PAIRS, tagger.predict(PAIRS))["f1"] == tagger.dev_f1


def test_texts_get_spans_with_scores(tagger: melm.Tagger) -> None:
    texts = ["😀 Ada Lovelace wrote in London. Grace Hopper spoke.", ""]
    found = tagger.predict(texts)
    assert [one["text"] for one in found] == texts and found[1]["spans"] == []
    assert found[0]["spans"]
    for span in found[0]["spans"]:
        assert span["label"] in ("PER", "LOC") and 0.0 < span["score"] <= 1.0
        assert texts[0][span["start"] : span["end"]].strip() == texts[0][span["start"] : span["end"]] != ""
    assert tagger.predict(texts[0]) == found[0]
    again = tagger.predict(found)
    assert [one["spans"] for one in again] == [one["spans"] for one in found]


def test_tables_and_docs_keep_their_type(tagger: melm.Tagger) -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    datasets, spacy = pytest.importorskip("datasets"), pytest.importorskip("spacy")
    tokens = [tokens for tokens, _ in PAIRS]
    expected = [tags for _, tags in tagger.predict(tokens)]
    columns = {"id": list(range(len(PAIRS))), "tokens": tokens}
    frame = tagger.predict(pandas.DataFrame(columns))
    assert frame["ner_tags"].tolist() == expected and frame["id"].tolist() == columns["id"]
    table = tagger.predict(pyarrow.table(columns))
    assert table["ner_tags"].to_pylist() == expected
    dataset = tagger.predict(datasets.Dataset.from_dict(columns))
    assert dataset["ner_tags"][:] == expected
    labels = datasets.Sequence(datasets.ClassLabel(names=tagger.tags))
    features = datasets.Features({"tokens": datasets.Sequence(datasets.Value("string")), "ner_tags": labels})
    gold = [[tagger.tags.index(tag) for tag in tags] for _, tags in PAIRS]
    typed = tagger.predict(datasets.Dataset.from_dict({"tokens": tokens, "ner_tags": gold}, features=features))
    assert typed.features == features
    assert [[tagger.tags[tag] for tag in tags] for tags in typed["ner_tags"]] == expected
    texts = tagger.predict(pandas.DataFrame({"text": ["Ada Lovelace wrote."]}))
    assert texts["spans"][0] == tagger.predict(["Ada Lovelace wrote."])[0]["spans"]
    docs = [spacy.tokens.Doc(spacy.blank("en").vocab, words=words) for words in tokens]
    tagged = tagger.predict(docs)
    iob = [[t.ent_iob_ + ("-" + t.ent_type_ if t.ent_type_ else "") for t in doc] for doc in tagged]
    assert iob == expected and not docs[0].ents


def test_a_folder_that_is_no_tagger_is_refused(model: str) -> None:
    with pytest.raises(melm.ModelError, match="is not a tagger"):
        melm.Tagger.from_pretrained(model)
    with pytest.raises(melm.ModelError, match="cannot read `missing/config.json`"):
        melm.Tagger.from_pretrained("missing")
