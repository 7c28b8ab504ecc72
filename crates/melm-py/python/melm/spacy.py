"""spaCy: the pipeline component `melm_ner`, and an augmenter for training.

    nlp.add_pipe("melm_ner", config={"path": "tagger"})
    augmenter = melm.spacy.augmenter(melm.augment(docs))
"""

from __future__ import annotations

import os
import pathlib
import random
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Callable, Optional

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from . import _melm
from ._augment import Augmented, RunFolder
from ._rows import Row
from ._settings import Path
from ._tagger import Tagger
from ._tools import read
from .adapters.spacy_docs import find_sentences, tag_docs, to_doc

Augmenter = Callable[[Language, Example], Iterator[Example]]


class MelmNer:
    """A pipeline component that sets `doc.ents` with a trained tagger. Sentences are those of the doc, if it has any."""

    def __init__(self, name: str, path: Optional[str], device: str, threads: Optional[int]) -> None:
        self.name = name
        # Opened at the first use: a pipeline that is loaded from disk has a tagger of its own.
        self._path = path
        self._tagger: Optional[Tagger] = None
        self._device = device
        self._threads = threads

    def __call__(self, doc: Doc) -> Doc:
        return next(iter(self.pipe([doc])))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Tag docs in batches."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            yield from tag_docs(batch, self._predict)

    @property
    def labels(self) -> tuple[str, ...]:
        """The entity types. Empty before the tagger is known: spaCy asks for them while it loads a pipeline."""
        if self._tagger is None and not os.path.isdir(self._path or ""):
            return ()
        return tuple(sorted({tag.partition("-")[2] for tag in self._opened().tags} - {""}))

    def to_disk(self, path: Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the tagger in a folder."""
        self._opened().save(path)

    def from_disk(self, path: Path, *, exclude: Iterable[str] = ()) -> MelmNer:
        """Open the tagger that `to_disk` saved."""
        self._path = os.fspath(path)
        self._tagger = None
        self._opened()
        return self

    def _predict(self, sentences: list[list[str]]) -> list[list[str]]:
        return [tags for _, tags in self._opened().predict(sentences)]

    def _opened(self) -> Tagger:
        if self._tagger is None and self._path is not None:
            self._tagger = Tagger.from_pretrained(self._path, device=self._device, threads=self._threads)
        if self._tagger is None:
            raise _melm.ModelError(
                f'the component `{self.name}` has no tagger; pass its folder: `add_pipe("melm_ner", config={{"path": …}})`'
            )
        return self._tagger


@Language.factory(
    "melm_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={"path": None, "device": "auto", "threads": None},
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0},
)
def make_melm_ner(
    nlp: Language, name: str, path: Optional[str], device: str, threads: Optional[int]
) -> MelmNer:
    """Make the component. `path` is the folder of a tagger of `melm.Tagger.save` or `melm train`."""
    return MelmNer(name, path, device, threads)


def augmenter(out: Augmented, *, level: float = 1.0, seed: int = 1) -> Augmenter:
    """Return a callable for a spaCy training loop, in the manner of augmenty.

    For each example it yields the example. With the probability `level`, it also yields a kept draft of each of its
    sentences, if the sentence has one. `out` is the result of `melm.augment` on the training docs.
    """
    return create_augmenter(out.folder, level, seed)


def create_augmenter(folder: str, level: float = 1.0, seed: int = 1) -> Augmenter:
    """Make the augmenter `melm.augmenter.v1` from the folder of `melm augment` or `Augmented.save`."""
    drafts = _read_drafts(pathlib.Path(folder))
    chance = random.Random(seed)

    def augment(nlp: Language, example: Example) -> Iterator[Example]:
        yield example
        doc = example.reference
        for sentence in find_sentences(doc):
            own = drafts.get(tuple(doc[place].text for place in sentence))
            if own and chance.random() < level:
                new = to_doc(chance.choice(own), nlp.vocab)
                spaces = [bool(token.whitespace_) for token in new]
                yield Example(Doc(nlp.vocab, words=[token.text for token in new], spaces=spaces), new)

    return augment


def _read_drafts(folder: pathlib.Path) -> dict[tuple[str, ...], list[Row]]:
    """Return the kept drafts of each gold sentence, by the tokens of the sentence."""
    out = RunFolder(folder)
    files = sorted(folder.glob("train.augmented.*"))
    if not files or isinstance(out.summary["train"], list):
        raise _melm.DataError(f"`{folder}` is not the folder of a run with one language")
    if "union = false" in (folder / "plan.toml").read_text(encoding="utf-8"):
        raise _melm.DataError(f"`{folder}` has drafts without gold (`union = false`); make it again with gold")
    rows = [Row(*row) for row in read(files[0]).rows()]
    n_gold = out.summary["train"]["sentences"]
    kept = [draft for draft in out.drafts if draft["verdict"] in ("kept", "accepted", "copied")]
    found: dict[tuple[str, ...], list[Row]] = {}
    for draft, row in zip(kept, rows[n_gold:]):
        if draft.get("source"):
            found.setdefault(tuple(rows[draft["source"] - 1].tokens), []).append(row)
    return found
