"""Pairs and triplets as users give them, and as the engine takes them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.pairs import Pairs, PointPairs
from metrack.estimators.differences import Differences
from metrack.estimators.inputs.arrays import as_numbers, check_finite, check_width, is_text
from metrack.estimators.inputs.points import Lookup, Points, PointsLike, look_up

CHUNK = 4096  # pairs whose differences are held at a time
# Pairs or triplets of points, or of row numbers or ids; pairs also by their differences.
TuplesLike: TypeAlias = ArrayLike | Differences


class TupleBatch:
    """A checked batch of pairs or triplets: arrays of points, or indices into one.

    Parameters
    ----------
    tuples : array (n_tuples, size, n_features), or row numbers or ids (n_tuples, size)
        The latter with a preprocessor. Pairs may be `Differences`.
    preprocessor : None, points, or callable
        As `check_preprocessor` returns it.
    n_features : int or None
        What the learner has seen before.
    """

    name: ClassVar[str]
    size: ClassVar[int]

    def __init__(
        self, tuples: PointsLike | Differences, preprocessor: Lookup, n_features: int | None
    ) -> None:
        name, size = self.name, self.size
        self.names: Sequence[str] | None = None  # of features, where differences have them
        if isinstance(tuples, Differences) and size == 2:
            self.names, tuples = tuples.names, tuples.as_points()
        array = as_numbers(tuples, name, id_dimensions=2)
        are_ids = preprocessor is not None or is_text(array)
        if are_ids and array.ndim == 2 and array.shape[1:] == (size,):
            self.rows: Ints | None
            self.points, self.rows = look_up(array, preprocessor, name)
            width = self.points.shape[1]
        else:
            _check_tuples_shape(array, name, size)
            self.rows = None
            self.points = np.ascontiguousarray(array, dtype=np.float64)
            width = self.points.shape[2]
            check_finite(
                self.points, lambda i: f"{name}[{i // (size * width)}, {i // width % size}]"
            )
        check_width(width, name, n_features)
        self.n_features = width
        # Told how many were taken, range by range.
        self.reports: Callable[[int], None] | None = None

    def __len__(self) -> int:
        return len(self.points if self.rows is None else self.rows)

    def member(self, i: int, start: int, stop: int) -> Points:
        """Rows: the i-th point of each tuple in a range."""
        if self.rows is None:
            points: Points = self.points[start:stop, i]
        else:
            points = self.points[self.rows[start:stop, i]]
        return points

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The batch in pieces that the engine takes."""
        for start in range(0, len(self), CHUNK):
            if self.reports is not None:
                self.reports(start)
            yield start, min(start + CHUNK, len(self))


class PairBatch(TupleBatch):
    """Pairs (x, z)."""

    name, size = "pairs", 2

    def differences(self, start: int, stop: int) -> Points:
        """Rows x - z of a range of pairs."""
        return self.member(0, start, stop) - self.member(1, start, stop)

    def pieces(self) -> Iterator[Points]:
        """Differences, piece by piece."""
        for start, stop in self.ranges():
            yield self.differences(start, stop)

    def chunks(self, y: Floats) -> Iterator[Pairs]:
        """Differences and labels, piece by piece."""
        for start, stop in self.ranges():
            yield _rows(self.differences(start, stop), y[start:stop])

    def point_chunks(self, y: Floats) -> Iterator[PointPairs]:
        """Both points, differences and labels, piece by piece."""
        for start, stop in self.ranges():
            x, z, labels = self.member(0, start, stop), self.member(1, start, stop), y[start:stop]
            yield PointPairs(*(_rows(points, labels) for points in (x, z, x - z)))


class TripletBatch(TupleBatch):
    """Triplets (anchor, positive, negative)."""

    name, size = "triplets", 3

    def gaps(self, start: int, stop: int) -> Points:
        """Rows positive - negative of a range of triplets."""
        return self.member(1, start, stop) - self.member(2, start, stop)

    def chunks(self) -> Iterator[tuple[Pairs, Pairs]]:
        """Anchors and gaps, piece by piece."""
        for start, stop in self.ranges():
            ones = np.ones(stop - start)
            yield _rows(self.member(0, start, stop), ones), _rows(self.gaps(start, stop), ones)


def _rows(points: Any, y: Floats) -> Pairs:
    """Points as the engine takes them."""
    if sp.issparse(points):
        csr: Any = points
        where, starts = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
        return Pairs(csr.data, where, starts, y)
    return Pairs(np.ravel(points), np.arange(points.shape[1]), np.empty(0, np.int64), y)


def _check_tuples_shape(array: Any, name: str, size: int) -> None:
    if array.ndim == 3 and array.shape[1] == size and len(array) > 0:
        return
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); pass at least one {name[:-1]}")
    hint = ""
    if array.ndim == 2:
        hint = f"; for {name} of row numbers, pass the points they refer to as preprocessor"
    raise ValueError(
        f"{name} must have shape (n_{name}, {size}, n_features), got {array.shape}{hint}"
    )
