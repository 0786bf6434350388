"""Kinds of fields by name, and which one a field is of."""

import math
import re
from collections.abc import Callable
from typing import Any, Protocol

from metrack.compare.columns import Column
from metrack.compare.texts import Text
from metrack.compare.values import (
    Date,
    Exact,
    Number,
    Short,
    Vector,
    day_of,
    number_of,
)
from metrack.engine.numerics.kernels import Floats, Ints

NEARLY_ALL = 0.95  # of the values that are there
NAME_OF_A_THING = re.compile(r"0\d+|\d{7,}")  # post codes, telephones, EAN: digits, no quantities


class Kind(Protocol):
    """How values of a field compare."""

    @property
    def comparisons(self) -> list[str]:
        """Their names."""

    def start(self, column: Column) -> None:
        """Settle by a first column what is compared, and learn it."""

    def learn(self, column: Column) -> None:
        """Let a column count in what is known of all."""

    def prepare(self, column: Column) -> Any:
        """A column as it is compared, taken apart once."""

    def compare(self, first: Any, second: Any, rows: Ints) -> list[Floats]:
        """Of each pair of rows, one comparison after another, from 0 to 1."""


KINDS: dict[str, Callable[[], Any]] = {
    "text": Text,
    "short": Short,
    "number": Number,
    "date": Date,
    "exact": Exact,
    "vector": Vector,
}


def kind_of(column: Column) -> str:
    """Which kind the values that are there seem to be of."""
    values = [each for each in column if each is not None]
    if _are(values, lambda each: isinstance(each, bool)):
        return "exact"
    if _are(values, lambda each: not isinstance(each, str) and hasattr(each, "__len__")):
        return "vector"
    names = [each for each in values if NAME_OF_A_THING.fullmatch(str(each).strip())]
    if len(names) <= (1.0 - NEARLY_ALL) * len(values):
        if _are(values, lambda each: not math.isnan(number_of(each))):
            return "number"
        if _are(values, lambda each: not math.isnan(day_of(each))):
            return "date"
    return "text"


def _are(values: list[Any], test: Callable[[Any], bool]) -> bool:
    """Whether nearly all are so, and there are some; stops where too many are not."""
    others, most = 0, (1.0 - NEARLY_ALL) * len(values)
    for value in values:
        others += not test(value)
        if others > most:
            return False
    return bool(values)
