"""The decoder for models that run in transformers, against brute force."""

from __future__ import annotations

import itertools
import json
import pathlib

import pytest
from conftest import TRAIN, parse

import melm

numpy = pytest.importorskip("numpy")

from melm.transformers import CrfDecoder  # noqa: E402


def test_decode_finds_the_best_path() -> None:
    chance = numpy.random.default_rng(1)
    tags = ["O", "B-X", "I-X"]
    for _ in range(20):
        start, transitions, end = chance.normal(size=3), chance.normal(size=(3, 3)), chance.normal(size=3)
        scores = chance.normal(size=(5, 3))

        def total(path: tuple[int, ...]) -> float:
            between = sum(transitions[a, b] for a, b in zip(path, path[1:]))
            return float(start[path[0]] + end[path[-1]] + between + sum(scores[at, tag] for at, tag in enumerate(path)))

        best = max(itertools.product(range(3), repeat=5), key=total)
        assert CrfDecoder(tags, start, transitions, end).decode(scores) == [tags[tag] for tag in best]


def test_only_the_first_piece_of_a_word_counts() -> None:
    decoder = CrfDecoder(["O", "B-X"], [0, 0], [[0, 0], [0, 0]], [0, 0])
    logits = [[9, 0], [0, 1], [5, 0], [1, 0], [9, 0]]
    assert decoder.decode(logits, [None, 0, 0, 1, None]) == ["B-X", "O"]
    assert decoder.decode(numpy.zeros((2, 2)), [None, None]) == []


def test_a_saved_tagger_has_transitions_and_constraints(tmp_path: pathlib.Path, model: str) -> None:
    pairs = parse(TRAIN)
    settings = dict(tagger__budget="4 updates", tagger__head="crf", device="cpu", progress=False)
    tagger = melm.Tagger.train(pairs, model=model, **settings)
    tagger.save(tmp_path / "tagger")
    decoder = CrfDecoder.from_pretrained(tmp_path / "tagger")
    assert decoder.tags == tagger.tags == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert json.loads((tmp_path / "tagger/tagger.json").read_text())["constrained"] is True
    # I-PER has by far the best logits, but it may neither start a sentence nor follow another type.
    logits = numpy.zeros((3, 5))
    logits[:, 4] = 50.0
    assert decoder.decode(logits) == ["B-PER", "I-PER", "I-PER"]
    logits[0] = [0, 100, 0, 0, 0]
    assert decoder.decode(logits)[0] == "B-LOC" and decoder.decode(logits)[1] != "I-PER"
