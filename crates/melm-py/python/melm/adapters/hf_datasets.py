"""`datasets.Dataset` of Hugging Face. Tags that are ids of a `ClassLabel` stay ids of the same `ClassLabel`."""

from __future__ import annotations

from typing import Any, Optional

from .. import _melm
from ._base import is_from
from .tables import TableAdapter


class DatasetAdapter(TableAdapter):
    """A `datasets.Dataset`."""

    what = "the dataset"

    def matches(self, data: Any) -> bool:
        if is_from(data, "datasets", "DatasetDict", "IterableDatasetDict"):
            splits = ", ".join(f'`["{name}"]`' for name in data)
            raise _melm.DataError(f"a DatasetDict has several splits; pass one of {splits}")
        if is_from(data, "datasets", "IterableDataset"):
            raise _melm.DataError("an IterableDataset is not read; pass a `Dataset`, such as `Dataset.from_generator(…)`")
        return is_from(data, "datasets", "Dataset")

    def columns(self, data: Any) -> list[str]:
        return list(data.column_names)

    def to_records(self, data: Any, columns: list[str]) -> list[dict[str, Any]]:
        return list(data.select_columns(columns).with_format(None))

    def add_records(self, data: Any, records: list[dict[str, Any]], with_own: bool) -> Any:
        import datasets

        complete = [{name: record.get(name) for name in data.column_names} for record in records]
        columns = {name: [record[name] for record in complete] for name in data.column_names}
        more = datasets.Dataset.from_dict(columns, features=data.features)
        return datasets.concatenate_datasets([data, more]) if with_own else more

    def replace_column(self, data: Any, column: str, values: list[Any]) -> Any:
        feature = data.features.get(column)
        keeps_type = feature is not None and _holds(feature, next((value for row in values for value in row), None))
        without = data.remove_columns([column]) if column in data.column_names else data
        added = without.add_column(column, values)
        return added.cast_column(column, feature) if keeps_type else added

    def tag_names(self, data: Any, column: str) -> Optional[list[str]]:
        names = getattr(_innermost(data.features[column]), "names", None)
        return None if names is None else list(names)


def _innermost(feature: Any) -> Any:
    """Return the feature of the values of a list."""
    while True:
        inner = feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)
        if inner is None:
            return feature
        feature = inner


def _holds(feature: Any, value: Any) -> bool:
    """Return True if a list of this feature can hold the value. An empty list has no value, and fits every feature."""
    inner = _innermost(feature)
    if value is None:
        return True
    if hasattr(inner, "names"):
        return isinstance(value, int)
    return isinstance(value, str) and getattr(inner, "dtype", None) in ("string", "large_string")
