"""A learner's metric as a whole factor L with M = L'L: Burg steps in O(n^2), without eigenvectors.

What the textbook writes as

    M - b Mu (Mu)' / (1 + b q),    q = u'Mu,

is L - a w (L'w)' with w = Lu and a = (1 - sqrt(q' / q)) / q, where q' = q / (1 + b q) is the pair's
squared distance after the step. So M stays positive definite whatever is rounded, and q is a sum of
squares. The nuclear norm would need M's eigenvalues: this form is for metrics without regulariser.
"""

import math
from typing import NamedTuple

import numpy as np

from metrack.engine.divergences import LARGEST
from metrack.engine.factored import Factored
from metrack.engine.kernels import (
    Difference,
    Floats,
    add_scaled,
    copy,
    dot,
    fill,
    inner,
    routine,
    row_times,
)

SMALLEST = 1e-200  # a squared distance below this has lost its digits


class Whole(NamedTuple):
    """The state of J learners. Every array has one entry (block) a learner."""

    factor: Floats  # L: (J, n, n)
    mu: Floats


class Scratch(NamedTuple):
    """Where `project` leaves its results for `move`, and what a step needs in passing."""

    w: Floats  # (J, n): w = Lu
    r: Floats  # L'w


def new_learners(
    n_learners: int, n_features: int, capacity: int, divergence: int, identity: bool
) -> Whole:
    """Learners that all start at the identity, as Burg must."""
    return Whole(np.tile(np.eye(n_features), (n_learners, 1, 1)), np.ones(n_learners))


def grow(learners: Whole, capacity: int) -> Whole:
    """There is always room."""
    return learners


def widen(learners: Whole, more: int) -> Whole:
    """Learners of so many more features, which have been 0 so far: there M is at its start."""
    n_learners, n, _ = learners.factor.shape
    factor = np.tile(np.eye(n + more), (n_learners, 1, 1))
    factor[:, :n, :n] = learners.factor
    return learners._replace(factor=factor)


def metric(learners: Whole, j: int, divergence: int, n_features: int) -> Factored:
    """Metric of learner j."""
    _, lengths, vectors = np.linalg.svd(learners.factor[j])
    return Factored(lengths**2, vectors, 0.0)


def make_scratch(learners: Whole, n_features: int) -> Scratch:
    """Working memory for a pass over a batch."""
    return Scratch(np.empty((learners.mu.size, n_features)), np.empty(n_features))


@inner
def is_full(learners: Whole, capacity: int) -> bool:
    """There is always room."""
    return False


@inner
def step_norm(learners: Whole, u: Difference, norm2: float) -> float:
    """Frobenius norm of what a step of size 1 adds in the dual: |uu'|."""
    return norm2


@inner
def project(
    learners: Whole, scratch: Scratch, j: int, divergence: int, u: Difference, norm2: float
) -> float:
    """Squared distance q = u'Mu of learner j."""
    return project_factor(learners.factor[j], u, scratch.w[j])


@inner
def project_factor(factor: Floats, u: Difference, w: Floats) -> float:
    """Leave Lu in w; returns |w|^2."""
    for i in range(w.size):
        w[i] = row_times(factor[i], u)
    return dot(w, w, w.size)


@routine
def move(
    learners: Whole,
    scratch: Scratch,
    j: int,
    divergence: int,
    u: Difference,
    q: float,
    b: float,
    amount: float,
    capacity: int,
) -> None:
    """The step: the inverse of M moves by +b uu'. `project` came before."""
    if b != 0.0 and q >= SMALLEST:
        norm2 = dot(u.values, u.values, u.values.size)
        move_factor(learners.factor[j], scratch.w[j], scratch.r, q, 1.0 / (1.0 + b * q), norm2)


@inner
def move_factor(factor: Floats, w: Floats, r: Floats, q: float, ratio: float, norm2: float) -> None:
    """Give u the squared distance ratio * q, where Lu is in w; r is working memory."""
    n = w.size
    # No input may lead to a NaN.
    ratio = min(max(ratio, 1.0 / LARGEST), max(1.0, LARGEST * norm2 / q))
    a = (1.0 - math.sqrt(ratio)) / q
    fill(r, 0.0, n)
    for i in range(n):
        add_scaled(r, w[i], factor[i], n)
    for i in range(n):
        add_scaled(factor[i], -a * w[i], r, n)


@routine
def copy_learner(learners: Whole, source: int, target: int) -> None:
    """Make one learner the equal of another."""
    n = learners.factor.shape[1]
    for i in range(n):
        copy(learners.factor[target, i], learners.factor[source, i], n)
    learners.mu[target] = learners.mu[source]
