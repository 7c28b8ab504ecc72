"""Conversions between data of other libraries and melm. One file for each library, imported only when it is needed."""

from __future__ import annotations

from typing import Any

from .. import _melm
from ._base import Adapter
from .arrow_tables import ArrowAdapter
from .files import CorpusAdapter, FileAdapter
from .hf_datasets import DatasetAdapter
from .pandas_frames import DataFrameAdapter
from .records import RecordAdapter
from .spacy_docs import DocBinAdapter, DocsAdapter

ADAPTERS: list[Adapter] = [
    FileAdapter(),
    CorpusAdapter(),
    DatasetAdapter(),
    DataFrameAdapter(),
    ArrowAdapter(),
    DocBinAdapter(),
    DocsAdapter(),
    RecordAdapter(),
]
"""All adapters. The first one that matches is used."""


def find_adapter(data: Any) -> Adapter:
    """Return the adapter for data. Raises DataError for a type that has none."""
    for adapter in ADAPTERS:
        if adapter.matches(data):
            return adapter
    raise _melm.DataError(
        f"{type(data).__module__}.{type(data).__qualname__} is no data that melm reads; pass a path, a list of "
        "`(tokens, tags)`, a `datasets.Dataset`, a pandas or Arrow table, spaCy `Doc`s or a `DocBin`, or dicts with `text` "
        "and `spans`"
    )
