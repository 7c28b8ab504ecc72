"""What tables of all libraries share: one row for each sentence, as records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Optional

from .. import _melm
from .._rows import Row
from ._base import Adapter, Options, TagTexts, TagTokens, TextItem
from .records import (
    TAGS_KEYS,
    TOKENS_KEYS,
    Layout,
    Record,
    RecordAdapter,
    as_list,
    find_key,
    records_to_source,
    row_to_record,
)


class TableAdapter(Adapter):
    """A table with columns of tokens and tags, or of texts and spans."""

    what = "the table"

    @abstractmethod
    def columns(self, data: Any) -> list[str]:
        """Return the names of the columns."""

    @abstractmethod
    def to_records(self, data: Any, columns: list[str]) -> list[dict[str, Any]]:
        """Return these columns of all rows."""

    @abstractmethod
    def add_records(self, data: Any, records: list[dict[str, Any]], with_own: bool) -> Any:
        """Return a table with the same columns and types. Columns that the records do not have are null."""

    @abstractmethod
    def replace_column(self, data: Any, column: str, values: list[Any]) -> Any:
        """Return the table with other values in a column, which may be new."""

    def tag_names(self, data: Any, column: str) -> Optional[list[str]]:
        """Return the tags in the order of their ids, if the column has ids."""
        return None

    def to_source(self, data: Any, name: str, options: Options) -> _melm.Source:
        layout = Layout(self.columns(data), self.what)
        return records_to_source(self._named_records(data, layout), layout, name, options)

    def extend(self, data: Any, rows: list[Row], with_own: bool) -> Any:
        layout = Layout(self.columns(data), self.what)
        records = [row_to_record(row, layout, spans_as_dicts=True) for row in rows]
        names = self.tag_names(data, layout.tags) if layout.has_rows and layout.tags else None
        if names is not None and layout.tags:
            for record in records:
                record[layout.tags] = [names.index(tag) for tag in record[layout.tags]]
        return self.add_records(data, records, with_own)

    def to_texts(self, data: Any) -> Iterable[TextItem]:
        columns = self.columns(data)
        key = find_key(columns, (*TOKENS_KEYS, "text", "sentence"))
        if key is None:
            raise _melm.DataError(f"{self.what} has no column `text` or `tokens`; rename the column of the text")
        for number, record in enumerate(self.to_records(data, [key]), 1):
            is_text = key not in TOKENS_KEYS and isinstance(record[key], str)
            yield record[key] if is_text else as_list(record[key], key, number)

    def predict(self, data: Any, tag_tokens: TagTokens, tag_texts: TagTexts) -> Any:
        columns = self.columns(data)
        key = find_key(columns, TOKENS_KEYS)
        if key is None:
            texts = [{"text": text} for text in self.to_texts(data)]
            predicted = RecordAdapter().predict(texts, tag_tokens, tag_texts)
            return self.replace_column(data, "spans", [record["spans"] for record in predicted])
        column = find_key(columns, TAGS_KEYS) or "ner_tags"
        tagged: list[list[Any]] = list(tag_tokens([list(tokens) for tokens in self.to_texts(data)]))
        names = self.tag_names(data, column) if column in columns else None
        if names is not None and all(tag in names for tags in tagged for tag in tags):
            tagged = [[names.index(tag) for tag in tags] for tags in tagged]
        return self.replace_column(data, column, tagged)

    def _named_records(self, data: Any, layout: Layout) -> Iterable[Record]:
        wanted = [layout.tokens, layout.tags] if layout.has_rows else ["text", layout.spans]
        records = self.to_records(data, [column for column in wanted if column])
        names = self.tag_names(data, layout.tags) if layout.has_rows and layout.tags else None
        for number, record in enumerate(records, 1):
            if names is not None and layout.tags:
                ids = as_list(record[layout.tags], layout.tags, number)
                record[layout.tags] = [_name_of(one, names, number) for one in ids]
            yield record


def _name_of(tag: Any, names: list[str], number: int) -> str:
    """Return the name of a tag id. Raise DataError for other ids, such as -1 and -100, which mark tokens without a label."""
    if hasattr(tag, "__index__") and 0 <= int(tag) < len(names):
        return names[int(tag)]
    raise _melm.DataError(f"record {number}: the tag id {tag} has no name; the column has {len(names)} names")
