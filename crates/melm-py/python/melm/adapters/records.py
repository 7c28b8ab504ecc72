"""Lists: `(tokens, tags)`, dicts with tokens and tags, dicts with a text and spans; for unlabelled text also strings and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from .. import _melm
from .._rows import Row, find_mentions, join_tokens
from ._base import Adapter, Options, Span, TagTexts, TagTokens, TextItem, rows_to_source, to_json_lines

TOKENS_KEYS = ("tokens", "words", "text_tokens")
TAGS_KEYS = ("ner_tags", "tags", "labels", "ner")
SPANS_KEYS = ("spans", "entities", "label")

Record = Mapping[str, Any]


def find_key(keys: Iterable[str], wanted: Sequence[str]) -> Optional[str]:
    """Return the first of `wanted` that is one of `keys`."""
    known = set(keys)
    return next((key for key in wanted if key in known), None)


class Layout:
    """The keys of records: tokens and tags, or a text and spans. Raises DataError if there are neither."""

    def __init__(self, keys: Iterable[str], what: str) -> None:
        keys = list(keys)
        self.tokens = find_key(keys, TOKENS_KEYS)
        self.tags = find_key(keys, TAGS_KEYS)
        self.spans = find_key(keys, SPANS_KEYS)
        self.has_rows = self.tokens is not None and self.tags is not None
        if not self.has_rows and not ("text" in keys and self.spans):
            raise _melm.DataError(
                f"{what} has the columns {', '.join(keys) or 'none'}; it needs tokens ({', '.join(TOKENS_KEYS)}) and tags "
                f"({', '.join(TAGS_KEYS)}), or `text` and spans ({', '.join(SPANS_KEYS)}): rename the columns"
            )


def records_to_source(records: Iterable[Record], layout: Layout, name: str, options: Options) -> _melm.Source:
    """Return records as the content of a file: JSON lines, or the JSON lines of Prodigy for texts with spans."""
    if layout.has_rows:
        tokens, tags = layout.tokens or "", layout.tags or ""
        rows = [
            Row(as_list(record[tokens], tokens, number), as_list(record[tags], tags, number), [])
            for number, record in enumerate(records, 1)
        ]
        return rows_to_source(rows, name, options)
    content = to_json_lines(_to_prodigy(record, layout) for record in records)
    return _melm.Source.from_bytes(name, content, {"format": "prodigy", **options})


def as_list(value: Any, column: str, number: int) -> list[Any]:
    """Return a list, also for an array of numpy. Raise DataError for another value, such as a string or a missing one."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return list(value)
    raise _melm.DataError(
        f"record {number}: `{column}` is {type(value).__name__}, not a list; split a text into tokens, or name its column `text`"
    )


def _to_prodigy(record: Record, layout: Layout) -> dict[str, Any]:
    spans = [_to_span(span) for span in record[layout.spans or "spans"]]
    kept = {key: record[key] for key in ("tokens", "answer") if isinstance(record.get(key), (list, str))}
    return {"text": record["text"], **kept, "spans": spans}


def _to_span(span: Any) -> dict[str, Any]:
    if isinstance(span, Mapping):
        return {"start": int(span["start"]), "end": int(span["end"]), "label": str(span["label"])}
    start, end, label = span
    return {"start": int(start), "end": int(end), "label": str(label)}


def row_to_record(row: Row, layout: Layout, spans_as_dicts: bool) -> dict[str, Any]:
    """Return a sentence as a record with the same keys."""
    if layout.has_rows:
        return {layout.tokens or "tokens": row.tokens, layout.tags or "ner_tags": row.tags}
    text, offsets = join_tokens(row)
    spans: list[Any] = [
        (offsets[start][0], offsets[end - 1][1], label) for start, end, label in find_mentions(row.tags)
    ]
    if spans_as_dicts:
        spans = [{"start": start, "end": end, "label": label} for start, end, label in spans]
    return {"text": text, layout.spans or "spans": spans}


def with_spans(record: Record, found: list[Span], layout: Layout) -> dict[str, Any]:
    """Return a record with predicted spans in place of its own. Tokens of Prodigy are left out: they may not fit."""
    spans = [{"start": start, "end": end, "label": label, "score": score} for start, end, label, score in found]
    rest = {key: value for key, value in record.items() if key not in (layout.spans, "tokens")}
    return {**rest, layout.spans or "spans": spans}


class RecordAdapter(Adapter):
    """A list of `(tokens, tags)` or of dicts."""

    def matches(self, data: Any) -> bool:
        return isinstance(data, (list, tuple))

    def to_source(self, data: Any, name: str, options: Options) -> _melm.Source:
        if self._is_pairs(data):
            pairs = enumerate(data, 1)
            rows = [Row(as_list(one, "tokens", n), as_list(tags, "tags", n), []) for n, (one, tags) in pairs]
            return rows_to_source(rows, name, options)
        return records_to_source(data, self._layout(data), name, options)

    def extend(self, data: Any, rows: list[Row], with_own: bool) -> Any:
        own = list(data) if with_own else []
        if self._is_pairs(data):
            return own + [(row.tokens, row.tags) for row in rows]
        layout = self._layout(data)
        first: Any = next((span for record in data for span in record.get(layout.spans, [])), {})
        return own + [row_to_record(row, layout, isinstance(first, Mapping)) for row in rows]

    def to_texts(self, data: Any) -> Iterable[TextItem]:
        for number, item in enumerate(data, 1):
            if isinstance(item, Mapping):
                key = _tokens_key(item)
                yield item["text"] if key is None else as_list(item[key], key, number)
            elif isinstance(item, str) or all(isinstance(token, str) for token in item):
                yield item if isinstance(item, str) else list(item)
            else:
                yield as_list(item[0], "tokens", number)

    def predict(self, data: Any, tag_tokens: TagTokens, tag_texts: TagTexts) -> Any:
        if not data:
            return []
        if isinstance(data[0], str):
            return [{"text": text, "spans": _as_dicts(spans)} for text, spans in zip(data, tag_texts(list(data)))]
        if not isinstance(data[0], Mapping):
            sentences = [list(tokens) for tokens in self.to_texts(data)]
            return list(zip(sentences, tag_tokens(sentences)))
        key = _tokens_key(data[0])
        if key is None:
            layout = Layout([*data[0], "spans"], "the data")
            found = tag_texts([record["text"] for record in data])
            return [with_spans(record, spans, layout) for record, spans in zip(data, found)]
        tags_key = find_key(data[0], TAGS_KEYS) or "ner_tags"
        tagged = tag_tokens([as_list(record[key], key or "tokens", n) for n, record in enumerate(data, 1)])
        return [{**record, tags_key: tags} for record, tags in zip(data, tagged)]

    def _is_pairs(self, data: Sequence[Any]) -> bool:
        if not data:
            raise _melm.DataError("the list has no sentences; pass a list of `(tokens, tags)`")
        if isinstance(data[0], Mapping):
            return False
        if not isinstance(data[0], (list, tuple)) or len(data[0]) != 2:
            raise _melm.DataError(
                f"a list of {type(data[0]).__name__} is not labelled data; pass a list of `(tokens, tags)`, or of dicts with "
                "`tokens` and `ner_tags`, or with `text` and `spans`"
            )
        return True

    def _layout(self, data: Sequence[Record]) -> Layout:
        return Layout(data[0].keys(), "the first dict")


def _tokens_key(record: Mapping[str, Any]) -> Optional[str]:
    """Return the key of the tokens, or None if the text is used. With tags, tokens come first, as in training."""
    key = find_key(record, TOKENS_KEYS)
    return None if "text" in record and find_key(record, TAGS_KEYS) is None else key


def _as_dicts(spans: list[Span]) -> list[dict[str, Any]]:
    return [{"start": start, "end": end, "label": label, "score": score} for start, end, label, score in spans]
