"""Large-margin neighbours: the objective and its slope, without a list of all triplets.

A point i wants its targets j nearer than every point l of another class, by a margin of 1; each l
with d_il < 1 + d_ij, squared distances all, is an impostor and costs the difference. The targets'
limits 1 + d_ij are sorted, so that a single look-up tells for how many of them l is an impostor,
and what that costs: the work is that of the near pairs (i, l), whatever the number of targets.

Points are in the order of their classes. Near pairs are kept with some room to spare, and found
anew only once points have moved so far that one might be missing (as molecular dynamics keeps its
neighbours: Verlet's list); so every value is exact. Where there are too many to keep, they are
found block by block at every step. No more than a block of distances is ever held.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrack.engine.numerics.kernels import Floats, Ints, inner, kernel, reduction, square_distance

Places = NDArray[np.int32]

BLOCK = 2_000_000  # distances held at a time to find targets
TILE = 256, 1024  # and to find near pairs
MOST = 20_000_000  # near pairs kept
ROOM = 0.2  # pairs are kept up to this share above a squared distance that matters


class Targets(NamedTuple):
    """The targets of each point, the first ``n`` of a row, and what was measured of them last."""

    given: Ints
    n: Ints
    order: Ints  # by distance
    limits: Floats  # 1 + d_ij of each in that order
    sums: Floats  # of the limits from each on
    hits: Ints  # points that are impostors for all from each on
    reach: Floats  # the farthest limit of each point


class Impostors:
    """The objective of large-margin neighbours, as a function of L.

    The sum over points i and their targets j of ``pull`` d_ij, and of ``1 - pull`` times the sum of
    1 + d_ij - d_il over impostors l. X are points in the order of their classes, of which each ends
    at one of ``ends``; each point has its first ``n_targets`` of a row of ``targets``.
    """

    def __init__(
        self, X: Floats, ends: Ints, targets: Ints, n_targets: Ints, pull: float, most: int = MOST
    ) -> None:
        self.X, self.ends, self.pull, self.most = X, ends, pull, most
        self.targets, self.n_targets = targets, n_targets
        n_points, k = targets.shape
        order, hits = np.empty((2, n_points, k), np.int64)
        limits, sums = np.empty((n_points, k)), np.empty((n_points, k + 1))
        reach = np.empty(n_points)
        self.measured = Targets(targets, n_targets, order, limits, sums, hits, reach)
        self.pairs: Places | None = None
        self.share = ROOM
        self.n_near = 0  # near pairs when last they were too many to keep
        self.n_searches = 0  # how often near pairs had to be found
        self.n_active = 0  # near pairs with an impostor, at the last value

    def __call__(self, L: Floats) -> tuple[float, Floats]:
        """The objective at L, and its slope there."""
        Z = self.X @ L.T
        slopes = np.zeros_like(Z)
        self.measured.hits[:] = 0
        pulled = measure_targets(Z, self.measured)
        pushed, self.n_active = 0.0, 0
        weight = 1.0 - self.pull
        for pairs in self._near(Z):
            cost, n = push(Z, pairs, self.measured, slopes, weight)
            pushed += cost
            self.n_active += n
        attract(Z, self.measured, slopes, self.pull, weight)
        return self.pull * pulled + weight * pushed, 2.0 * (slopes.T @ self.X)

    def _near(self, Z: Floats) -> Iterator[Places]:
        """Near pairs of different classes, none missing that matters."""
        if self.pairs is None or self._may_miss(Z):
            self.n_searches += 1
            self.pairs = self._keep(Z) if self.n_near < self.most // 4 else None
        if self.pairs is not None:
            yield self.pairs
            return
        self.n_near = 0
        for pairs in self._search(Z, (1.0 + 1e-9) * self.measured.reach):
            self.n_near += len(pairs)
            yield pairs

    def _keep(self, Z: Floats) -> Places | None:
        """Near pairs with room to spare, unless they are too many."""
        found, n = [np.empty((0, 2), np.int32)], 0
        reach = (1.0 + self.share) * self.measured.reach
        for pairs in self._search(Z, reach):
            n += len(pairs)
            if n > self.most:
                self.share /= 4.0
                return None
            found.append(pairs)
        self.Z, self.room = Z, np.sqrt(reach)
        return np.concatenate(found)

    def _may_miss(self, Z: Floats) -> bool:
        """Whether a pair that was not near may be near now, by the triangle inequality."""
        moved = np.sqrt(np.einsum("ij,ij->i", Z - self.Z, Z - self.Z))
        now = np.sqrt(self.measured.reach) + moved + moved.max()
        return bool((now > self.room)[self.n_targets > 0].any())

    def _search(self, Z: Floats, reach: Floats) -> Iterator[Places]:
        """Pairs of different classes within the reach of one of the two, tile by tile."""
        squares, ones = np.einsum("ij,ij->i", Z, Z), np.ones(len(Z))
        left = np.column_stack([-2.0 * Z, squares, ones])  # their products are the distances
        right = np.column_stack([Z, ones, squares])
        height, width = TILE
        room = np.empty((height * width, 2), np.int32)
        start = 0
        for end in self.ends[:-1]:
            for i in range(start, end, height):
                rows = slice(i, min(i + height, end))
                for j in range(end, len(Z), width):
                    columns = slice(j, j + width)
                    distances = left[rows] @ right[columns].T
                    n = list_near(distances, reach[rows], reach[columns], i, j, room)
                    if n > 0:
                        yield room[:n].copy()
            start = end


def nearest_of_class(X: Floats, ends: Ints, n_neighbors: int) -> tuple[Ints, Ints]:
    """Targets: the nearest points of the same class, and how many there are of them."""
    targets = np.zeros((len(X), n_neighbors), np.int64)
    n_targets = np.zeros(len(X), np.int64)
    start = 0
    for end in ends:
        of_class = X[start:end]
        squares = np.einsum("ij,ij->i", of_class, of_class)
        k, height = min(n_neighbors, end - start - 1), max(1, BLOCK // (end - start))
        n_targets[start:end] = k
        for first in range(start, end if k > 0 else start, height):
            rows = np.arange(first, min(first + height, end))
            distances = squares - 2.0 * (X[rows] @ of_class.T)
            distances[rows - first, rows - start] = np.inf
            nearest = np.argpartition(distances, k - 1, axis=1)[:, :k]
            targets[rows, :k] = start + np.sort(nearest, axis=1)
        start = end
    return targets, n_targets


@kernel
def list_near(
    distances: Floats, reach: Floats, others: Floats, first: int, second: int, pairs: Places
) -> int:
    """List pairs within the reach of one of the two, given the tile's first row and column.

    Returns how many there are.
    """
    n = 0
    for i in range(distances.shape[0]):
        row, mine = distances[i], reach[i]
        for j in range(row.size):
            if row[j] < max(mine, others[j]):
                pairs[n, 0], pairs[n, 1] = first + i, second + j
                n += 1
    return n


@kernel
def measure_targets(Z: Floats, targets: Targets) -> float:
    """Sort targets by distance; returns the sum of all."""
    order, limits, sums = targets.order, targets.limits, targets.sums
    total = 0.0
    for i in range(Z.shape[0]):
        k = targets.n[i]
        for p in range(k):
            j = targets.given[i, p]
            d = square_distance(Z[i], Z[j], Z.shape[1])
            total += d
            q = p
            while q > 0 and limits[i, q - 1] > 1.0 + d:
                limits[i, q], order[i, q] = limits[i, q - 1], order[i, q - 1]
                q -= 1
            limits[i, q], order[i, q] = 1.0 + d, j
        sums[i, k] = 0.0
        for p in range(k - 1, -1, -1):
            sums[i, p] = sums[i, p + 1] + limits[i, p]
        targets.reach[i] = limits[i, k - 1] if k > 0 else 0.0
    return total


@kernel
def push(
    Z: Floats, pairs: Places, targets: Targets, slopes: Floats, weight: float
) -> tuple[float, int]:
    """What the impostors among near pairs cost, and how many pairs have one.

    They are counted in ``hits``; ``slopes`` gets their part of the slope.
    """
    cost, n_active = 0.0, 0
    for e in range(pairs.shape[0]):
        a, b = pairs[e, 0], pairs[e, 1]
        d = square_distance(Z[a], Z[b], Z.shape[1])
        n_triplets = 0
        for i in (a, b):
            if d < targets.reach[i]:
                p = rank(targets.limits[i], d)
                n_above = targets.n[i] - p
                targets.hits[i, p] += 1
                cost += targets.sums[i, p] - n_above * d
                n_triplets += n_above
        if n_triplets > 0:
            n_active += 1
            add_difference(slopes[a], slopes[b], -weight * n_triplets, Z[a], Z[b], Z.shape[1])
    return cost, n_active


@kernel
def attract(Z: Floats, targets: Targets, slopes: Floats, pull: float, weight: float) -> None:
    """Add the targets' part of the slope: what pulls them always, and for each impostor."""
    for i in range(Z.shape[0]):
        n_impostors = 0
        for p in range(targets.n[i]):
            j = targets.order[i, p]
            n_impostors += targets.hits[i, p]
            factor = pull + weight * n_impostors
            add_difference(slopes[i], slopes[j], factor, Z[i], Z[j], Z.shape[1])


@inner
def rank(limits: Floats, d: float) -> int:
    """How many limits, which are sorted, a distance is not below; it is below the last."""
    p = 0
    while limits[p] <= d:
        p += 1
    return p


@reduction
def add_difference(
    first: Floats, second: Floats, factor: float, a: Floats, b: Floats, n: int
) -> None:
    """Add a multiple of a - b to one vector, and take it from another."""
    for i in range(n):
        u = factor * (a[i] - b[i])
        first[i] += u
        second[i] -= u
