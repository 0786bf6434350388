"""Elementwise L1 on diagonal metrics: a weight a feature, d <- max(d - b u^2 - amount, 0).

Thresholds of features that a pair does not have wait, as in `elementwise`: a weight is kept as its
height above 0, of which the learner's ``total`` of all thresholds is gone.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.divergences import FROBENIUS, LARGEST
from metrack.engine.elementwise import HIGHEST, HIGHEST_TOTAL, height, left
from metrack.engine.kernels import Difference, Floats, copy, inner, routine
from metrack.engine.records import floats


class Diagonal(NamedTuple):
    """The state of J learners. Every array has one entry (row) a learner."""

    heights: Annotated[Floats, floats("J", "n", least=-HIGHEST, most=HIGHEST)]
    total: Annotated[Floats, floats("J", least=0.0, most=HIGHEST_TOTAL)]
    # Height of a weight that no pair has touched.
    fresh: Annotated[Floats, floats("J", least=0.0, most=1.0)]
    mu: Annotated[Floats, floats("J", least=1.0, most=LARGEST)]


class Scratch(NamedTuple):
    """A step needs no working memory."""


def new_learners(
    n_learners: int, n_features: int, capacity: int, divergence: int, identity: bool
) -> Diagonal:
    """Learners that all start at 0, or at the identity."""
    fresh = np.full(n_learners, 1.0 if identity else 0.0)
    heights = np.repeat(fresh[:, None], n_features, axis=1)
    return Diagonal(heights, np.zeros(n_learners), fresh, np.ones(n_learners))


def check(learners: Diagonal, divergence: int, capacity: int, n_features: int) -> None:
    """Refuse learners that no stream can have led to; their arrays hold what they declare."""
    if divergence != FROBENIUS:
        raise ValueError("the elementwise L1 norm is for the Frobenius divergence alone")


def grow(learners: Diagonal, capacity: int) -> Diagonal:
    """There is always room."""
    return learners


def widen(learners: Diagonal, more: int) -> Diagonal:
    """Learners of so many more features, which have been 0 so far: there M is as it started."""
    new = np.repeat(learners.fresh[:, None], more, axis=1)
    return learners._replace(heights=np.concatenate([learners.heights, new], axis=1))


def mixture(learners: Diagonal, p: Floats, capacity: int) -> tuple[Floats, Floats]:
    """Largest entries of the weighted sum of the first learners' metrics, and their axes."""
    n = len(p)
    d = p @ np.maximum(learners.heights[:n] - learners.total[:n, None], 0.0)
    order = np.argsort(-d, kind="stable")[: min(capacity, np.count_nonzero(d))]
    axes = np.zeros((len(order), len(d)))
    axes[np.arange(len(order)), order] = 1.0
    return d[order], axes


def density(learners: Diagonal, j: int) -> float:
    """Share of M's entries that are not 0."""
    n = learners.heights.shape[1]
    return float(np.count_nonzero(learners.heights[j] > learners.total[j]) / n**2)


def make_scratch(learners: Diagonal, n_features: int) -> Scratch:
    """Working memory for a pass over a batch."""
    return Scratch()


@inner
def is_full(learners: Diagonal, capacity: int) -> bool:
    """There is always room."""
    return False


@inner
def step_norm(learners: Diagonal, u: Difference, norm2: float) -> float:
    """Frobenius norm of what a step of size 1 adds: the diagonal of uu'."""
    total = 0.0
    for value in u.values:
        total += value**4
    return math.sqrt(total)


@inner
def project(
    learners: Diagonal, scratch: Scratch, j: int, divergence: int, u: Difference, norm2: float
) -> float:
    """Squared distance of learner j: the weighted squares of u."""
    heights, total = learners.heights[j], learners.total[j]
    q = 0.0
    for a in range(u.where.size):
        q += left(heights[u.where[a]], total) * u.values[a] ** 2
    return q


@routine
def move(
    learners: Diagonal,
    scratch: Scratch,
    j: int,
    divergence: int,
    u: Difference,
    q: float,
    b: float,
    amount: float,
    capacity: int,
) -> None:
    """The step: weights move by -b u^2, then all shrink by ``amount``, never below 0."""
    heights, total = learners.heights[j], learners.total[j]
    if b != 0.0:
        for a in range(u.where.size):
            i = u.where[a]
            moved = left(heights[i], total) - b * u.values[a] ** 2
            heights[i] = height(max(moved, 0.0), total)
    learners.total[j] += amount
    if learners.total[j] > HIGHEST_TOTAL:
        total = learners.total[j]
        for i in range(heights.size):
            heights[i] = left(heights[i], total)
        learners.fresh[j] = left(learners.fresh[j], total)
        learners.total[j] = 0.0


@routine
def copy_learner(learners: Diagonal, source: int, target: int) -> None:
    """Make one learner the equal of another."""
    copy(learners.heights[target], learners.heights[source], learners.heights.shape[1])
    learners.total[target] = learners.total[source]
    learners.fresh[target] = learners.fresh[source]
    learners.mu[target] = learners.mu[source]
