"""Writes testdata/formats: the same texts with spans in the documented schema of each annotation tool.

No tool is run. The schemas are those of
  https://labelstud.io/guide/task_format and https://labelstud.io/tags/text (Label Studio),
  https://github.com/doccano/doccano issues 113, 1291, 1795 and 2290 (Doccano),
  https://prodi.gy/docs/api-interfaces (Prodigy),
  https://github.com/urchade/GLiNER, "Training" (GLiNER),
  https://brat.nlplab.org/standoff.html (BRAT).
Offsets are computed here, in Python: code points with `str`, UTF-16 units with `encode("utf-16-le")`.

Usage: python3 tools/make_format_fixtures.py
"""

import json
import pathlib

OUT = pathlib.Path(__file__).parent.parent / "testdata" / "formats"

# Each text with (surface, type) of its spans, in order. Every surface is searched after the one before it starts.
TEXTS = [
    ("Angela Merkel visited 👩‍👧 in Paris 😀. Then she left for Bonn.",
     [("Angela Merkel", "PER"), ("Paris", "LOC"), ("Bonn", "LOC")]),
    # Combining characters: two code points, one grapheme cluster.
    ("Zoe\u0308 lives in Ko\u0308ln, near Du\u0308ren.",
     [("Zoe\u0308", "PER"), ("Ko\u0308ln", "LOC"), ("Du\u0308ren", "LOC")]),
    # Right to left. The first span cuts a word: the prefix means `in`.
    ("דנה גרה בתל אביב.", [("דנה", "PER"), ("תל אביב", "LOC")]),
    # Line ends of Windows inside of a text.
    ("Oslo\r\nReykjavík:  Björk sang.", [("Oslo", "LOC"), ("Reykjavík", "LOC"), ("Björk", "PER")]),
    # A nested span.
    ("The Bank of England is old.", [("Bank of England", "ORG"), ("England", "LOC")]),
    ("Nobody was there.", []),
]


def spans(text, named):
    at = 0
    for surface, kind in named:
        start = text.index(surface, at)
        at = start
        yield start, start + len(surface), kind


def utf16(text, offset):
    return len(text[:offset].encode("utf-16-le")) // 2


def task(number, text, found, unit):
    results = [
        {"value": {"start": unit(text, s), "end": unit(text, e), "text": text[s:e], "labels": [k]},
         "id": f"r{number}{i}", "from_name": "ner", "to_name": "txt", "type": "labels", "origin": "manual"}
        for i, (s, e, k) in enumerate(found)
    ]
    return {"id": number, "data": {"text": text, "source": "letters"},
            "annotations": [{"id": number + 100, "completed_by": 1, "result": results, "was_cancelled": False,
                             "ground_truth": False, "lead_time": 1.5}],
            "predictions": [], "project": 7}


def write(name, text):
    (OUT / name).write_bytes(text.encode())


def lines(objects):
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    all_spans = [list(spans(text, named)) for text, named in TEXTS]
    code_points = lambda _, offset: offset
    tasks = [task(i + 1, text, all_spans[i], code_points) for i, (text, _) in enumerate(TEXTS)]
    # A second annotation, a cancelled one, a relation, and a task that nobody has annotated.
    tasks[0]["annotations"].append({"id": 199, "result": tasks[0]["annotations"][0]["result"][:1], "was_cancelled": False})
    tasks[1]["annotations"].append({"id": 198, "result": [], "was_cancelled": True})
    tasks[4]["annotations"][0]["result"].append(
        {"from_id": "r50", "to_id": "r51", "type": "relation", "direction": "right"})
    tasks.append({"id": 90, "data": {"text": "Not annotated."}, "annotations": [], "predictions": []})
    write("label-studio.json", json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
    old = [task(i + 1, text, all_spans[i], utf16) for i, (text, _) in enumerate(TEXTS[:2])]
    write("label-studio-utf16.json", json.dumps(old, ensure_ascii=False) + "\n")
    flat = [{"id": i + 1, "text": text, "annotator": 1, "annotation_id": i + 101,
             "label": [{"start": s, "end": e, "text": text[s:e], "labels": [k]} for s, e, k in all_spans[i]]}
            for i, (text, _) in enumerate(TEXTS)]
    write("label-studio-min.json", json.dumps(flat, ensure_ascii=False) + "\n")
    write("doccano.jsonl", lines(
        {"id": i + 1, "text": text, "label": [[utf16(text, s), utf16(text, e), k] for s, e, k in all_spans[i]],
         "Comments": []}
        for i, (text, _) in enumerate(TEXTS)))
    write("doccano-relations.jsonl", lines(
        {"id": i + 1, "text": text,
         "entities": [{"id": 10 * i + n, "label": k, "start_offset": utf16(text, s), "end_offset": utf16(text, e)}
                      for n, (s, e, k) in enumerate(all_spans[i])],
         "relations": [{"id": 1, "from_id": 0, "to_id": 1, "type": "in"}] if i == 0 else [], "Comments": []}
        for i, (text, _) in enumerate(TEXTS)))
    prodigy = [
        {"text": text, "_input_hash": -1000 - i, "_task_hash": 2000 + i, "meta": {"source": "letters"},
         "spans": [{"start": s, "end": e, "label": k} for s, e, k in all_spans[i]],
         "_view_id": "ner_manual", "answer": "accept"}
        for i, (text, _) in enumerate(TEXTS)]
    prodigy[5]["tokens"] = [
        {"text": "Nobody", "start": 0, "end": 6, "id": 0, "ws": True},
        {"text": "was", "start": 7, "end": 10, "id": 1, "ws": True},
        {"text": "there", "start": 11, "end": 16, "id": 2, "ws": False},
        {"text": ".", "start": 16, "end": 17, "id": 3, "ws": False}]
    prodigy.append({"text": "A bad example.", "spans": [], "answer": "reject"})
    prodigy.append({"text": "An odd example.", "spans": [], "answer": "ignore"})
    write("prodigy.jsonl", lines(prodigy))
    write("gliner.json", json.dumps([
        {"tokenized_text": ["Angela", "Merkel", "visited", "👩‍👧", "in", "Paris", "😀", "."],
         "ner": [[0, 1, "person"], [5, 5, "location"]]},
        {"tokenized_text": ["Zoe\u0308", "lives", "in", "Ko\u0308ln", "."], "ner": [[0, 0, "person"], [3, 3, "location"]]},
        {"tokenized_text": ["דנה", "גרה", "ב", "תל", "אביב", "."], "ner": [[0, 0, "person"], [3, 4, "location"]]},
        {"tokenized_text": ["Nobody", "was", "there", "."], "ner": []},
    ], ensure_ascii=False, indent=2) + "\n")
    for i, (text, _) in enumerate(TEXTS[:5]):
        write(f"brat/letter-{i + 1}.txt", text + "\n")
        annotations = "".join(
            f"T{n + 1}\t{k} {s} {e}\t{text[s:e]}\n" for n, (s, e, k) in enumerate(all_spans[i]))
        if i == 0:
            # A span of two parts, a relation, a note and an attribute.
            annotations += "T9\tEVENT 7 13;14 21\tMerkel visited\nR1\tIn Arg1:T1 Arg2:T2\n#1\tAnnotatorNotes T1\tsure\n"
            annotations += "A1\tNegated T2\n"
        write(f"brat/letter-{i + 1}.ann", annotations)


if __name__ == "__main__":
    (OUT / "brat").mkdir(parents=True, exist_ok=True)
    main()
