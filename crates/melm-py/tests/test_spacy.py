"""The spaCy component `melm_ner` and the augmenter."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from conftest import FAST, TRAIN, parse

import melm

spacy = pytest.importorskip("spacy")

PAIRS = parse(TRAIN)


@pytest.fixture(scope="module")
def tagger(model: str) -> melm.Tagger:
    settings = dict(tagger__batch_size=4, tagger__learning_rate=0.02, device="cpu", progress=False)
    return melm.Tagger.train(PAIRS, model=model, tagger__budget="40 epochs", **settings)


def make_docs(nlp: Any) -> list[Any]:
    return [spacy.tokens.Doc(nlp.vocab, words=words, ents=tags) for words, tags in PAIRS]


def test_the_component_tags_like_the_tagger(tmp_path: pathlib.Path, tagger: melm.Tagger) -> None:
    tagger.save(tmp_path / "tagger")
    nlp = spacy.blank("en")
    component = nlp.add_pipe("melm_ner", config={"path": str(tmp_path / "tagger"), "device": "cpu"})
    assert component.labels == ("LOC", "PER")
    docs = [spacy.tokens.Doc(nlp.vocab, words=words) for words, _ in PAIRS]
    expected = [tags for _, tags in tagger.predict([words for words, _ in PAIRS])]
    for found in ([nlp(doc.copy()) for doc in docs], list(nlp.pipe([doc.copy() for doc in docs], batch_size=3))):
        iob = [[t.ent_iob_ + ("-" + t.ent_type_ if t.ent_type_ else "") for t in doc] for doc in found]
        assert iob == expected
    nlp.to_disk(tmp_path / "pipeline")
    moved = (tmp_path / "pipeline").rename(tmp_path / "moved")
    (tmp_path / "tagger").rename(tmp_path / "gone")
    again = spacy.load(moved)
    assert [[e.text for e in again(doc.copy()).ents] for doc in docs] == [[e.text for e in nlp(doc.copy()).ents] for doc in docs]


def test_each_sentence_of_a_doc_is_tagged_on_its_own(tagger: melm.Tagger) -> None:
    nlp = spacy.blank("en")
    (first, _), (second, _) = PAIRS[:2]
    starts = [True] + [False] * (len(first) - 1) + [True] + [False] * (len(second) - 1)
    doc = spacy.tokens.Doc(nlp.vocab, words=first + second, sent_starts=starts)
    (tagged,) = tagger.predict([doc])
    alone = [tag for _, tags in tagger.predict([first, second]) for tag in tags]
    assert [t.ent_iob_ + ("-" + t.ent_type_ if t.ent_type_ else "") for t in tagged] == alone


def test_a_component_without_a_tagger_says_what_to_do() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("melm_ner")
    with pytest.raises(melm.ModelError, match="has no tagger; pass its folder"):
        nlp("Ada")


def test_the_augmenter_adds_drafts_in_a_training_loop(tmp_path: pathlib.Path, model: str) -> None:
    from melm.spacy import augmenter

    nlp = spacy.blank("en")
    docs = make_docs(nlp)
    out = melm.augment(docs, model=model, **FAST)
    drafts = {tuple(draft["tokens"]): draft["tags"] for draft in out.drafts if draft["verdict"] == "kept"}
    examples = [spacy.training.Example(nlp.make_doc(doc.text), doc) for doc in docs]
    added = []
    augment = augmenter(out)
    for example in examples:
        first, *more = augment(nlp, example)
        assert first is example
        added += more
    assert added
    for example in added:
        words = [token.text for token in example.reference]
        tags = [t.ent_iob_ + ("-" + t.ent_type_ if t.ent_type_ else "") for t in example.reference]
        assert drafts[tuple(words)] == tags
        assert example.predicted.text == example.reference.text and not example.predicted.ents
    assert not [new for example in examples for new in list(augmenter(out, level=0.0)(nlp, example))[1:]]

    # A training loop of spaCy with the registered augmenter, which reads a saved folder.
    out.save(tmp_path / "more")
    spacy.tokens.DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    create = spacy.registry.augmenters.get("melm.augmenter.v1")
    corpus = spacy.training.Corpus(tmp_path / "train.spacy", augmenter=create(str(tmp_path / "more"), 1.0, 1))
    loaded = list(corpus(nlp))
    assert len(loaded) == len(docs) + len(added)
    nlp.add_pipe("ner")
    optimizer = nlp.initialize(lambda: loaded)
    losses: dict[str, float] = {}
    nlp.update(loaded, sgd=optimizer, losses=losses)
    assert losses["ner"] > 0.0
