"""Reads the arguments that hold data."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from . import _melm
from ._rows import Row
from .adapters import find_adapter
from .adapters._base import Options, is_from, to_json_lines
from .adapters.records import TOKENS_KEYS

logger = logging.getLogger("melm")

Labelled = Any
"""Labelled data: see the table of input types in the guide."""

Unlabelled = Any
"""Unlabelled text: a path, a list of strings or of tokens, or any labelled data, whose tags are ignored."""


@dataclass
class NamesInput:
    """Names of one entity type: a file, or a list."""

    entity_type: str
    path: Optional[str] = None
    names: list[str] = field(default_factory=list)


@dataclass
class SilverInput:
    """Sentences that somebody else labelled."""

    name: str
    corpus: _melm.Corpus
    drops_types: bool = False


@dataclass
class Data:
    """The data of a run."""

    train: _melm.Corpus
    dev: Optional[_melm.Corpus] = None
    text: Optional[_melm.Text] = None
    held_out: list[_melm.Text] = field(default_factory=list)
    names: list[NamesInput] = field(default_factory=list)
    silver: list[SilverInput] = field(default_factory=list)


def is_by_language(data: Any) -> bool:
    """Return True for a dict with data for each language code. A `DatasetDict` has splits, not languages."""
    if not isinstance(data, Mapping) or is_from(data, "datasets", "DatasetDict", "IterableDatasetDict"):
        return False
    if any(key in TOKENS_KEYS for key in data):
        raise _melm.DataError("a dict of columns is not read; pass a list of dicts, a `Dataset` or a `DataFrame`")
    return True


def read_source(data: Labelled, name: str, options: Optional[Options] = None) -> _melm.Source:
    """Return labelled data as the content of a file. `name` is the name for messages, unless the data is a file."""
    return find_adapter(data).to_source(data, name, options or {})


def read_corpus(data: Labelled, name: str, options: Optional[Options] = None) -> _melm.Corpus:
    """Read labelled data. A dict has data for each language code."""
    if is_by_language(data):
        parts = [(code, read_corpus(part, f"{name} ({code})", options)) for code, part in data.items()]
        if not parts:
            raise _melm.DataError("the dict has no languages; pass data for each language code")
        return _melm.Corpus.from_languages(parts)
    corpus = data if isinstance(data, _melm.Corpus) else _melm.Corpus.read(read_source(data, name, options))
    log_notes(corpus.notes)
    return corpus


def require_mentions(corpus: _melm.Corpus, name: str) -> _melm.Corpus:
    """Raise DataError if a corpus has no mention, because a model cannot learn from it."""
    if not corpus.has_mentions:
        raise _melm.DataError(f"`{name}` has no mentions to learn from; use data with tags such as `B-PER`")
    return corpus


def read_text(data: Unlabelled, train: _melm.Corpus, name: str, language: Optional[str] = None) -> _melm.Text:
    """Read unlabelled text. Plain text is split into tokens like those of `train`."""
    if is_by_language(data):
        return _melm.Text.join([read_text(part, train, name, code) for code, part in data.items()])
    if isinstance(data, (str, os.PathLike)):
        text = _melm.Text.open(os.fspath(data), train, language)
    else:
        items = find_adapter(data).to_texts(data)
        records = ({"text": item} if isinstance(item, str) else {"tokens": item} for item in items)
        text = _melm.Text.from_bytes(name, to_json_lines(records), train, language)
    return text


def read_data(
    train: Labelled, dev: Optional[Labelled], unlabelled: Optional[Unlabelled], held_out: Optional[Unlabelled]
) -> Data:
    """Read the data of a run. Log warnings about a dev set whose scores mislead."""
    data = Data(require_mentions(read_corpus(train, "train"), "train"))
    if dev is not None:
        data.dev = require_mentions(read_corpus(dev, "dev"), "dev")
        log_warnings(data.train.dev_warnings(data.dev))
    if unlabelled is not None:
        data.text = read_text(unlabelled, data.train, "unlabelled")
        log_notes(data.text.notes)
    if held_out is not None:
        data.held_out = [read_text(held_out, data.train, "held_out")]
        log_warnings(data.held_out[0].held_out_warnings)
    return data


def extend(data: Labelled, result: _melm.AugmentResult) -> Any:
    """Return data of the type that went in, with the kept sentences added."""
    kept = [(code, Row(*row)) for code, row in result.kept()]
    if is_by_language(data):
        codes = list(data) + [code for code, _ in kept if code is not None and code not in data]
        first = next(iter(data.values()))
        extended = {}
        for code in dict.fromkeys(codes):
            own = [row for language, row in kept if language == code]
            with_own = result.has_gold and code in data
            part = data.get(code, first)
            extended[code] = find_adapter(part).extend(part, own, with_own)
        return extended
    if isinstance(data, (str, os.PathLike, _melm.Corpus)):
        return result.corpus()
    return find_adapter(data).extend(data, [row for _, row in kept], result.has_gold)


def log_notes(notes: list[str]) -> None:
    """Log what a user should know."""
    for note in notes:
        logger.info(note)


def log_warnings(warnings: list[str]) -> None:
    """Log what is probably wrong."""
    for warning in warnings:
        logger.warning(warning)
