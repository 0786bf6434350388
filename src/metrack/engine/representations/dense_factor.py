"""A learner's metric as a dense factor L with M = L'L: Burg steps in O(n^2), no eigenvectors.

What the textbook writes as

    M - b Mu (Mu)' / (1 + b q),    q = u'Mu,

is L - a w (L'w)' with w = Lu and a = (1 - sqrt(q' / q)) / q, where q' = q / (1 + b q) is the pair's
squared distance after the step. So M stays positive definite whatever is rounded, and q is a sum of
squares. The nuclear norm would need M's eigenvalues: this representation is for metrics without it.

The regulariser it knows is r(M) = <S, M> - log det M, which pulls M towards S^-1. With
a = rate * rho, at most 1 / n, a step is

    M^-1 <- (M^-1 + b uu' + a S) / (1 + a).

For S = I this were the LogDet divergence from plain distance, but each step would take O(n^3). So S
comes piece by piece: it is n uu' / |u|^2 of the pair itself, and in every 4n-th step n I on top,
which bounds M in directions in which no pair differs. What all this is for: a direction that was
shrunk to nothing would take long to grow again when it is asked for.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.numerics.divergences import BURG, LARGEST, bounds
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import (
    Floats,
    Ints,
    add_scaled,
    copy,
    dot,
    fill,
    inner,
    mix,
    routine,
)
from metrack.engine.numerics.pairs import SMALLEST, Difference, row_times
from metrack.engine.numerics.records import counts, floats
from metrack.engine.representations.protocol import (
    Entries,
    Geometry,
    Representation,
    Source,
    Step,
    register,
)

NOTHING = 1e-12  # a share of q; a step that changes less may be rounding's, and does not pull
FADES_FROM = 32.0  # length of an interval
IDENTITY_EVERY = 4  # times n steps: often enough to bound M, and seldom enough to be cheap
LOST = 1e-15  # 1 minus so little is 1 but for a few last digits


class DenseFactor(NamedTuple):
    """The state of J learners. Every array has one entry (block) a learner."""

    factor: Annotated[Floats, floats("J", "n", "n", least=-LARGEST, most=LARGEST)]  # L
    mu: Annotated[Floats, floats("J", least=1.0, most=LARGEST)]
    steps: Annotated[Ints, counts("J")]  # regularised steps so far


class Scratch(NamedTuple):
    """What `squared_distance` leaves for `update`, and what a step needs in passing."""

    w: Floats  # (J, n): w = Lu
    r: Floats  # L'w
    square: Floats  # (n, n)


def change_basis(learners: DenseFactor, turn: Floats, outside: Floats) -> DenseFactor:
    """Learners on the first directions of a basis, which become others; each M is restricted.

    Columns of ``turn``, orthonormal, are the directions to go on with, by old and new ones;
    ``outside`` is what multiplies plain distance beyond a learner's directions.
    """
    n = learners.factor.shape[1]
    known, beyond = learners.factor @ turn[:n], turn[n:]
    rows = np.concatenate([known, np.sqrt(outside)[:, None, None] * beyond], axis=1)
    factor: Floats = np.linalg.qr(rows, mode="r")  # type: ignore[assignment]
    return learners._replace(factor=factor)


@inner
def factor_distance(factor: Floats, u: Difference, w: Floats) -> float:
    """The squared distance |Lu|^2; leaves Lu in w."""
    for i in range(w.size):
        w[i] = row_times(factor[i], u)
    return dot(w, w, w.size)


@inner
def update_factor(
    factor: Floats, w: Floats, r: Floats, q: float, ratio: float, norm2: float, growth: float
) -> None:
    """Give u the squared distance ratio * q, where Lu is in w, then all of M a factor ``growth``.

    r is working memory.
    """
    n, grown = w.size, math.sqrt(growth)
    # No input may lead to a NaN.
    ratio = min(max(ratio, 1.0 / LARGEST), max(1.0, LARGEST * norm2 / q))
    root = math.sqrt(ratio)
    a = (1.0 - root) / q
    fill(r, 0.0, n)
    for i in range(n):
        add_scaled(r, w[i], factor[i], n)
    for i in range(n):
        mix(grown, factor[i], -grown * a * w[i], r, n)
        if root < LOST:  # else a factor of rank 1 might cancel to nothing, and M with it
            add_scaled(factor[i], grown * root / q * w[i], r, n)


@inner
def squared_distance(
    learners: DenseFactor, scratch: Scratch, j: int, geometry: Geometry, u: Difference
) -> float:
    """Squared distance q = u'Mu of learner j."""
    return factor_distance(learners.factor[j], u, scratch.w[j])


@routine
def update(
    learners: DenseFactor, scratch: Scratch, j: int, geometry: Geometry, u: Difference, step: Step
) -> None:
    """The step: the inverse of M moves by +b uu', and is regularised."""
    q, b, amount = step.q, step.b, step.shrink
    if b == 0.0 or q < SMALLEST or (amount > 0.0 and abs(b) * q < NOTHING):
        return
    factor, w, n = learners.factor[j], scratch.w[j], scratch.r.size
    a = min(amount, 1.0 / n)
    b += a * n / u.norm2
    update_factor(factor, w, scratch.r, q, 1.0 / (1.0 + b * q), u.norm2, 1.0 + a)
    if a > 0.0:
        learners.steps[j] += 1
        if learners.steps[j] % (IDENTITY_EVERY * n) == 0:
            _pull_to_identity(factor, scratch.square, a * n / (1.0 + a))


@routine
def _pull_to_identity(factor: Floats, C: Floats, amount: float) -> None:
    """Move the inverse of M by +amount I: L becomes C^-1 L, where CC' = I + amount LL'."""
    n = factor.shape[0]
    for i in range(n):
        for k in range(i + 1):  # Cholesky, row by row
            entry = amount * dot(factor[i], factor[k], n) - dot(C[i], C[k], k)
            # The square of a pivot is at least 1, but for rounding.
            C[i, k] = entry / C[k, k] if k < i else math.sqrt(1.0 + max(entry, 0.0))
    for i in range(n):
        for k in range(i):
            add_scaled(factor[i], -C[i, k], factor[k], n)
        for k in range(n):
            factor[i, k] /= C[i, i]


@routine
def copy_learner(learners: DenseFactor, source: int, target: int) -> None:
    """Make one learner the equal of another."""
    n = learners.factor.shape[1]
    for i in range(n):
        copy(learners.factor[target, i], learners.factor[source, i], n)
    learners.mu[target] = learners.mu[source]
    learners.steps[target] = learners.steps[source]


class ByFactor(Representation):
    """Dense factors of metrics of full rank."""

    def new_learners(self, J: int, n: int, geometry: Geometry, identity: bool) -> DenseFactor:
        """Learners that all start at the identity, as Burg must."""
        return DenseFactor(np.tile(np.eye(n), (J, 1, 1)), np.ones(J), np.zeros(J, np.int64))

    def widen(self, learners: DenseFactor, new: DenseFactor, geometry: Geometry) -> DenseFactor:
        """Learners of more features, which have been 0 so far: there M is at its start."""
        n_learners, n, _ = learners.factor.shape
        factor = np.tile(np.eye(new.factor.shape[1]), (n_learners, 1, 1))
        factor[:, :n, :n] = learners.factor
        return learners._replace(factor=factor)

    def adopt(self, source: Source, new: DenseFactor, geometry: Geometry) -> DenseFactor:
        """Learners with the metrics of others; no eigenvalue may be 0."""
        least, most = bounds(geometry.divergence)
        factors = []
        for metric in source.metrics():
            values, vectors = np.linalg.eigh(metric.matrix())
            factors.append(np.sqrt(np.clip(values, least, most))[:, None] * vectors.T)
        steps = np.zeros(len(factors), np.int64)
        return self.widen(DenseFactor(np.array(factors), source.mu, steps), new, geometry)

    def check(self, learners: DenseFactor, geometry: Geometry, n_features: int) -> None:
        """Refuse learners that no stream can have led to; their arrays hold what they declare."""
        if geometry.divergence != BURG:
            raise ValueError("a dense factor is for the Burg divergence alone")

    def entries(self, learners: DenseFactor, j: int, geometry: Geometry) -> Entries:
        """M of learner j."""
        return Entries(learners.factor[j].T @ learners.factor[j], 1.0)

    def metric(self, learners: DenseFactor, j: int, geometry: Geometry, unit: float) -> Factored:
        """Metric of learner j, over ``unit``."""
        _, lengths, vectors = np.linalg.svd(learners.factor[j])
        return Factored(lengths**2 / unit, vectors, 0.0)

    def rho_for_length(self, rho: float, lengths: Floats) -> Floats:
        """The regulariser is there for change. It fades as rates do.

        So over an interval it costs no more than a learner's regret.
        """
        faded: Floats = rho * np.minimum(1.0, np.sqrt(FADES_FROM / lengths))
        return faded

    def make_scratch(self, learners: DenseFactor, n_features: int) -> Scratch:
        """Working memory for a pass over a batch."""
        n = n_features
        return Scratch(np.empty((learners.mu.size, n)), np.empty(n), np.empty((n, n)))


DENSE_FACTOR = register(
    ByFactor("dense_factor", DenseFactor, squared_distance, update, copy_learner)
)
