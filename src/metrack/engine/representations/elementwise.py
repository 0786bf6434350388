"""Elementwise L1 without the cone: a symmetric M, entry by entry, made positive when it is read.

A step moves the entries on supp(u) x supp(u) and soft-thresholds all of them. Soft thresholds add
up, so those of the entries that a pair leaves alone can wait: a learner counts the cumulative
threshold T so far, and an entry m is kept as its lazy value m + sign(m) T. That value, soft
thresholded by T, is the entry now, to the last digit; where nothing is left it is 0 and stays so.

While learning, M is any symmetric matrix. The positive ones lie among them, so the regret against
every metric keeps its bound; what is read is the metric nearest to M.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from metrack.engine.numerics.divergences import FROBENIUS, LARGEST
from metrack.engine.numerics.factored import ROUNDING, Factored
from metrack.engine.numerics.kernels import Floats, copy, inner, routine
from metrack.engine.numerics.pairs import Difference
from metrack.engine.numerics.records import floats
from metrack.engine.representations.protocol import (
    Entries,
    Geometry,
    NoScratch,
    Representation,
    Source,
    Step,
    register,
)

# A cumulative threshold beyond this would cost entries of ordinary size digits: it starts anew.
LARGEST_CUMULATIVE = 1e4
LARGEST_LAZY = LARGEST + LARGEST_CUMULATIVE
FEW = 8  # some eigenpairs are found faster alone than with all, where all are so many times more


class Elementwise(NamedTuple):
    """The state of J learners. Every array has one entry (row) a learner."""

    # Rows of the upper triangle, one after another.
    lazy_values: Annotated[Floats, floats("J", "triangle", least=-LARGEST_LAZY, most=LARGEST_LAZY)]
    cumulative_threshold: Annotated[Floats, floats("J", least=0.0, most=LARGEST_CUMULATIVE)]
    # Lazy value of a diagonal entry that no pair has touched.
    initial_value: Annotated[Floats, floats("J", least=0.0, most=1.0)]
    mu: Annotated[Floats, floats("J", least=1.0, most=LARGEST)]


def _widened(learners: Elementwise, n: int) -> Elementwise:
    old = _width(learners)
    lazy = np.zeros((learners.mu.size, n * (n + 1) // 2))
    rows, columns = np.triu_indices(n)
    lazy[:, columns < old] = learners.lazy_values
    lazy[:, (rows == columns) & (columns >= old)] = learners.initial_value[:, None]
    return learners._replace(lazy_values=lazy)


def _width(learners: Elementwise) -> int:
    return (math.isqrt(8 * learners.lazy_values.shape[1] + 1) - 1) // 2


def _upper(learners: Elementwise, p: Floats) -> Floats:
    """The upper triangle of the weighted sum of the first learners' matrices."""
    triangle = np.zeros(learners.lazy_values.shape[1])
    for j, weight in enumerate(p):
        lazy, threshold = learners.lazy_values[j], learners.cumulative_threshold[j]
        triangle += weight * np.sign(lazy) * np.maximum(np.abs(lazy) - threshold, 0.0)
    n = _width(learners)
    M = np.zeros((n, n))
    M[np.triu_indices(n)] = triangle
    return M


def positive_part(M: Floats, capacity: int) -> tuple[Floats, Floats]:
    """Largest positive eigenvalues of a symmetric matrix, and their vectors as rows.

    Only the upper triangle of M is read, and only features with an entry other than 0 count.
    """
    n = len(M)
    M = M + np.triu(M, 1).T
    used = np.flatnonzero(M.any(axis=0))
    inside = M[np.ix_(used, used)]
    if used.size > FEW * capacity:
        start = np.ones(used.size)  # random by default, and the result with it
        values, columns = scipy.sparse.linalg.eigsh(inside, capacity, which="LA", v0=start)
    elif used.size:
        values, columns = scipy.linalg.eigh(inside)
    else:
        values, columns = np.empty(0), np.empty((0, 0))
    values, columns = values[::-1][:capacity], columns[:, ::-1][:, :capacity]
    kept = values > ROUNDING * max(values[0], 0.0) if values.size else []
    vectors = np.zeros((int(np.sum(kept)), n))
    vectors[:, used] = columns[:, kept].T
    return values[kept], vectors


@inner
def soft_threshold(value: float, threshold: float) -> float:
    """A value moved towards 0 by a threshold; a lazy one, by all of them so far, is the entry."""
    return math.copysign(max(abs(value) - threshold, 0.0), value)


@inner
def lazy_value(entry: float, threshold: float) -> float:
    """The value at which an entry is kept, given the cumulative threshold."""
    entry = min(max(entry, -LARGEST), LARGEST)
    return entry + math.copysign(threshold, entry) if entry != 0.0 else 0.0


@inner
def _row(i: int, n: int) -> int:
    """Where row i of a triangle would start if it had a column 0."""
    return i * (2 * n - i - 1) // 2


@inner
def squared_distance(
    learners: Elementwise, scratch: NoScratch, j: int, geometry: Geometry, u: Difference
) -> float:
    """Squared distance q = u'Mu of learner j; below 0 where M is not positive along u.

    Features come in rising order, so that pairs of them lie in the upper triangle.
    """
    lazy, threshold, n = learners.lazy_values[j], learners.cumulative_threshold[j], u.full.size
    q = 0.0
    for a in range(u.where.size):
        i = u.where[a]
        row = _row(i, n)
        beside = 0.0
        for b in range(a + 1, u.where.size):
            beside += soft_threshold(lazy[row + u.where[b]], threshold) * u.values[b]
        own = soft_threshold(lazy[row + i], threshold) * u.values[a]
        q += u.values[a] * (own + 2.0 * beside)
    return q


@routine
def update(
    learners: Elementwise, scratch: NoScratch, j: int, geometry: Geometry, u: Difference, step: Step
) -> None:
    """The step: M moves by -b uu', then all its entries are soft-thresholded."""
    lazy, threshold, n = learners.lazy_values[j], learners.cumulative_threshold[j], u.full.size
    if step.b != 0.0:
        for a in range(u.where.size):
            row = _row(u.where[a], n)
            factor = step.b * u.values[a]
            for c in range(a, u.where.size):
                at = row + u.where[c]
                entry = soft_threshold(lazy[at], threshold) - factor * u.values[c]
                lazy[at] = lazy_value(entry, threshold)
    shrink_entries(learners, j, step.shrink)


@routine
def shrink_entries(learners: Any, j: int, amount: float) -> None:
    """Add to the threshold of all entries; where it gets too large, lazy values start anew."""
    learners.cumulative_threshold[j] += amount
    threshold, lazy = learners.cumulative_threshold[j], learners.lazy_values[j]
    if threshold > LARGEST_CUMULATIVE:
        for i in range(lazy.size):
            lazy[i] = soft_threshold(lazy[i], threshold)
        learners.initial_value[j] = soft_threshold(learners.initial_value[j], threshold)
        learners.cumulative_threshold[j] = 0.0


@routine
def copy_learner(learners: Any, source: int, target: int) -> None:
    """Make one learner the equal of another."""
    copy(learners.lazy_values[target], learners.lazy_values[source], learners.lazy_values.shape[1])
    learners.cumulative_threshold[target] = learners.cumulative_threshold[source]
    learners.initial_value[target] = learners.initial_value[source]
    learners.mu[target] = learners.mu[source]


class L1(Representation):
    """What representations for elementwise L1 share."""

    def check(self, learners: Any, geometry: Geometry, n_features: int) -> None:
        """Refuse learners that no stream can have led to; their arrays hold what they declare."""
        if geometry.divergence != FROBENIUS:
            raise ValueError("the elementwise L1 norm is for the Frobenius divergence alone")

    def metric(self, learners: Any, j: int, geometry: Geometry, unit: float) -> Factored:
        """Metric of learner j, over ``unit``."""
        return self.mixture(learners, np.eye(j + 1)[j], geometry, unit)

    def density(self, learners: Any, j: int, geometry: Geometry) -> float:
        """Share of M's entries that are not 0."""
        return float(np.mean(self.entries(learners, j, geometry).matrix != 0.0))


class ByEntry(L1):
    """Upper triangles, thresholded lazily."""

    def new_learners(self, J: int, n: int, geometry: Geometry, identity: bool) -> Elementwise:
        """Learners that all start at 0, or at the identity."""
        empty = np.zeros((J, 0))
        initial = np.full(J, 1.0 if identity else 0.0)
        none = Elementwise(empty, np.zeros(J), initial, np.ones(J))
        return _widened(none, n)

    def widen(self, learners: Elementwise, new: Elementwise, geometry: Geometry) -> Elementwise:
        """Learners of more features, which have been 0 so far: there M is as it started."""
        return _widened(learners, _width(new))

    def adopt(self, source: Source, new: Elementwise, geometry: Geometry) -> Elementwise:
        """Learners with the entries of others; no threshold is pending."""
        found = source.entries()
        lazy = np.array([each.matrix[np.triu_indices(len(each.matrix))] for each in found])
        initial = np.clip([each.untouched for each in found], 0.0, 1.0)
        return self.widen(
            Elementwise(lazy, np.zeros(len(found)), initial, source.mu), new, geometry
        )

    def entries(self, learners: Elementwise, j: int, geometry: Geometry) -> Entries:
        """M of learner j."""
        M = _upper(learners, np.eye(j + 1)[j])
        untouched = max(learners.initial_value[j] - learners.cumulative_threshold[j], 0.0)
        return Entries(M + np.triu(M, 1).T, float(untouched))

    def mixture(
        self, learners: Elementwise, p: Floats, geometry: Geometry, unit: float
    ) -> Factored:
        """The metric nearest to the weighted sum of the first learners' matrices, over ``unit``."""
        values, vectors = positive_part(_upper(learners, p), geometry.capacity)
        return Factored(values / unit, vectors, 0.0)


ELEMENTWISE = register(ByEntry("elementwise", Elementwise, squared_distance, update, copy_learner))
