"""What a record may hold, declared at its fields, and checked before compiled code sees it.

Compiled code checks no index. So what comes from outside, a saved state, is held against what the
fields declare:

    class DenseFactor(NamedTuple):
        factor: Annotated[Floats, floats("J", "n", "n")]
        mu: Annotated[Floats, floats("J", least=1.0, most=LARGEST)]

Numbers that compiled code changes in place are a structured array of one entry, whose fields are
declared by a `Structure`.

A size is a number or a symbol. n is the number of features and ``triangle`` n (n + 1) / 2; any
other symbol, such as J for learners, is as large as in the first array that has it, and must be the
same in all others.
"""

import math
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np

TINY = math.ulp(0.0)  # the least number above 0
LARGEST_FLOAT = float(np.finfo(np.float64).max)
MOST = 1 << 53  # of a counter: one a microsecond for 285 years, and below what overflows
Sizes = dict[str, int]


class Array(NamedTuple):
    """An array of such a shape, with numbers in a closed range; finite ones in any case."""

    shape: tuple[str | int, ...]
    least: float
    most: float
    dtype: type

    def checked(self, value: Any, name: str, sizes: Sizes) -> Any:
        """The array, if it is such a one."""
        if not (isinstance(value, np.ndarray) and value.dtype == self.dtype):
            kind = getattr(value, "dtype", type(value).__name__)
            raise ValueError(f"{name} is {kind}, expected {np.dtype(self.dtype)}")
        if value.ndim != len(self.shape):
            raise ValueError(f"{name} has {value.ndim} dimensions, expected {len(self.shape)}")
        expected = tuple(
            size if isinstance(size, int) else sizes.setdefault(size, found)
            for size, found in zip(self.shape, value.shape, strict=True)
        )
        if value.shape != expected:
            raise ValueError(f"{name} has shape {value.shape}, expected {expected}")
        # Written so that NaN is refused.
        if value.size and not (self.least <= value.min() and value.max() <= self.most):
            raise ValueError(
                f"{name} holds numbers from {value.min():g} to {value.max():g}; they must be "
                f"between {self.least:g} and {self.most:g}"
            )
        return value


def floats(*shape: str | int, least: float = -LARGEST_FLOAT, most: float = LARGEST_FLOAT) -> Array:
    """An array of floats; see `Array`."""
    return Array(shape, least, most, np.float64)


def counts(*shape: str | int, least: int = 0, most: int = MOST) -> Array:
    """An array of whole numbers; see `Array`."""
    return Array(shape, least, most, np.int64)


class Number(NamedTuple):
    """A number in a closed range, whole or not."""

    least: float = 0.0
    most: float = LARGEST_FLOAT
    whole: bool = False

    def plain(self, value: Any) -> Any:
        """For JSON."""
        return int(value) if self.whole else float(value)

    def checked(self, value: Any, name: str, sizes: Sizes) -> Any:
        """The number, if it is such a one."""
        kinds = (int,) if self.whole else (int, float)
        if type(value) not in kinds or not self.least <= value <= self.most:
            what = "a whole number" if self.whole else "a number"
            raise ValueError(
                f"{name} is {value!r}; it must be {what} between {self.least:g} and {self.most:g}"
            )
        return value if self.whole else float(value)


class Plain(NamedTuple):
    """A value of one type, which JSON knows."""

    kind: type
    what: str

    def plain(self, value: Any) -> Any:
        """For JSON."""
        return self.kind(value)

    def checked(self, value: Any, name: str, sizes: Sizes) -> Any:
        """The value, if it is of that type."""
        if not isinstance(value, self.kind):
            raise ValueError(f"{name} is {value!r}; it must be {self.what}")
        return value


Flag = partial(Plain, bool, "true or false")
Text = partial(Plain, str, "a text")


class Structure:
    """A structured array of one entry, by what each of its fields, one number, may hold."""

    def __init__(self, **fields: Array) -> None:
        self.fields = fields
        self.dtype = np.dtype([(name, holds.dtype) for name, holds in fields.items()])

    def __call__(self, **values: Any) -> Any:
        """The array with these numbers, and 0 in all other fields."""
        array = np.zeros(1, self.dtype)
        for name, value in values.items():
            array[name] = value
        return array


def is_of(kind: Any, record: Any) -> bool:
    """Whether a record is one of a kind: of a NamedTuple class, or of a structure."""
    if isinstance(kind, Structure):
        return isinstance(record, np.ndarray) and record.dtype == kind.dtype
    return type(record) is kind


def field_of(record: Any, name: str) -> Any:
    """A field of a record."""
    return record[name] if isinstance(record, np.ndarray) else getattr(record, name)


def declared(kind: Any) -> Mapping[str, Any]:
    """What each field of a record may hold."""
    fields: Mapping[str, Any] = kind.fields if isinstance(kind, Structure) else _annotated(kind)
    return fields


@cache  # states are read and written a thousand times a second, and hints take long
def _annotated(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    found = {field: get_args(hints[field])[1:] for field in kind._fields}
    if not all(found.values()):
        raise TypeError(f"{kind.__name__} does not declare what its fields may hold")
    return {field: holds[0] for field, holds in found.items()}


def check_shapes(found: Any, expected: Any, name: str) -> None:
    """Refuse a record whose arrays are not shaped as those of another one."""
    for own, like, field in zip(found, expected, found._fields, strict=True):
        if own.shape != like.shape:
            raise ValueError(f"{name}.{field} is {own.shape}, expected {like.shape}")
