"""`pandas.DataFrame` with one row for each sentence."""

from __future__ import annotations

from typing import Any

from ._base import is_from
from .tables import TableAdapter


class DataFrameAdapter(TableAdapter):
    """A `pandas.DataFrame`."""

    what = "the data frame"

    def matches(self, data: Any) -> bool:
        return is_from(data, "pandas", "DataFrame")

    def columns(self, data: Any) -> list[str]:
        return [str(name) for name in data.columns]

    def to_records(self, data: Any, columns: list[str]) -> list[dict[str, Any]]:
        values = [data[column].tolist() for column in columns]
        return [dict(zip(columns, row)) for row in zip(*values)]

    def add_records(self, data: Any, records: list[dict[str, Any]], with_own: bool) -> Any:
        import pandas

        columns = {name: [record.get(name) for record in records] for name in data.columns}
        more = pandas.DataFrame(columns, columns=data.columns)
        own = [data] if with_own else []
        # Columns that the new rows do not have are null in them. Their type may have to change for this.
        return pandas.concat([*own, more], ignore_index=True)

    def replace_column(self, data: Any, column: str, values: list[Any]) -> Any:
        import pandas

        return data.assign(**{column: pandas.Series(values, index=data.index, dtype=object)})
