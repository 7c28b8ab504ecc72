"""Check that spaCy and Hugging Face datasets read the files that `melm convert` and `melm tag` write, with the same
mentions.

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


# Raw texts with emoji, combining characters, right-to-left text and CRLF, and the tokens of their mentions.
RAW = [
    ("👩‍👧 😀  Ada Lovelace met 👍🏽 in London.", {"Ada": "B-PER", "Lovelace": "I-PER", "London": "B-LOC"}),
    ("Zoe\u0308 lives in Ko\u0308ln.", {"Zoe\u0308": "B-PER", "Ko\u0308ln": "B-LOC"}),
    ("😀 דנה גרה בחיפה.", {"דנה": "B-PER"}),
    ("Oslo:\r\n 😀 Bjo\u0308rk sang.", {"Oslo": "B-LOC", "Bjo\u0308rk": "B-PER"}),
]


def check_tag(melm, folder):
    """Tag raw texts, and check that spaCy cuts the predicted mentions out of them."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text, _ in RAW)
    (folder / "raw.jsonl").write_text(lines, encoding="utf-8")
    words = [text.replace(".", " .").replace(":", " :").split() for text, _ in RAW]
    rows = ["".join(f"{word}\t{tags.get(word, 'O')}\n" for word in own) for own, (_, tags) in zip(words, RAW)]
    (folder / "learn.conll").write_text("\n".join(rows), encoding="utf-8")
    run = lambda *words: subprocess.run([melm, *map(str, words)], check=True)
    run("train", folder / "learn.conll", "-o", folder / "tagger", "--updates", 60, "--set", "tagger.learning_rate=0.001")
    run("tag", folder / "tagger", folder / "raw.jsonl", "-o", folder / "raw.spacy")
    run("tag", folder / "tagger", folder / "raw.jsonl", "--to", "prodigy", "-o", folder / "tagged.jsonl")
    examples = [json.loads(line) for line in (folder / "tagged.jsonl").read_text(encoding="utf-8").splitlines()]
    n_mentions = 0
    for (text, mentions), example, (raw, tags) in zip(read_doc_bin(folder / "raw.spacy"), examples, RAW, strict=True):
        assert text == example["text"] == raw, (text, raw)
        spans = [[span["start"], span["end"], span["label"]] for span in example["spans"]]
        assert mentions == spans, (mentions, spans)
        # A mention starts and ends at a token, so that it cuts no character.
        for start, end, _ in mentions:
            surface = raw[start:end]
            assert surface.split()[0] in tags and surface.split()[-1] in tags, surface
        n_mentions += len(mentions)
    assert n_mentions >= len(RAW), n_mentions
    dataset = datasets.Dataset.from_parquet(
        str(convert(melm, folder / "raw.spacy", folder / "raw.parquet")), cache_dir=str(folder / "cache")
    )
    tokens = [token for row in dataset for token in row["tokens"]]
    assert {token for _, tags in RAW for token in tags} <= set(tokens), tokens


if __name__ == "__main__":
    melm, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True)
    check_spacy(melm, folder)
    check_parquet(melm, folder)
    check_tag(melm, folder)
    print("spaCy and datasets read the written files with the same mentions")
