"""What the columns of a file mean: points, ids and labels; and rows judged one by one or at once.

`Layout.row` is the judge: it takes one row, or says what is wrong with it. `Layout.batch` does the
same for many at once and must agree with it, so that what is learned does not depend on how a
stream was cut into batches.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from metrack.checks import Bools, Floats
from metrack.estimators.differences import Differences
from metrack.estimators.inputs import LARGEST

ALIKE = frozenset({"1", "+1", "true", "same"})
OTHER = frozenset({"-1", "0", "false", "different"})
LABELS = "labels are +1/-1, 1/0, true/false or same/different"
SEPARATORS = re.compile(r"[\s,;]+")


class RowError(ValueError):
    """Why a row cannot be used."""


class Rows(NamedTuple):
    """Rows that can be used, and which of a batch they are."""

    points: Floats  # (n_rows, points a row, n_features); where there is one: differences
    keys: NDArray[Any]  # (n_rows, ids per row): text, or rows of the items where these are known
    y: Floats
    good: Bools  # one entry per row of the batch

    def pairs(self, names: Sequence[str] | None) -> Floats | Differences:
        """What a learner takes; differences know their features by these names."""
        if self.points.shape[1] == 2:
            return self.points
        return Differences(self.points[:, 0], names)


class Layout(NamedTuple):
    """Which columns hold what.

    Attributes
    ----------
    vectors : tuple of tuples of str
        For each point of a row the columns of its features, or the one column of lists.
    n_features : int
    lists : bool
        Whether a point is one column of lists.
    keys : tuple of str
        Columns of ids.
    known : mapping from id to row, optional
        The ids of the items; without, all are taken as they are.
    label : str, optional
        Column of the label.
    """

    vectors: tuple[tuple[str, ...], ...] = ()
    n_features: int = 0
    lists: bool = False
    keys: tuple[str, ...] = ()
    known: Mapping[str, int] | None = None
    label: str | None = None

    @property
    def numbers(self) -> list[str]:
        """Columns of numbers, or of lists of numbers."""
        return [name for columns in self.vectors for name in columns]

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [*self.numbers, *self.keys, *([self.label] if self.label else [])]

    def row(self, values: Mapping[str, object]) -> tuple[Floats, list[str | int], float]:
        """Points, ids and label of one row; raises a RowError."""
        points = np.empty((len(self.vectors), self.n_features))
        for i, columns in enumerate(self.vectors):
            if self.lists:
                points[i] = self._list(values, columns[0])
            else:
                points[i] = [_number(values.get(name), name) for name in columns]
        keys = [self._key(values.get(name), name) for name in self.keys]
        return points, keys, label_of(values.get(self.label)) if self.label else 0.0

    def _list(self, values: Mapping[str, object], name: str) -> list[float]:
        found = list_of(values.get(name), name)
        if len(found) != self.n_features:
            raise RowError(f"{name} has {len(found)} numbers, expected {self.n_features}")
        return [_number(each, f"{name}[{i}]") for i, each in enumerate(found)]

    def _key(self, value: object, name: str) -> str | int:
        key = key_of(value)
        if key is None:
            raise RowError(f"{name} is empty")
        if self.known is None:
            return key
        if key not in self.known:
            raise RowError(f"{name} = {key!r} is not among the items")
        return self.known[key]

    def batch(self, table: Any) -> Rows:
        """The same for an Arrow table, all rows at once."""
        n_rows = table.num_rows
        good = np.ones(n_rows, bool)
        points = np.empty((n_rows, len(self.vectors), self.n_features))
        for i, columns in enumerate(self.vectors):
            if self.lists:
                points[:, i] = _lists(table[columns[0]], self.n_features)
            else:
                for j, name in enumerate(columns):
                    points[:, i, j] = _numbers(table[name], name)
        if points.size:
            good &= ~(np.abs(points).reshape(n_rows, -1).max(axis=1) > LARGEST)
            good &= ~np.isnan(points.reshape(n_rows, -1)).any(axis=1)
        keys = np.empty((n_rows, len(self.keys)), object if self.known is None else np.int64)
        for i, name in enumerate(self.keys):
            keys[:, i] = _mapped(table[name], self._key_or_none, keys.dtype)
            good &= keys[:, i] != (None if self.known is None else -1)
        y = np.zeros(n_rows)
        if self.label:
            y = _mapped(table[self.label], _label_or_zero, y.dtype)
            good &= y != 0.0
        if good.all():
            return Rows(points, keys, y, good)
        return Rows(points[good], keys[good], y[good], good)

    def _key_or_none(self, value: object) -> str | int | None:
        key = key_of(value)
        if self.known is None:
            return key
        return self.known.get(key, -1) if key is not None else -1


def label_of(value: object) -> float:
    """+1.0 (alike) or -1.0 (not alike), from any of the usual ways to write it."""
    text = str(value).strip().lower()
    if text in ALIKE:
        return 1.0
    if text in OTHER:
        return -1.0
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if number == 1.0:
        return 1.0
    if number in (-1.0, 0.0):
        return -1.0
    raise RowError("the label is empty" if not text else f"label {_short(value)}; {LABELS}")


def _label_or_zero(value: object) -> float:
    try:
        return label_of(value)
    except RowError:
        return 0.0


def key_of(value: object) -> str | None:
    """An id as text, whatever the file keeps it as."""
    if isinstance(value, bytes | bytearray | float | bool | list | dict) or value is None:
        return None
    return str(value).strip() or None


def list_of(value: object, name: str) -> Sequence[object]:
    """A list, also one written as text: JSON, or numbers between blanks, commas or semicolons."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if "[" in value else SEPARATORS.split(value.strip(" ,;"))
        except ValueError:
            raise RowError(f"{name} is not a list of numbers: {_short(value)}") from None
    if not isinstance(value, list | tuple):
        raise RowError(f"{name} is not a list of numbers: {_short(value)}")
    return value


def _number(value: Any, name: str) -> float:
    if value is None or value == "":
        raise RowError(f"{name} is empty")
    try:
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            raise ValueError  # which Python's float would take
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise RowError(f"{name} is not a number: {_short(value)}") from None
    if not math.isfinite(number):
        raise RowError(f"{name} is {'NaN' if math.isnan(number) else 'infinite'}")
    if abs(number) > LARGEST:
        raise RowError(f"{name} is {number:g}, too large to square")
    return number


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _numbers(column: Any, name: str) -> Floats:
    """A column of numbers; missing ones are NaN."""
    import pyarrow as pa

    kind = column.type
    if not pa.types.is_float64(kind):
        countable = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if not (countable or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)):
            raise ValueError(f"column {name} has type {kind}; it must be numbers")
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        column = column.cast(pa.float64(), safe=False)
    found: Floats = column.to_numpy(zero_copy_only=False)
    return found


def _lists(column: Any, n_features: int) -> Floats:
    """A column of lists; one of another length, or missing, is NaN throughout."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    fits = lengths == n_features  # a missing list has the length NaN
    found = np.full((len(fits), n_features), np.nan)
    values = column if fits.all() else column.filter(fits)
    flat = pc.list_flatten(values)
    if flat.type == "null":
        return found
    found[fits] = _numbers(flat, "of lists").reshape(-1, n_features)
    return found


def _mapped(column: Any, function: Callable[[Any], object], dtype: DTypeLike) -> NDArray[Any]:
    """A function of each entry, computed once for each different one."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    # The entry after the last stands for what is missing.
    known = [function(each) for each in [*column.dictionary.to_pylist(), None]]
    table: NDArray[Any] = np.empty(len(known), dtype)
    table[:] = known
    codes = column.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
    found: NDArray[Any] = table[codes]
    return found
