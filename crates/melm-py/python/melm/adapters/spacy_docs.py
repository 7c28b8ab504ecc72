"""spaCy: a list of `Doc`s, or a `DocBin`. New sentences are `Doc`s of one sentence each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _melm
from .._rows import Row, find_mentions
from ._base import Adapter, Options, TagTexts, TagTokens, TextItem, is_from

ATTRIBUTES = ["ORTH", "SPACY", "ENT_IOB", "ENT_TYPE", "SENT_START"]


def to_doc(row: Row, vocab: Any) -> Any:
    """Make a `Doc` of one sentence. White space other than one space becomes a token, as in spaCy's own tokenizer."""
    from spacy.tokens import Doc, Span

    words: list[str] = []
    spaces: list[bool] = []
    places: list[int] = []
    for at, token in enumerate(row.tokens):
        gap = "" if at == 0 else (row.gaps[at] if row.gaps else " ")
        if gap.startswith(" "):
            spaces[-1] = True
            gap = gap[1:]
        if gap:
            words.append(gap)
            spaces.append(False)
        places.append(len(words))
        words.append(token)
        spaces.append(False)
    starts: list[Any] = [at == 0 for at in range(len(words))]
    doc = Doc(vocab, words=words, spaces=spaces, sent_starts=starts)
    spans = [Span(doc, places[start], places[end - 1] + 1, label) for start, end, label in find_mentions(row.tags)]
    # Tokens outside the spans get the tag `O`, not "unknown".
    doc.set_ents(spans)
    return doc


def find_sentences(doc: Any) -> list[list[int]]:
    """Return the indices of the tokens of each sentence, without white space. A doc without sentences is one."""
    parts = list(doc.sents) if doc.has_annotation("SENT_START") else [doc]
    found = [[token.i for token in part if not token.is_space] for part in parts]
    return [sentence for sentence in found if sentence]


def set_mentions(doc: Any, sentences: list[list[int]], tags: list[list[str]]) -> Any:
    """Set the entities of a doc from the tags of its sentences."""
    from spacy.tokens import Span

    spans = []
    for places, own in zip(sentences, tags):
        for start, end, label in find_mentions(own):
            spans.append(Span(doc, places[start], places[end - 1] + 1, label))
    doc.set_ents(spans)
    return doc


def tag_docs(docs: list[Any], tag_tokens: TagTokens) -> list[Any]:
    """Predict the entities of docs, in place."""
    sentences = [find_sentences(doc) for doc in docs]
    tokens = [[doc[place].text for place in places] for doc, own in zip(docs, sentences) for places in own]
    tags = iter(tag_tokens(tokens))
    return [set_mentions(doc, own, [next(tags) for _ in own]) for doc, own in zip(docs, sentences)]


class DocsAdapter(Adapter):
    """A list of `Doc`s."""

    def matches(self, data: Any) -> bool:
        return isinstance(data, (list, tuple)) and bool(data) and is_from(data[0], "spacy", "Doc")

    def to_source(self, data: Any, name: str, options: Options) -> _melm.Source:
        from spacy.tokens import DocBin

        return DocBinAdapter().to_source(DocBin(attrs=ATTRIBUTES, docs=list(data)), name, options)

    def extend(self, data: Any, rows: list[Row], with_own: bool) -> list[Any]:
        vocab = data[0].vocab
        return (list(data) if with_own else []) + [to_doc(row, vocab) for row in rows]

    def to_texts(self, data: Any) -> Iterable[TextItem]:
        for doc in data:
            for sentence in find_sentences(doc):
                yield [doc[place].text for place in sentence]

    def predict(self, data: Any, tag_tokens: TagTokens, tag_texts: TagTexts) -> list[Any]:
        return tag_docs([doc.copy() for doc in data], tag_tokens)


class DocBinAdapter(Adapter):
    """A `DocBin`."""

    def matches(self, data: Any) -> bool:
        return is_from(data, "spacy", "DocBin")

    def to_source(self, data: Any, name: str, options: Options) -> _melm.Source:
        return _melm.Source.from_bytes(name, data.to_bytes(), {"format": "spacy", **options})

    def extend(self, data: Any, rows: list[Row], with_own: bool) -> Any:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab

        vocab = Vocab()
        result = DocBin(attrs=_attributes(data), store_user_data=data.store_user_data)
        for doc in data.get_docs(vocab) if with_own else []:
            result.add(doc)
        for row in rows:
            result.add(to_doc(row, vocab))
        return result

    def to_texts(self, data: Any) -> Iterable[TextItem]:
        return DocsAdapter().to_texts(self._docs(data))

    def predict(self, data: Any, tag_tokens: TagTokens, tag_texts: TagTexts) -> Any:
        from spacy.tokens import DocBin

        docs = tag_docs(self._docs(data), tag_tokens)
        return DocBin(attrs=_attributes(data), docs=docs, store_user_data=data.store_user_data)

    def _docs(self, data: Any) -> list[Any]:
        from spacy.vocab import Vocab

        return list(data.get_docs(Vocab()))


def _attributes(data: Any) -> list[str]:
    """Return the names of the attributes of a DocBin and of entities."""
    from spacy.attrs import IDS

    return sorted({*ATTRIBUTES, *(name for name, number in IDS.items() if number in data.attrs)})
