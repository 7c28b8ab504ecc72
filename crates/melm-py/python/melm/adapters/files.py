"""Paths of files, and `melm.Corpus`. Both give back a `melm.Corpus`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from .. import _melm
from .._rows import Row
from ._base import Adapter, Options, TagTexts, TagTokens, TextItem, rows_to_source


class FileAdapter(Adapter):
    """A path. The file has any format that the command reads."""

    def matches(self, data: Any) -> bool:
        return isinstance(data, (str, os.PathLike))

    def to_source(self, data: Any, name: str, options: Options) -> _melm.Source:
        return _melm.Source.open(os.fspath(data), options)

    def extend(self, data: Any, rows: list[Row], with_own: bool) -> _melm.Corpus:
        return CorpusAdapter().extend(self._read(data), rows, with_own)

    def to_texts(self, data: Any) -> Iterable[TextItem]:
        return [tokens for tokens, _ in self._read(data)]

    def predict(self, data: Any, tag_tokens: TagTokens, tag_texts: TagTexts) -> _melm.Corpus:
        untagged = _melm.Corpus.read(self.to_source(data, "", {}), allows_untagged=True)
        return CorpusAdapter().predict(untagged, tag_tokens, tag_texts)

    def _read(self, path: Any) -> _melm.Corpus:
        return _melm.Corpus.read(self.to_source(path, "", {}))


class CorpusAdapter(Adapter):
    """A `melm.Corpus`."""

    def matches(self, data: Any) -> bool:
        return isinstance(data, _melm.Corpus)

    def to_source(self, data: Any, name: str, options: Options) -> _melm.Source:
        return self._source(data, data.rows(), options)

    def extend(self, data: Any, rows: list[Row], with_own: bool) -> _melm.Corpus:
        own = [Row(*row) for row in data.rows()] if with_own else []
        return _melm.Corpus.read(self._source(data, own + rows, {}))

    def to_texts(self, data: Any) -> Iterable[TextItem]:
        return [tokens for tokens, _ in data]

    def predict(self, data: Any, tag_tokens: TagTokens, tag_texts: TagTexts) -> _melm.Corpus:
        if data.languages:
            parts = [(code, part) for code, part in data.split_languages() if len(part)]
            return _melm.Corpus.from_languages(
                [(code, self.predict(part, tag_tokens, tag_texts)) for code, part in parts]
            )
        sentences = [tokens for tokens, _ in data]
        rows = [Row(tokens, tags, []) for tokens, tags in zip(sentences, tag_tokens(sentences))]
        return _melm.Corpus.read(rows_to_source(rows, "predictions", {}))

    def _source(self, data: _melm.Corpus, rows: Iterable[Any], options: Options) -> _melm.Source:
        return rows_to_source([Row(*row) for row in rows], "corpus", {"scheme": data.scheme, **options})
