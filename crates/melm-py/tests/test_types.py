"""Every type of data goes in and comes back, through the real libraries."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from conftest import FAST, TRAIN, Pair, parse

import melm

PAIRS = parse(TRAIN)
NAMES = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


@pytest.fixture(scope="module")
def expected(model: str) -> list[Pair]:
    """The result for a list of pairs, with which the other types are compared."""
    out: list[Pair] = melm.augment(PAIRS, model=model, **FAST).dataset
    assert len(out) > len(PAIRS)
    return out


def columns() -> dict[str, list[Any]]:
    return {
        "id": list(range(len(PAIRS))),
        "tokens": [tokens for tokens, _ in PAIRS],
        "ner_tags": [tags for _, tags in PAIRS],
    }


def test_dicts_with_tokens(model: str, expected: list[Pair]) -> None:
    records = [{"words": tokens, "tags": tags, "source": "a"} for tokens, tags in PAIRS]
    out = melm.augment(records, model=model, **FAST).dataset
    assert out[: len(records)] == records
    assert [(record["words"], record["tags"]) for record in out] == expected


@pytest.mark.parametrize("as_dicts", [True, False])
def test_dicts_with_text_and_spans(model: str, as_dicts: bool) -> None:
    records = []
    for text, spans in [
        ("Ada Lovelace wrote in  London.", [(0, 12, "PER"), (23, 29, "LOC")]),
        ("Köln😀 is not Berlin!", [(0, 4, "LOC"), (13, 19, "LOC")]),
    ]:
        listed: list[Any] = [dict(start=s, end=e, label=l) for s, e, l in spans] if as_dicts else list(spans)
        records.append({"text": text, "spans": listed})
    out = melm.augment(records, model=model, **FAST)
    new = out.dataset[2:]
    assert out.dataset[:2] == records and new
    kept = [draft for draft in out.drafts if draft["verdict"] == "kept"]
    for record, draft in zip(new, kept):
        spans = [(s["start"], s["end"], s["label"]) for s in record["spans"]] if as_dicts else record["spans"]
        texts = [record["text"][start:end].replace(" ", "") for start, end, _ in spans]
        starts = [at for at, tag in enumerate(draft["tags"]) if tag.startswith("B-")]
        ends = [next((j for j in range(at + 1, len(draft["tags"])) if draft["tags"][j][0] != "I"), len(draft["tags"])) for at in starts]
        assert texts == ["".join(draft["tokens"][at:end]) for at, end in zip(starts, ends)]
        assert record["text"].replace(" ", "") == "".join(draft["tokens"])
    # The spacing of the text around mentions stays.
    assert all(" wrote in  " in record["text"] or "😀 is not " in record["text"] for record in new)


@pytest.mark.parametrize("kind", ["class labels", "strings"])
def test_datasets(model: str, expected: list[Pair], kind: str) -> None:
    datasets = pytest.importorskip("datasets")
    data = columns()
    dataset = datasets.Dataset.from_dict(data)
    if kind == "class labels":
        data["ner_tags"] = [[NAMES.index(tag) for tag in tags] for tags in data["ner_tags"]]
        tags = datasets.Sequence(datasets.ClassLabel(names=NAMES))
        features = {"id": datasets.Value("int64"), "tokens": datasets.Sequence(datasets.Value("string")), "ner_tags": tags}
        dataset = datasets.Dataset.from_dict(data, features=datasets.Features(features))
    out = melm.augment(dataset, dev=dataset, model=model, **FAST).dataset
    assert isinstance(out, datasets.Dataset) and out.features == dataset.features
    assert out.select(range(len(PAIRS))).to_dict() == dataset.to_dict()
    found = out["ner_tags"][:] if kind == "strings" else [[NAMES[tag] for tag in tags] for tags in out["ner_tags"]]
    assert len(out) > len(PAIRS)
    assert out["id"][-1] is None and all(len(tags) == len(tokens) for tags, tokens in zip(found, out["tokens"]))
    without_dev = melm.augment(dataset, model=model, **FAST).dataset
    found = without_dev["ner_tags"][:] if kind == "strings" else [[NAMES[t] for t in tags] for tags in without_dev["ner_tags"]]
    assert list(zip(without_dev["tokens"], found)) == expected
    with pytest.raises(melm.DataError, match=r'pass one of `\["train"\]`'):
        melm.augment(datasets.DatasetDict(train=dataset), model=model)
    assert melm.score(dataset, dataset)["f1"] == 1.0


def test_pandas(model: str, expected: list[Pair]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns())
    out = melm.augment(frame, model=model, **FAST).dataset
    assert isinstance(out, pandas.DataFrame) and list(out.columns) == list(frame.columns)
    assert list(zip(out["tokens"], out["ner_tags"])) == expected
    assert out["id"].tolist()[: len(frame)] == frame["id"].tolist() and pandas.isna(out["id"].iloc[-1])
    with pytest.raises(melm.DataError, match="the data frame has the columns a; it needs tokens"):
        melm.augment(pandas.DataFrame({"a": [1]}), model=model)


def test_arrow(model: str, expected: list[Pair]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(columns())
    out = melm.augment(table, model=model, **FAST).dataset
    assert isinstance(out, pyarrow.Table) and out.schema == table.schema
    assert out.slice(0, len(PAIRS)) == table
    assert list(zip(out["tokens"].to_pylist(), out["ner_tags"].to_pylist())) == expected


def make_docs(vocab: Any) -> list[Any]:
    tokens = pytest.importorskip("spacy.tokens")
    docs = []
    for words, tags in PAIRS:
        spaces = [True] * (len(words) - 2) + [False, False]
        docs.append(tokens.Doc(vocab, words=words, spaces=spaces, ents=tags))
    return docs


def test_spacy_docs(model: str, expected: list[Pair]) -> None:
    spacy = pytest.importorskip("spacy")
    docs = make_docs(spacy.blank("en").vocab)
    out = melm.augment(docs, model=model, **FAST).dataset
    assert out[: len(docs)] == docs and len(out) > len(docs)
    for doc in out:
        assert isinstance(doc, spacy.tokens.Doc) and doc.text.endswith(".") and doc.ents
        assert doc[-1].text == "." and not doc[-2].whitespace_

    def rows(doc: Any) -> Pair:
        return [t.text for t in doc], [t.ent_iob_ + ("-" + t.ent_type_ if t.ent_type_ else "") for t in doc]

    assert [rows(doc) for doc in out] == expected


def test_spacy_white_space_is_kept(model: str) -> None:
    spacy = pytest.importorskip("spacy")
    doc = spacy.blank("en")("Ada Lovelace  wrote\nin London.")
    doc.set_ents([doc.char_span(0, 12, "PER"), doc.char_span(23, 29, "LOC")])
    out = melm.augment([doc], model=model, **FAST).dataset
    assert len(out) > 1
    for new in out[1:]:
        assert "  wrote\nin " in new.text and [ent.label_ for ent in new.ents] == ["PER", "LOC"]
        assert [token.ent_iob_ for token in new if token.is_space] == ["O", "O"]


def test_spacy_doc_bin(model: str) -> None:
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    docs = make_docs(nlp.vocab)
    bin_ = spacy.tokens.DocBin(docs=docs)
    out = melm.augment(bin_, model=model, **FAST).dataset
    assert isinstance(out, spacy.tokens.DocBin) and len(out) > len(bin_)
    from_docs = melm.augment(docs, model=model, **FAST).dataset
    assert [doc.to_json()["text"] for doc in out.get_docs(nlp.vocab)] == [doc.text for doc in from_docs]
    assert [[e.label_ for e in doc.ents] for doc in out.get_docs(nlp.vocab)] == [[e.label_ for e in d.ents] for d in from_docs]


def test_files_of_all_formats(corpus: pathlib.Path, model: str) -> None:
    for to, name in (("spacy", "a.spacy"), ("parquet", "a.parquet"), ("gliner", "a.json"), ("doccano", "a.jsonl")):
        melm.convert("train.conll", name, to=to)
        assert len(melm.augment(name, model=model, **FAST).dataset) > len(PAIRS), to


def test_values_that_are_no_lists_are_refused(model: str) -> None:
    pandas = pytest.importorskip("pandas")
    tags = [tags for _, tags in PAIRS]
    texts = pandas.DataFrame({"tokens": [" ".join(tokens) for tokens, _ in PAIRS], "ner_tags": tags})
    with pytest.raises(melm.DataError, match="record 1: `tokens` is str, not a list"):
        melm.check(texts)
    missing = pandas.DataFrame({"tokens": [PAIRS[0][0], None], "ner_tags": tags[:2]})
    with pytest.raises(melm.DataError, match="record 2: `tokens` is"):
        melm.check(missing)


@pytest.mark.parametrize("tag", [-1, -100])
def test_a_tag_id_without_a_name_is_refused(tag: int) -> None:
    datasets = pytest.importorskip("datasets")
    label = datasets.Sequence(datasets.ClassLabel(names=NAMES))
    features = datasets.Features({"tokens": datasets.Sequence(datasets.Value("string")), "ner_tags": label})
    rows = {"tokens": [["Bonn", "is"]], "ner_tags": [[1, tag]]}
    with pytest.raises(melm.DataError, match=f"record 1: the tag id {tag} has no name"):
        melm.check(datasets.Dataset.from_dict(rows, features=features))


def test_a_replaced_column_keeps_its_feature_if_the_values_fit() -> None:
    datasets = pytest.importorskip("datasets")
    from melm.adapters.hf_datasets import DatasetAdapter

    replace = DatasetAdapter().replace_column
    tokens = [["a"], ["Bonn"]]
    label = datasets.Sequence(datasets.ClassLabel(names=NAMES))
    features = datasets.Features({"tokens": datasets.Sequence(datasets.Value("string")), "ner_tags": label})
    named = datasets.Dataset.from_dict({"tokens": tokens, "ner_tags": [[0], [1]]}, features=features)
    kept = replace(named, "ner_tags", [[], [1]])
    assert kept.features["ner_tags"] == named.features["ner_tags"] and kept["ner_tags"][1] == [1]
    assert replace(named, "ner_tags", [["O"], ["B-NEW"]])["ner_tags"][1] == ["B-NEW"]
    numbers = datasets.Dataset.from_dict({"tokens": tokens, "ner_tags": [[0], [1]]})
    assert replace(numbers, "ner_tags", [["O"], ["B-LOC"]])["ner_tags"][1] == ["B-LOC"]


def test_tokens_come_before_a_text_if_there_are_tags() -> None:
    from melm.adapters.records import RecordAdapter

    both = {"text": "Bonn .", "tokens": ["Bonn", "."], "ner_tags": ["O", "O"]}
    tagged = RecordAdapter().predict([both], lambda all: [["B-LOC", "O"] for _ in all], lambda all: [])
    assert tagged == [{**both, "ner_tags": ["B-LOC", "O"]}]
    with pytest.raises(melm.DataError, match="a dict of columns is not read"):
        melm.augment({"tokens": [["Bonn"]], "ner_tags": [["B-LOC"]]})


def test_a_docbin_keeps_its_attributes(model: str) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, DocBin, Span

    vocab = spacy.blank("en").vocab
    docs = []
    for tokens, tags in PAIRS:
        doc = Doc(vocab, words=tokens, tags=["NN"] * len(tokens))
        doc.ents = [Span(doc, at, at + 1, tag[2:]) for at, tag in enumerate(tags) if tag.startswith("B-")]
        docs.append(doc)
    bin = DocBin(attrs=["ENT_IOB", "ENT_TYPE", "TAG"], docs=docs)
    out = melm.augment(bin, model=model, **FAST).dataset
    assert [token.tag_ for token in next(iter(out.get_docs(vocab)))] == ["NN"] * len(PAIRS[0][0])
