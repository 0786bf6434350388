"""Elementwise L1 without the cone: a symmetric M, entry by entry, made positive when it is read.

A step moves the entries on supp(u) x supp(u) and soft-thresholds all of them. Soft thresholds add
up, so those of the entries that a pair leaves alone can wait: a learner counts the ``total`` of all
thresholds so far, and an entry m is kept as its height m + sign(m) total. What is left of a height
above the total is the entry now, to the last digit; where nothing is left it is 0 and stays so.

While learning, M is any symmetric matrix. The positive ones lie among them, so the regret against
every metric keeps its bound; what is read is the metric nearest to M.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from metrack.engine.divergences import FROBENIUS, LARGEST
from metrack.engine.kernels import Difference, Floats, copy, inner, routine
from metrack.engine.records import floats

# A total beyond this would cost entries of ordinary size digits: heights are counted anew from 0.
HIGHEST_TOTAL = 1e4
HIGHEST = LARGEST + HIGHEST_TOTAL
ROUNDING = 1e-14  # eigenvalues below this share of the largest are no directions
FEW = 8  # some eigenpairs are found faster alone than with all, where all are so many times more


class Elementwise(NamedTuple):
    """The state of J learners. Every array has one entry (row) a learner."""

    # Rows of the upper triangle, one after another.
    heights: Annotated[Floats, floats("J", "triangle", least=-HIGHEST, most=HIGHEST)]
    total: Annotated[Floats, floats("J", least=0.0, most=HIGHEST_TOTAL)]
    # Height of a diagonal entry that no pair has touched.
    fresh: Annotated[Floats, floats("J", least=0.0, most=1.0)]
    mu: Annotated[Floats, floats("J", least=1.0, most=LARGEST)]


class Scratch(NamedTuple):
    """A step needs no working memory."""


def new_learners(
    n_learners: int, n_features: int, capacity: int, divergence: int, identity: bool
) -> Elementwise:
    """Learners that all start at 0, or at the identity."""
    empty = np.zeros((n_learners, 0))
    fresh = np.full(n_learners, 1.0 if identity else 0.0)
    none = Elementwise(empty, np.zeros(n_learners), fresh, np.ones(n_learners))
    return widen(none, n_features)


def check(learners: Elementwise, divergence: int, capacity: int, n_features: int) -> None:
    """Refuse learners that no stream can have led to; their arrays hold what they declare."""
    if divergence != FROBENIUS:
        raise ValueError("the elementwise L1 norm is for the Frobenius divergence alone")


def grow(learners: Elementwise, capacity: int) -> Elementwise:
    """There is always room."""
    return learners


def widen(learners: Elementwise, more: int) -> Elementwise:
    """Learners of so many more features, which have been 0 so far: there M is as it started."""
    old = _width(learners)
    n = old + more
    heights = np.zeros((learners.mu.size, n * (n + 1) // 2))
    rows, columns = np.triu_indices(n)
    heights[:, columns < old] = learners.heights
    heights[:, (rows == columns) & (columns >= old)] = learners.fresh[:, None]
    return learners._replace(heights=heights)


def _width(learners: Elementwise) -> int:
    return (math.isqrt(8 * learners.heights.shape[1] + 1) - 1) // 2


def mixture(learners: Elementwise, p: Floats, capacity: int) -> tuple[Floats, Floats]:
    """Eigenvalues and vectors of the metric nearest to the weighted sum of the first learners'."""
    triangle = np.zeros(learners.heights.shape[1])
    for weight, heights, total in zip(p, learners.heights, learners.total, strict=False):
        triangle += weight * np.sign(heights) * np.maximum(np.abs(heights) - total, 0.0)
    n = _width(learners)
    M = np.zeros((n, n))
    M[np.triu_indices(n)] = triangle
    return positive_part(M, capacity)


def density(learners: Elementwise, j: int) -> float:
    """Share of M's entries that are not 0."""
    n = _width(learners)
    kept = np.abs(learners.heights[j]) > learners.total[j]
    rows, columns = np.triu_indices(n)
    return float((2 * kept.sum() - kept[rows == columns].sum()) / n**2)


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


def make_scratch(learners: Elementwise, n_features: int) -> Scratch:
    """Working memory for a pass over a batch."""
    return Scratch()


@inner
def is_full(learners: Elementwise, capacity: int) -> bool:
    """There is always room."""
    return False


@inner
def step_norm(learners: Elementwise, u: Difference, norm2: float) -> float:
    """Frobenius norm of what a step of size 1 adds: |uu'|."""
    return norm2


@inner
def left(height: float, total: float) -> float:
    """What is left of an entry, given its height and the total of all thresholds."""
    return math.copysign(max(abs(height) - total, 0.0), height)


@inner
def height(entry: float, total: float) -> float:
    """The height at which an entry is kept."""
    entry = min(max(entry, -LARGEST), LARGEST)
    return entry + math.copysign(total, entry) if entry != 0.0 else 0.0


@inner
def _row(i: int, n: int) -> int:
    """Where row i of a triangle would start if it had a column 0."""
    return i * (2 * n - i - 1) // 2


@inner
def project(
    learners: Elementwise, scratch: Scratch, j: int, divergence: int, u: Difference, norm2: float
) -> float:
    """Squared distance q = u'Mu of learner j; below 0 where M is not positive along u.

    Features come in rising order, so that pairs of them lie in the upper triangle.
    """
    heights, total, n = learners.heights[j], learners.total[j], u.full.size
    q = 0.0
    for a in range(u.where.size):
        i = u.where[a]
        row = _row(i, n)
        beside = 0.0
        for b in range(a + 1, u.where.size):
            beside += left(heights[row + u.where[b]], total) * u.values[b]
        q += u.values[a] * (left(heights[row + i], total) * u.values[a] + 2.0 * beside)
    return q


@routine
def move(
    learners: Elementwise,
    scratch: Scratch,
    j: int,
    divergence: int,
    u: Difference,
    q: float,
    b: float,
    amount: float,
    capacity: int,
) -> None:
    """The step: M moves by -b uu', then all its entries shrink by ``amount``."""
    heights, total, n = learners.heights[j], learners.total[j], u.full.size
    if b != 0.0:
        for a in range(u.where.size):
            row = _row(u.where[a], n)
            factor = b * u.values[a]
            for c in range(a, u.where.size):
                at = row + u.where[c]
                heights[at] = height(left(heights[at], total) - factor * u.values[c], total)
    learners.total[j] += amount
    if learners.total[j] > HIGHEST_TOTAL:
        _count_anew(learners, j)


@routine
def _count_anew(learners: Elementwise, j: int) -> None:
    heights, total = learners.heights[j], learners.total[j]
    for i in range(heights.size):
        heights[i] = left(heights[i], total)
    learners.fresh[j] = left(learners.fresh[j], total)
    learners.total[j] = 0.0


@routine
def copy_learner(learners: Elementwise, source: int, target: int) -> None:
    """Make one learner the equal of another."""
    copy(learners.heights[target], learners.heights[source], learners.heights.shape[1])
    learners.total[target] = learners.total[source]
    learners.fresh[target] = learners.fresh[source]
    learners.mu[target] = learners.mu[source]
