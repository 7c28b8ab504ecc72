"""Decodes the output of a tagger that runs in Hugging Face transformers. Needs only numpy.

A folder of `melm.Tagger.save` opens with `AutoModelForTokenClassification`, but transformers ignores the CRF: the
transitions between tags, which are in the same folder. `CrfDecoder` applies them:

    decoder = melm.transformers.CrfDecoder.from_pretrained("tagger")
    encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    logits = model(**encoded).logits[0].detach().numpy()
    tags = decoder.decode(logits, encoded.word_ids())
"""

from __future__ import annotations

import json
import os
import pathlib
import struct
from collections.abc import Sequence
from typing import Any, Optional

import numpy

from . import _melm
from ._settings import Path

NAMES = ("crf.start_transitions", "crf.transitions", "crf.end_transitions")
"""The tensors of the CRF, with the names of pytorch-crf."""

FORBIDDEN = -1e9
"""The score of a transition that the scheme does not allow."""


class CrfDecoder:
    """The transitions of a tagger: finds the best tags for the logits of a sentence."""

    def __init__(self, tags: Sequence[str], start: Any, transitions: Any, end: Any) -> None:
        self.tags = list(tags)
        self._start = numpy.asarray(start, dtype=numpy.float64)
        self._transitions = numpy.asarray(transitions, dtype=numpy.float64)
        self._end = numpy.asarray(end, dtype=numpy.float64)

    @classmethod
    def from_pretrained(cls, folder: Path) -> CrfDecoder:
        """Read the transitions of a folder of `melm.Tagger.save` or `melm train`."""
        path = pathlib.Path(os.fspath(folder))
        names = json.loads((path / "config.json").read_text())["id2label"]
        tags = [names[str(at)] for at in range(len(names))]
        start, transitions, end = _read_transitions(path / "model.safetensors", len(tags))
        extra = path / "tagger.json"
        settings: dict[str, Any] = json.loads(extra.read_text()) if extra.exists() else {}
        if settings.get("constrained"):
            allowed: Any = numpy.array(_melm.allowed_transitions(tags, settings["scheme"].lower()), dtype=bool)
            start = numpy.where(allowed[-1, :-1], start, FORBIDDEN)
            transitions = numpy.where(allowed[:-1, :-1], transitions, FORBIDDEN)
            end = numpy.where(allowed[:-1, -1], end, FORBIDDEN)
        return cls(tags, start, transitions, end)

    def decode(self, logits: Any, word_ids: Optional[Sequence[Optional[int]]] = None) -> list[str]:
        """Return the best tags (Viterbi).

        `logits` has a row for each token or, with `word_ids`, for each piece: the first piece of each word is used then,
        as in training. `word_ids` is what the fast tokenizers of transformers return.
        """
        scores = numpy.asarray(logits, dtype=numpy.float64)
        if word_ids is not None:
            firsts = [at for at, word in enumerate(word_ids) if word is not None and word not in word_ids[:at]]
            scores = scores[firsts]
        if len(scores) == 0:
            return []
        best = self._start + scores[0]
        steps = []
        for row in scores[1:]:
            totals = best[:, None] + self._transitions
            steps.append(totals.argmax(axis=0))
            best = totals.max(axis=0) + row
        at = int((best + self._end).argmax())
        path = [at]
        for step in reversed(steps):
            at = int(step[at])
            path.append(at)
        return [self.tags[tag] for tag in reversed(path)]


def _read_transitions(path: pathlib.Path, n_tags: int) -> list[Any]:
    """Read the tensors of the CRF. A tagger without them has no transitions: all are 0."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        found = []
        for name, shape in zip(NAMES, ((n_tags,), (n_tags, n_tags), (n_tags,))):
            tensor = header.get(name)
            if tensor is None:
                found.append(numpy.zeros(shape))
                continue
            begin, end = tensor["data_offsets"]
            file.seek(8 + length + begin)
            kind = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[tensor["dtype"]]
            found.append(numpy.frombuffer(file.read(end - begin), dtype=kind).reshape(shape))
    return found
