"""Check that spaCy and Hugging Face datasets read the files that `melm convert` writes, with the same mentions.

usage: check_binary_formats.py MELM FOLDER     (needs spacy, datasets and pyarrow; run in the repository)

MELM is the program, FOLDER a new folder for its output. Exits with an error at the first difference.
"""
import json
import pathlib
import subprocess
import sys

import datasets
import spacy
from spacy.tokens import DocBin


def convert(melm, source, target, *options):
    subprocess.run([melm, "convert", str(source), "-o", str(target), *options], check=True)
    return target


def read_doc_bin(path):
    """Return the text and the mentions of each document, as spaCy reads them in a new vocabulary."""
    vocab = spacy.blank("xx").vocab
    docs = DocBin().from_disk(path).get_docs(vocab)
    return [(doc.text, [[e.start_char, e.end_char, e.label_] for e in doc.ents]) for doc in docs]


def check_spacy(melm, folder):
    # spaCy to spaCy: exactly the same texts and mentions.
    for name in ["usual", "sentences"]:
        expected = json.loads(pathlib.Path(f"testdata/spacy/{name}.json").read_text(encoding="utf-8"))
        written = read_doc_bin(convert(melm, f"testdata/spacy/{name}.spacy", folder / f"{name}.spacy"))
        assert written == [(doc["text"], doc["mentions"]) for doc in expected], written
    # CoNLL to spaCy: the tokens and mentions of the rows.
    rows = [("Ada", "B-PER"), ("Lovelace", "I-PER"), ("met", "O"), ("👩🏽‍🚀", "O"), ("X", "B-MISC"), ("in", "O"), ("Köln", "B-LOC")]
    (folder / "rows.conll").write_text("".join(f"{token}\t{tag}\n" for token, tag in rows), encoding="utf-8")
    [(text, mentions)] = read_doc_bin(convert(melm, folder / "rows.conll", folder / "rows.spacy"))
    assert text == "Ada Lovelace met 👩🏽‍🚀 X in Köln", text
    found = [(text[start:end], label) for start, end, label in mentions]
    assert found == [("Ada Lovelace", "PER"), ("X", "MISC"), ("Köln", "LOC")], found


def check_parquet(melm, folder):
    expected = json.loads(pathlib.Path("testdata/parquet/expected.json").read_text(encoding="utf-8"))
    convert(melm, "testdata/parquet/datasets.parquet", folder / "own.parquet")
    convert(melm, "testdata/parquet/texts.parquet", folder / "rows.jsonl", "--to", "jsonl")
    convert(melm, folder / "rows.jsonl", folder / "rows.parquet")
    for name in ["own", "rows"]:
        path = str(folder / f"{name}.parquet")
        direct = datasets.Dataset.from_parquet(path, cache_dir=str(folder / "cache"), keep_in_memory=True)
        loaded = datasets.load_dataset("parquet", data_files={"train": path}, cache_dir=str(folder / "cache"))["train"]
        for dataset in [direct, loaded]:
            label = dataset.features["ner_tags"].feature
            assert isinstance(label, datasets.ClassLabel), dataset.features
            rows = [(row["tokens"], [label.int2str(tag) for tag in row["ner_tags"]]) for row in dataset]
            assert rows == [(row["tokens"], row["tags"]) for row in expected], rows
    # Parquet to spaCy and back.
    convert(melm, folder / "own.parquet", folder / "own.spacy")
    texts = [text for text, _ in read_doc_bin(folder / "own.spacy")]
    assert texts == [" ".join(row["tokens"]) for row in expected], texts


if __name__ == "__main__":
    melm, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True)
    check_spacy(melm, folder)
    check_parquet(melm, folder)
    print("spaCy and datasets read the written files with the same mentions")
