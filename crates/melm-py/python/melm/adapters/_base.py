"""The interface of adapters."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Callable, Union

from .. import _melm
from .._rows import Row

Options = dict[str, Any]
"""Options for reading data, such as `scheme`. They have the names of the command's options."""

TextItem = Union[str, "list[str]"]
"""An unlabelled text, or the tokens of an unlabelled sentence."""

TagTokens = Callable[["list[list[str]]"], "list[list[str]]"]
"""Returns a tag for each token of each sentence."""

Span = tuple[int, int, str, float]
"""A predicted mention: start, end, entity type, and the lowest probability of its tags."""

TagTexts = Callable[["list[str]"], "list[list[Span]]"]
"""Returns the mentions of each text."""


class Adapter(ABC):
    """Converts one type of data to and from rows. Subclasses import their library only when they meet its types."""

    @abstractmethod
    def matches(self, data: Any) -> bool:
        """Return True if `data` has the type of this adapter. Must not import the library."""

    @abstractmethod
    def to_source(self, data: Any, name: str, options: Options) -> _melm.Source:
        """Return labelled data as the content of a file. `name` is the name for messages."""

    @abstractmethod
    def extend(self, data: Any, rows: list[Row], with_own: bool) -> Any:
        """Return data of the same type with `rows` added. Without `with_own`, only `rows`."""

    @abstractmethod
    def to_texts(self, data: Any) -> Iterable[TextItem]:
        """Return the texts or tokens of the data. Tags are ignored."""

    @abstractmethod
    def predict(self, data: Any, tag_tokens: TagTokens, tag_texts: TagTexts) -> Any:
        """Return data of the same type with predicted tags."""


def is_from(data: Any, module: str, *names: str) -> bool:
    """Return True if the type of `data`, or a base of it, is one of `names` of a library that is not imported here."""
    bases = type(data).__mro__
    return any(base.__name__ in names and base.__module__.split(".")[0] == module for base in bases)


def to_json_lines(records: Iterable[Any]) -> bytes:
    """Write one JSON value on each line, without spaces, as `melm convert` does."""
    lines = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)
    return "".join(lines).encode("utf-8", "surrogatepass")


def rows_to_source(rows: Sequence[Row], name: str, options: Options) -> _melm.Source:
    """Return rows as the content of a file with JSON lines."""
    content = to_json_lines({"tokens": list(row.tokens), "ner_tags": list(row.tags)} for row in rows)
    return _melm.Source.from_bytes(name, content, {"format": "jsonl", **options})
