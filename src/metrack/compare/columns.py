"""Tables of records as users give them, as columns of values; None where a value is missing."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Column = list[Any]


class Table(NamedTuple):
    """Records, field by field."""

    n_records: int
    columns: dict[str, Column]

    def column(self, name: str) -> Column:
        """The values of a field; all are missing where no record has it."""
        return self.columns.get(name) or [None] * self.n_records


def table_of(records: Any, name: str = "records") -> Table:
    """The columns of a DataFrame, or of a list of dicts."""
    if hasattr(records, "columns") and hasattr(records, "__getitem__"):
        names = [str(each) for each in records.columns]
        values = [list(records[each]) for each in records.columns]
        columns = dict(zip(names, values, strict=True))
        return Table(len(records), {each: _known(column) for each, column in columns.items()})
    if isinstance(records, Mapping | str) or not isinstance(records, Sequence):
        raise ValueError(
            f"{name} must be a DataFrame or a list of dicts, a record each; got "
            f"{type(records).__name__}"
        )
    for i, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise ValueError(
                f"{name}[{i}] is {type(record).__name__}, and no record: a dict of fields"
            )
    fields = dict.fromkeys(str(field) for record in records for field in record)
    columns = {field: _known([record.get(field) for record in records]) for field in fields}
    return Table(len(records), columns)


def _known(values: Sequence[Any]) -> Column:
    return [None if is_missing(value) else value for value in values]


def is_missing(value: Any) -> bool:
    """None, NaN, what pandas has for them, and texts without a letter."""
    if isinstance(value, str):
        return not value.strip()
    if value is None:
        return True
    if hasattr(value, "__len__"):
        return len(value) == 0
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor not
        return True
