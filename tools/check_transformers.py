"""Measure what a tagger of melm loses in transformers, which ignores the CRF, and what the decoder of the package restores.

usage: check_transformers.py TAGGER_FOLDER [TEST_FILE ...]     (needs torch, transformers and melm; run in the repository)

Trains a tagger on examples/politics with the model mini if TAGGER_FOLDER does not exist. Scores it on each file in three
ways: argmax of the logits in transformers, these logits with `melm.transformers.CrfDecoder`, and melm itself. The last two
must predict the same tags.
"""
import pathlib
import sys

import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

import melm
from melm.transformers import CrfDecoder

EXAMPLE = pathlib.Path("examples/politics")


def main(folder, files):
    if not folder.exists():
        melm.Tagger.train(EXAMPLE / "train-100.conll", dev=EXAMPLE / "dev-100.conll", device="cpu", progress=False).save(folder)
    tagger = melm.Tagger.from_pretrained(folder, device="cpu")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, report = AutoModelForTokenClassification.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"] and not report["mismatched_keys"], report
    decoder = CrfDecoder.from_pretrained(folder)
    names = model.config.id2label
    for file in files:
        gold = list(melm.read(file))
        argmax, decoded = [], []
        for words, _ in gold:
            encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
            with torch.no_grad():
                logits = model.eval()(**encoded).logits[0].numpy()
            ids = encoded.word_ids()
            firsts = [at for at, word in enumerate(ids) if word is not None and word not in ids[:at]]
            assert len(firsts) == len(words), "a sentence is longer than the model; use shorter ones"
            argmax.append((words, [names[int(tag)] for tag in logits[firsts].argmax(axis=1)]))
            decoded.append((words, decoder.decode(logits, ids)))
        ours = tagger.predict([words for words, _ in gold])
        different = sum(a != b for a, b in zip(decoded, ours))
        print(f"{file}: {len(gold)} sentences")
        for name, found in (("transformers, argmax", argmax), ("transformers, CrfDecoder", decoded), ("melm", ours)):
            scores = melm.score(gold, found)
            print(f"  {name:<26} F1 {100 * scores['f1']:.2f}  strict {100 * melm.score(gold, found, strict=True)['f1']:.2f}")
        print(f"  sentences with other tags from CrfDecoder than from melm: {different}")
        assert different == 0


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:] or [str(EXAMPLE / "dev-100.conll")])
