"""Numbers, dates, embeddings and what is the same or not, compared."""

import math
import re
from datetime import date, datetime
from typing import Any, ClassVar

import numpy as np

from metrack.compare.columns import Column
from metrack.compare.tokens import plain
from metrack.engine.numerics.kernels import Floats, Ints

NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|[+-]?\.\d+", re.IGNORECASE)
COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d{1,2}")  # 1.299,00
DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d %B %Y", "%B %d, %Y")
CENTURY = 36_525.0  # days


def number_of(value: Any) -> float:
    """A number, also where it is text, with a currency or thousands; else NaN."""
    if isinstance(value, str):
        text = value.strip().strip("$€£¥ \u00a0")
        if COMMA.fullmatch(text):
            text = text.replace(".", "").replace(",", ".")
        return float(text.replace(",", "")) if NUMBER.fullmatch(text) else math.nan
    try:
        found = float(value)
    except (TypeError, ValueError):
        return math.nan
    return found if math.isfinite(found) else math.nan


def day_of(value: Any) -> float:
    """The day of a date, also where it is text; else NaN."""
    if isinstance(value, date):
        return float(value.toordinal())
    if not isinstance(value, str):
        return math.nan
    try:
        return float(datetime.fromisoformat(value.strip()).toordinal())
    except ValueError:
        pass
    for form in DATES:
        try:
            return float(datetime.strptime(value.strip(), form).toordinal())
        except ValueError:
            continue
    return math.nan


class Measured:
    """Values that are numbers, or days: how far apart, and whether they are others at all."""

    comparisons: ClassVar[list[str]] = ["difference", "other", "missing"]

    def start(self, column: Column) -> None:
        """Nothing is learned from values."""

    def learn(self, column: Column) -> None:
        """Nothing is learned from values."""

    def prepare(self, column: Column) -> Floats:
        """The numbers, NaN where there is none."""
        return np.array(
            [math.nan if each is None else self.read(each) for each in column], np.float64
        )

    def compare(self, first: Floats, second: Floats, rows: Ints) -> list[Floats]:
        """Of each pair of rows, one comparison after another."""
        x, z = first[rows[:, 0]], second[rows[:, 1]]
        missing = np.isnan(x) | np.isnan(z)
        gap = np.where(missing, 0.0, np.abs(x - z))
        return [self.apart(gap, x, z), (gap > 0.0).astype(np.float64), missing.astype(np.float64)]

    def read(self, value: Any) -> float:
        """A value as a number, NaN where it is none."""
        raise NotImplementedError

    def apart(self, gap: Floats, x: Floats, z: Floats) -> Floats:
        """From 0 to 1, how far apart."""
        raise NotImplementedError


class Number(Measured):
    """Numbers: their difference over the larger one."""

    def read(self, value: Any) -> float:
        """A number, also where it is text."""
        return number_of(value)

    def apart(self, gap: Floats, x: Floats, z: Floats) -> Floats:
        """0 for the same, .5 for half as much, 1 for other signs."""
        largest = np.fmax(np.abs(x), np.abs(z))
        return np.minimum(gap / np.where(largest > 0.0, largest, 1.0), 1.0)


class Date(Measured):
    """Dates: the days between them, by their logarithm."""

    def read(self, value: Any) -> float:
        """The day of a date, also where it is text."""
        return day_of(value)

    def apart(self, gap: Floats, x: Floats, z: Floats) -> Floats:
        """A day is 0.07, a month 0.33, a year 0.56, a century 1."""
        found: Floats = np.minimum(np.log1p(gap) / math.log1p(CENTURY), 1.0)
        return found


class Exact:
    """Values that are the same, but for capitals, or others."""

    comparisons: ClassVar[list[str]] = ["other", "missing"]

    def start(self, column: Column) -> None:
        """Nothing is learned from values."""

    def learn(self, column: Column) -> None:
        """Nothing is learned from values."""

    def prepare(self, column: Column) -> Any:
        """The values as texts; the empty one where it is missing."""
        return np.array(["" if each is None else plain(each).strip() for each in column], object)

    def compare(self, first: Any, second: Any, rows: Ints) -> list[Floats]:
        """Of each pair of rows, one comparison after another."""
        x, z = first[rows[:, 0]], second[rows[:, 1]]
        missing = (x == "") | (z == "")
        return [(~missing & (x != z)).astype(np.float64), missing.astype(np.float64)]


class Short(Exact):
    """Names and other short texts, by edits; needs rapidfuzz."""

    comparisons: ClassVar[list[str]] = ["edits", "beginning", "missing"]

    def compare(self, first: Any, second: Any, rows: Ints) -> list[Floats]:
        """Of each pair of rows, one comparison after another."""
        process, edits, beginning = _rapidfuzz()
        x, z = first[rows[:, 0]].tolist(), second[rows[:, 1]].tolist()
        missing = np.array([not (a and b) for a, b in zip(x, z, strict=True)], bool)
        found = [
            np.where(missing, 0.0, process.cpdist(x, z, scorer=scorer, dtype=np.float64))
            for scorer in (edits, beginning)
        ]
        return [*found, missing.astype(np.float64)]


def _rapidfuzz() -> Any:
    try:
        from rapidfuzz import process
        from rapidfuzz.distance import Indel, JaroWinkler
    except ImportError as error:
        raise ImportError(
            "fields of the kind 'short' are compared by rapidfuzz: pip install 'metrack[records]', "
            "or call them 'text'"
        ) from error
    return process, Indel.normalized_distance, JaroWinkler.normalized_distance


class Vector:
    """Embeddings: 1 less their cosine."""

    comparisons: ClassVar[list[str]] = ["angle", "missing"]

    def __init__(self) -> None:
        self.width = 0  # until the first is seen

    def start(self, column: Column) -> None:
        """Settle how many numbers they have."""
        self.width = next((len(each) for each in column if each is not None), 0)

    def learn(self, column: Column) -> None:
        """Nothing is learned from values."""

    def prepare(self, column: Column) -> Floats:
        """Each of length 1; 0 where it is missing."""
        found = np.zeros((len(column), self.width))
        for i, each in enumerate(column):
            if each is not None:
                if len(each) != self.width:
                    raise ValueError(
                        f"an embedding has {len(each)} numbers, and others {self.width}"
                    )
                found[i] = each
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return found / np.where(lengths > 0.0, lengths, 1.0)

    def compare(self, first: Floats, second: Floats, rows: Ints) -> list[Floats]:
        """Of each pair of rows, one comparison after another."""
        x, z = first[rows[:, 0]], second[rows[:, 1]]
        missing = ~(x.any(axis=1) & z.any(axis=1))
        apart = np.clip(1.0 - np.sum(x * z, axis=1), 0.0, 1.0)
        known = (~missing).astype(np.float64)
        return [known * apart, 1.0 - known]
