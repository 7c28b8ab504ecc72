"""`pyarrow.Table` with one row for each sentence."""

from __future__ import annotations

from typing import Any

from ._base import is_from
from .tables import TableAdapter


class ArrowAdapter(TableAdapter):
    """A `pyarrow.Table`."""

    what = "the table"

    def matches(self, data: Any) -> bool:
        return is_from(data, "pyarrow", "Table")

    def columns(self, data: Any) -> list[str]:
        return list(data.column_names)

    def to_records(self, data: Any, columns: list[str]) -> list[dict[str, Any]]:
        return list(data.select(columns).to_pylist())

    def add_records(self, data: Any, records: list[dict[str, Any]], with_own: bool) -> Any:
        import pyarrow

        complete = [{name: record.get(name) for name in data.column_names} for record in records]
        more = pyarrow.Table.from_pylist(complete, schema=data.schema)
        return pyarrow.concat_tables([data, more]) if with_own else more

    def replace_column(self, data: Any, column: str, values: list[Any]) -> Any:
        import pyarrow

        if column not in data.column_names:
            return data.append_column(column, pyarrow.array(values))
        at = data.column_names.index(column)
        kind = data.schema.field(column).type
        is_same = pyarrow.types.is_list(kind) and pyarrow.types.is_string(kind.value_type)
        return data.set_column(at, column, pyarrow.array(values, type=kind if is_same else None))
