"""Lists of JSON objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

Record = dict[str, Any]


class Records(Sequence[Record]):
    """A sequence of JSON objects, one for each line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._records: list[Record] = [json.loads(line) for line in lines]

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)})"

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with one row for each object."""
        import pandas

        return pandas.DataFrame(self._records)
