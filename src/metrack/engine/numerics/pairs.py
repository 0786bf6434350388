"""Pairs as the engine takes them: differences u = x - z, dense or sparse."""

from typing import Any, NamedTuple

import numpy as np

from metrack.engine.numerics.kernels import Floats, Ints, combine, copy, dot, fill, inner, kernel

HEAVIEST = 1e6  # weight of a pair
UNIT = 2.0  # mean |u|^2 where units are automatic: a pair's weight beside the threshold's
SMALLEST = 1e-200  # a squared length below this has lost its digits


class Pairs(NamedTuple):
    """Differences u = x - z of a batch as rows of a CSR matrix, and labels.

    Dense rows share one ``where`` of all features. A label's sign says whether a pair is alike, its
    size is the pair's weight, by which learning rates are multiplied; 0 asks for nothing.
    """

    u: Floats
    where: Ints
    starts: Ints  # empty where rows are dense
    y: Floats

    def part(self, start: int, stop: int) -> "Pairs":
        """Some of the pairs, one after another."""
        y = self.y[start:stop]
        if self.starts.size == 0:
            n = self.where.size
            return self._replace(u=self.u[start * n : stop * n], y=y)
        first, last = self.starts[start], self.starts[stop]
        starts = self.starts[start : stop + 1] - first
        return Pairs(self.u[first:last], self.where[first:last], starts, y)


class PointPairs(NamedTuple):
    """Pairs by both of their points, and by the differences; all have the same labels."""

    x: Pairs
    z: Pairs
    u: Pairs

    def part(self, start: int, stop: int) -> "PointPairs":
        """Some of the pairs, one after another."""
        return PointPairs(*(rows.part(start, stop) for rows in self))


def turned(pairs: Pairs, matrix: Floats) -> Pairs:
    """Pairs whose differences are u times a matrix; each the same in batches of any sizes."""
    width = matrix.shape[1]
    found = Pairs(np.empty(len(pairs.y) * width), np.arange(width), np.empty(0, np.int64), pairs.y)
    _turn(pairs, matrix, found.u)
    return found


@kernel
def _turn(pairs: Pairs, matrix: Floats, found: Floats) -> None:
    width = matrix.shape[1]
    for row in range(pairs.y.size):
        times(pairs, row, matrix, found[row * width : (row + 1) * width])


@inner
def span_of(rows: Any, row: int) -> tuple[int, int]:
    """Where the numbers of a row, of pairs or of a chunk, start and end."""
    if rows.starts.size > 0:
        return rows.starts[row], rows.starts[row + 1]
    return row * rows.where.size, (row + 1) * rows.where.size


@inner
def times(rows: Any, row: int, matrix: Floats, found: Floats) -> None:
    """A row, of pairs or of a chunk, times a matrix; where it is sparse, by its non-zeros."""
    start, stop = span_of(rows, row)
    where = rows.where[start:stop] if rows.starts.size > 0 else rows.where
    combine(found, rows.u[start:stop], matrix, where, stop - start, found.size)


class Chunk(NamedTuple):
    """Pairs in the units in which they are learned, with their squared lengths.

    On a basis, see `ensemble.basis`, u are coordinates, and the whole pairs are longer.
    """

    u: Floats
    where: Ints
    starts: Ints  # empty where rows are dense
    y: Floats
    norm2: Floats
    whole: Floats  # |u|^2 of the whole pairs; empty where u is all there is
    seen: int  # pairs before the first


class Difference(NamedTuple):
    """u = x - z of the pair at hand."""

    values: Floats  # at the features ``where``
    where: Ints
    full: Floats  # as a dense vector
    norm2: float  # |u|^2


@inner
def sign(y: float) -> float:
    """What a label says, without its weight."""
    return 1.0 if y > 0.0 else -1.0


@inner
def difference(chunk: Chunk, row: int, full: Floats) -> Difference:
    """A row of a chunk. Where rows are sparse, ``full`` is 0, or still holds the row before.

    Where ``full`` is shorter than a dense row, its first features are taken.
    """
    if chunk.starts.size == 0:
        n, width = full.size, chunk.where.size
        u = chunk.u[row * width : row * width + n]
        norm2 = chunk.norm2[row] if n == width else dot(u, u, n)
        return Difference(u, chunk.where[:n], u, norm2)
    if row > 0:
        for i in range(chunk.starts[row - 1], chunk.starts[row]):
            full[chunk.where[i]] = 0.0
    start, stop = chunk.starts[row], chunk.starts[row + 1]
    for i in range(start, stop):
        full[chunk.where[i]] = chunk.u[i]
    return Difference(chunk.u[start:stop], chunk.where[start:stop], full, chunk.norm2[row])


@inner
def dense_row(chunk: Chunk, row: int, found: Any) -> None:
    """A row of a chunk as a dense vector; where that is shorter, its first features are taken."""
    n, width = found.size, chunk.where.size
    if chunk.starts.size == 0:
        copy(found, chunk.u[row * width : row * width + n], n)
        return
    fill(found, 0.0, n)
    for i in range(chunk.starts[row], chunk.starts[row + 1]):
        found[chunk.where[i]] = chunk.u[i]


@inner
def rest(whole: Floats, at: int, norm2: float) -> float:
    """What a pair's squared length is beyond the features at hand; see `Chunk`."""
    return max(whole[at] - norm2, 0.0) if whole.size > 0 else 0.0


@inner
def row_times(row: Floats, u: Difference) -> float:
    """Inner product of a row with u; where u is sparse, its non-zeros are gathered."""
    if u.where.size == u.full.size:
        return dot(row, u.full, u.full.size)
    total = 0.0
    for i in range(u.where.size):
        total += row[u.where[i]] * u.values[i]
    return total


@inner
def form(matrix: Floats, u: Difference) -> float:
    """The quadratic form u'Mu."""
    total = 0.0
    for i in range(u.where.size):
        total += u.values[i] * row_times(matrix[u.where[i]], u)
    return total
