"""Write test files in the binary formats of other libraries, with what those libraries read in them.

usage: make_binary_formats.py     (needs spacy, datasets and pyarrow; run in the repository)

testdata/spacy/NAME.spacy was written by spaCy, NAME.json has the text, tokens and mentions of each document as spaCy
gives them, with offsets in code points. testdata/parquet/NAME.parquet was written by datasets or pyarrow, NAME.json has
the tokens and tags of each row. The files were made with spacy 3.8.18, datasets 5.2.0 and pyarrow 26.0.1.
"""
import json
import pathlib

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import spacy
from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH
from spacy.tokens import Doc, DocBin, Span

# Emoji (with modifiers and joiners), combining characters, right-to-left text, line breaks, double spaces, adjacent
# mentions, and words that are symbols of spaCy.
TEXTS = [
    ("Angela Merkel visited Paris.", [(0, 13, "PERSON"), (22, 27, "LOC")]),
    ("👩🏽‍🚀 Ada 😀 met Ben🎉 in Köln", [(5, 8, "PER"), (15, 18, "PER"), (23, 27, "LOC")]),
    ("Jose\u0301 Nu\u0301n\u0303ez lives in Sa\u0303o Paulo.", [(0, 13, "PER"), (23, 33, "GPE")]),
    ("زار محمد صلاح القاهرة أمس.", [(4, 13, "PER"), (14, 21, "LOC")]),
    ("דוד בן-גוריון נולד בפלונסק", [(0, 13, "PER"), (19, 26, "LOC")]),
    ("First line\r\nBonn  and\tRome\n\nend ", [(12, 16, "LOC"), (22, 26, "LOC")]),
    ("X DATE agent ORG root", [(0, 1, "MISC"), (2, 6, "DATE"), (13, 16, "MISC")]),
    ("GermanyFrance played 日本 in 北京。", [(0, 13, "ORG"), (21, 23, "LOC"), (27, 29, "LOC")]),
    (" New  York is big", [(1, 10, "GPE")]),
]


def documents(nlp):
    for text, mentions in TEXTS:
        doc = nlp.make_doc(text)
        # A mention that cuts tokens is set on the whole tokens.
        doc.set_ents([doc.char_span(start, end, label, alignment_mode="expand") for start, end, label in mentions])
        yield doc


def read_back(path, nlp):
    """Return what spaCy reads in a file."""
    return [
        {
            "text": doc.text,
            "tokens": [[token.idx, token.idx + len(token.text)] for token in doc],
            "mentions": [[ent.start_char, ent.end_char, ent.label_] for ent in doc.ents],
            "has_spaces": not doc.has_unknown_spaces,
            "n_missing": sum(token.ent_iob == 0 for token in doc),
            "sentences": [[s.start, s.end] for s in doc.sents] if len(doc) and doc.has_annotation("SENT_START") else None,
        }
        for doc in DocBin().from_disk(path).get_docs(nlp.vocab)
    ]


def write_json(path, value):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in value) + "\n]\n")


def make_spacy(folder):
    nlp = spacy.blank("en")
    docs = list(documents(nlp))
    bins = {"usual": DocBin(docs=docs)}

    # Attributes in another order, two of them unused.
    bins["order"] = DocBin()
    bins["order"].attrs = [ENT_TYPE, spacy.attrs.LEMMA, ENT_IOB, spacy.attrs.SENT_START, ORTH]
    for doc in docs:
        bins["order"].add(doc)

    # Missing annotations, blocked tokens, unknown spaces, user data, categories, span groups, an empty document.
    bins["more"] = DocBin(store_user_data=True)
    bins["more"].add(nlp.make_doc("Nobody has looked at Bonn"))
    partly = nlp.make_doc("Ada knows Bonn well")
    partly.set_ents([Span(partly, 0, 1, "PER")], blocked=[partly[1:2]], missing=[partly[2:4]])
    bins["more"].add(partly)
    bins["more"].add(Doc(nlp.vocab, words=["Ada", "in", "New", "York"], ents=["B-PER", "O", "B-LOC", "I-LOC"]))
    extra = nlp.make_doc("Ada sang in Bonn")
    extra.set_ents([Span(extra, 0, 1, "PER")])
    extra.spans["places"] = [Span(extra, 3, 4, "LOC")]
    extra.user_data["source"] = "a test"
    extra.cats = {"MUSIC": 1.0}
    bins["more"].add(extra)
    bins["more"].add(Doc(nlp.vocab, words=[]))

    # Sentences and lemmas.
    long = nlp.make_doc("Ada sang. Ben heard her in Bonn! They left .")
    long.set_ents([Span(long, 0, 1, "PER"), Span(long, 3, 4, "PER"), Span(long, 7, 8, "LOC")])
    for token in long:
        token.is_sent_start = token.i in (0, 3, 9)
        token.lemma_ = token.lower_
    bins["sentences"] = DocBin(docs=[long])
    for name, doc_bin in bins.items():
        doc_bin.to_disk(folder / f"{name}.spacy")
        write_json(folder / f"{name}.json", read_back(folder / f"{name}.spacy", nlp))

    # A file without mentions.
    DocBin(attrs=["LEMMA"], docs=docs[:1]).to_disk(folder / "no_mentions.spacy")


NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
ROWS = [
    (["Angela", "Merkel", "visited", "Paris", "."], [1, 2, 0, 3, 0]),
    (["👩🏽‍🚀", "Jose\u0301", "Nu\u0301n\u0303ez", "😀"], [0, 1, 2, 0]),
    (["زار", "محمد", "صلاح", "القاهرة"], [0, 1, 2, 3]),
    (["דוד", "בן-גוריון", "נולד", "בפלונסק"], [1, 2, 0, 3]),
    (["New York", "日本"], [3, 3]),
    (["nothing"], [0]),
]


def make_parquet(folder):
    rows = {"id": [str(n) for n in range(len(ROWS))], "tokens": [r[0] for r in ROWS], "ner_tags": [r[1] for r in ROWS]}
    features = datasets.Features({
        "id": datasets.Value("string"),
        "tokens": datasets.Sequence(datasets.Value("string")),
        "ner_tags": datasets.Sequence(datasets.ClassLabel(names=NAMES)),
    })
    dataset = datasets.Dataset.from_dict(rows, features=features)
    dataset.to_parquet(folder / "datasets.parquet")
    table = pq.read_table(folder / "datasets.parquet")
    del rows["id"]
    texts = {"words": rows["tokens"], "tags": [[NAMES[tag] for tag in tags] for tags in rows["ner_tags"]]}
    small = pa.schema([("tokens", pa.large_list(pa.large_string())), ("ner_tags", pa.list_(pa.int8()))])
    files = {
        # Several row groups and no dictionaries.
        "groups": (table, {"row_group_size": 2, "use_dictionary": False}),
        "uncompressed": (table, {"compression": "none", "data_page_version": "2.0"}),
        "texts": (pa.table(texts), {}),
        "no_names": (pa.table(rows), {}),
        "small_types": (pa.table(rows, schema=small), {"version": "1.0"}),
        # A token without a text.
        "nulls": (pa.table({"tokens": [["Ada", None]], "tags": [["B-PER", "O"]]}), {}),
        "zstd": (table, {"compression": "zstd"}),
    }
    for name, (table, options) in files.items():
        pq.write_table(table, folder / f"{name}.parquet", **options)
    write_json(folder / "expected.json", [
        {"tokens": tokens, "ids": tags, "tags": [NAMES[tag] for tag in tags]} for tokens, tags in ROWS
    ])


if __name__ == "__main__":
    for name, make in [("spacy", make_spacy), ("parquet", make_parquet)]:
        folder = pathlib.Path("testdata") / name
        folder.mkdir(parents=True, exist_ok=True)
        make(folder)
