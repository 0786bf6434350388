"""Elementwise L1 on diagonal metrics: a weight a feature, d <- max(d - b u^2 - amount, 0).

Thresholds of features that a pair does not have wait, as in `elementwise`: a weight is kept as its
lazy value, of which the learner's cumulative threshold is gone.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.numerics.divergences import LARGEST
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, inner, routine
from metrack.engine.numerics.pairs import Difference
from metrack.engine.numerics.records import floats
from metrack.engine.representations.elementwise import (
    L1,
    LARGEST_CUMULATIVE,
    LARGEST_LAZY,
    copy_learner,
    lazy_value,
    shrink_entries,
    soft_threshold,
)
from metrack.engine.representations.protocol import (
    Entries,
    Geometry,
    NoScratch,
    Source,
    Step,
    register,
)


class Diagonal(NamedTuple):
    """The state of J learners. Every array has one entry (row) a learner."""

    lazy_values: Annotated[Floats, floats("J", "n", least=-LARGEST_LAZY, most=LARGEST_LAZY)]
    cumulative_threshold: Annotated[Floats, floats("J", least=0.0, most=LARGEST_CUMULATIVE)]
    # Lazy value of a weight that no pair has touched.
    initial_value: Annotated[Floats, floats("J", least=0.0, most=1.0)]
    mu: Annotated[Floats, floats("J", least=1.0, most=LARGEST)]


@inner
def step_norm(learners: Diagonal, u: Difference) -> float:
    """Frobenius norm of what a step of size 1 adds: the diagonal of uu'."""
    total = 0.0
    for value in u.values:
        total += value**4
    return math.sqrt(total)


@inner
def squared_distance(
    learners: Diagonal, scratch: NoScratch, j: int, geometry: Geometry, u: Difference
) -> float:
    """Squared distance of learner j: the weighted squares of u."""
    lazy, threshold = learners.lazy_values[j], learners.cumulative_threshold[j]
    q = 0.0
    for a in range(u.where.size):
        q += soft_threshold(lazy[u.where[a]], threshold) * u.values[a] ** 2
    return q


@routine
def update(
    learners: Diagonal, scratch: NoScratch, j: int, geometry: Geometry, u: Difference, step: Step
) -> None:
    """The step: weights move by -b u^2, then all are thresholded, never below 0."""
    lazy, threshold = learners.lazy_values[j], learners.cumulative_threshold[j]
    if step.b != 0.0:
        for a in range(u.where.size):
            i = u.where[a]
            moved = soft_threshold(lazy[i], threshold) - step.b * u.values[a] ** 2
            lazy[i] = lazy_value(max(moved, 0.0), threshold)
    shrink_entries(learners, j, step.shrink)


class OnDiagonal(L1):
    """Weights of features, thresholded lazily."""

    def new_learners(self, J: int, n: int, geometry: Geometry, identity: bool) -> Diagonal:
        """Learners that all start at 0, or at the identity."""
        initial = np.full(J, 1.0 if identity else 0.0)
        lazy = np.repeat(initial[:, None], n, axis=1)
        return Diagonal(lazy, np.zeros(J), initial, np.ones(J))

    def widen(self, learners: Diagonal, new: Diagonal, geometry: Geometry) -> Diagonal:
        """Learners of more features, which have been 0 so far: there M is as it started."""
        more = new.lazy_values.shape[1] - learners.lazy_values.shape[1]
        added = np.repeat(learners.initial_value[:, None], more, axis=1)
        return learners._replace(lazy_values=np.concatenate([learners.lazy_values, added], axis=1))

    def adopt(self, source: Source, new: Diagonal, geometry: Geometry) -> Diagonal:
        """Learners with the positive entries on the diagonals of others; nothing is pending."""
        found = source.entries()
        lazy = np.maximum([np.diag(each.matrix) for each in found], 0.0)
        initial = np.clip([each.untouched for each in found], 0.0, 1.0)
        return self.widen(Diagonal(lazy, np.zeros(len(found)), initial, source.mu), new, geometry)

    def entries(self, learners: Diagonal, j: int, geometry: Geometry) -> Entries:
        """M of learner j."""
        threshold = learners.cumulative_threshold[j]
        weights = np.maximum(learners.lazy_values[j] - threshold, 0.0)
        untouched = max(learners.initial_value[j] - threshold, 0.0)
        return Entries(np.diag(weights), float(untouched))

    def mixture(self, learners: Diagonal, p: Floats, geometry: Geometry, unit: float) -> Factored:
        """The largest entries of the weighted sum of the first learners' metrics, over ``unit``."""
        n = len(p)
        d = p @ np.maximum(learners.lazy_values[:n] - learners.cumulative_threshold[:n, None], 0.0)
        order = np.argsort(-d, kind="stable")[: min(geometry.capacity, np.count_nonzero(d))]
        axes = np.zeros((len(order), len(d)))
        axes[np.arange(len(order)), order] = 1.0
        return Factored(d[order] / unit, axes, 0.0)

    def density(self, learners: Diagonal, j: int, geometry: Geometry) -> float:
        """Share of M's entries that are not 0."""
        n = learners.lazy_values.shape[1]
        return float(
            np.count_nonzero(learners.lazy_values[j] > learners.cumulative_threshold[j]) / n**2
        )


DIAGONAL = register(
    OnDiagonal("diagonal", Diagonal, squared_distance, update, copy_learner, step_norm)
)
