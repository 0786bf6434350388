"""Elementwise L1 on the cone, exactly: the proximal step of both at once.

Thresholding, then projecting is not the step. It is M = (A - W)+, the positive part of A - W, for
A = M_t - b uu' and the multipliers W, |W_ij| <= amount, that make |(A - W)+|^2 least: the dual of

    argmin over M >= 0 of  |M - A|^2 / 2 + amount sum |M_ij|.

It is found by accelerated projected gradient steps with restarts, from the multipliers of the last
step; ADMM on the same problems took some ten times as many. Every iterate bounds its own distance
from the solution: |M - M*|^2 / 2 is at most the duality gap, sum of amount |M_ij| - W_ij M_ij.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.numerics.divergences import LARGEST
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, add_scaled, copy, dot, fill, inner, routine
from metrack.engine.numerics.pairs import Difference, row_times
from metrack.engine.numerics.records import floats
from metrack.engine.representations.elementwise import L1, positive_part, soft_threshold
from metrack.engine.representations.protocol import Entries, Geometry, Source, Step, register

PRECISION = 1e-8  # distance from the solution, relative to |A|
MOST_ITERATIONS = 5000
MOST_SWEEPS = 60
OFF_DIAGONAL = 1e-32  # share of a matrix's square that rotations leave off its diagonal


class Cone(NamedTuple):
    """The state of J learners. Every array has one entry (block) a learner."""

    matrix: Annotated[Floats, floats("J", "n", "n", least=-LARGEST, most=LARGEST)]  # M
    multipliers: Annotated[Floats, floats("J", "n", "n", least=-LARGEST, most=LARGEST)]  # W
    # A diagonal entry that no pair has touched.
    initial_value: Annotated[Floats, floats("J", least=0.0, most=1.0)]
    mu: Annotated[Floats, floats("J", least=1.0, most=LARGEST)]


class Scratch(NamedTuple):
    """What a step needs in passing, n x n each."""

    moved: Floats  # A
    trial: Floats  # W, extrapolated
    positive: Floats  # (A - W)+
    turned: Floats  # A - W in the basis of ``vectors``
    vectors: Floats  # eigenvectors, as rows
    product: Floats


@inner
def squared_distance(
    learners: Cone, scratch: Scratch, j: int, geometry: Geometry, u: Difference
) -> float:
    """Squared distance q = u'Mu of learner j."""
    q = 0.0
    for a in range(u.where.size):
        q += u.values[a] * row_times(learners.matrix[j, u.where[a]], u)
    return max(q, 0.0)  # what rounding leaves below it


@routine
def update(
    learners: Cone, scratch: Scratch, j: int, geometry: Geometry, u: Difference, step: Step
) -> None:
    """The step: M moves by -b uu', then to the nearest metric with the L1 norm counted in."""
    b, amount = step.b, step.shrink
    if b == 0.0 and amount == 0.0:
        return
    matrix, n = learners.matrix[j], u.full.size
    for i in range(n):
        copy(scratch.moved[i], matrix[i], n)
        add_scaled(scratch.moved[i], -b * u.full[i], u.full, n)
        for k in range(n):
            scratch.moved[i, k] = min(max(scratch.moved[i, k], -LARGEST), LARGEST)
    learners.initial_value[j] = soft_threshold(learners.initial_value[j], amount)
    _solve(scratch, learners.multipliers[j], amount, n)
    for i in range(n):
        for k in range(n):
            # A multiplier that stays inside its bounds says that the entry is 0.
            entry = scratch.positive[i, k]
            stays = abs(learners.multipliers[j, i, k] + entry) < amount
            matrix[i, k] = 0.0 if stays else entry


@routine
def _solve(scratch: Scratch, multipliers: Floats, amount: float, n: int) -> None:
    """Leave the solution in ``scratch.positive`` and its multipliers in place of the last ones."""
    square = 0.0
    for i in range(n):
        square += dot(scratch.moved[i], scratch.moved[i], n)
        fill(scratch.vectors[i], 0.0, n)
        scratch.vectors[i, i] = 1.0
        for k in range(n):
            multipliers[i, k] = min(max(multipliers[i, k], -amount), amount)
            scratch.trial[i, k] = multipliers[i, k]
    enough = 0.5 * PRECISION * PRECISION * square
    speed = 1.0
    for _ in range(MOST_ITERATIONS):
        _positive_part(scratch, n)
        gap, turn = 0.0, 0.0
        for i in range(n):
            for k in range(n):
                entry, trial = scratch.positive[i, k], scratch.trial[i, k]
                gap += amount * abs(entry) - trial * entry
                new = min(max(trial + entry, -amount), amount)
                turn += (trial - new) * (new - multipliers[i, k])
        if gap <= enough:
            break
        if turn > 0.0:  # the last steps went too far
            speed = 1.0
        faster = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * speed * speed))
        beyond = (speed - 1.0) / faster
        speed = faster
        for i in range(n):
            for k in range(n):
                new = min(max(scratch.trial[i, k] + scratch.positive[i, k], -amount), amount)
                further = new + beyond * (new - multipliers[i, k])
                scratch.trial[i, k] = min(max(further, -amount), amount)
                multipliers[i, k] = new
    for i in range(n):
        copy(multipliers[i], scratch.trial[i], n)


@routine
def _positive_part(scratch: Scratch, n: int) -> None:
    """(A - W)+ for W = ``scratch.trial``; the eigenvectors of the last call are the first guess."""
    moved, trial, vectors = scratch.moved, scratch.trial, scratch.vectors
    product, turned, positive = scratch.product, scratch.turned, scratch.positive
    for i in range(n):
        for k in range(n):
            positive[i, k] = moved[i, k] - trial[i, k]
    for p in range(n):
        for k in range(n):
            product[p, k] = dot(positive[k], vectors[p], n)
        for r in range(n):
            turned[p, r] = dot(product[p], vectors[r], n)
    _diagonalise(turned, vectors, n)
    for i in range(n):
        fill(positive[i], 0.0, n)
    for p in range(n):
        if turned[p, p] > 0.0:
            for i in range(n):
                add_scaled(positive[i], turned[p, p] * vectors[p, i], vectors[p], n)


@routine
def _diagonalise(matrix: Floats, vectors: Floats, n: int) -> None:
    """Jacobi's rotations until a symmetric matrix is diagonal; they go into the rows of vectors."""
    for _ in range(MOST_SWEEPS):
        off, square = 0.0, 0.0
        for p in range(n):
            off += dot(matrix[p], matrix[p], p)
            square += matrix[p, p] ** 2
        if off <= OFF_DIAGONAL * square:
            return
        for p in range(n - 1):
            for r in range(p + 1, n):
                if matrix[p, r] != 0.0:
                    _rotate(matrix, vectors, p, r, n)


@inner
def _rotate(matrix: Floats, vectors: Floats, p: int, r: int, n: int) -> None:
    """Turn rows and columns p and r so that the entry where they meet is 0."""
    angle = (matrix[r, r] - matrix[p, p]) / (2.0 * matrix[p, r])
    tangent = math.copysign(1.0 / (abs(angle) + math.sqrt(angle * angle + 1.0)), angle)
    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
    sine = tangent * cosine
    for k in range(n):
        a, b = matrix[p, k], matrix[r, k]
        matrix[p, k], matrix[r, k] = cosine * a - sine * b, sine * a + cosine * b
        a, b = vectors[p, k], vectors[r, k]
        vectors[p, k], vectors[r, k] = cosine * a - sine * b, sine * a + cosine * b
    for k in range(n):
        a, b = matrix[k, p], matrix[k, r]
        matrix[k, p], matrix[k, r] = cosine * a - sine * b, sine * a + cosine * b


@routine
def copy_learner(learners: Cone, source: int, target: int) -> None:
    """Make one learner the equal of another."""
    n = learners.matrix.shape[1]
    for i in range(n):
        copy(learners.matrix[target, i], learners.matrix[source, i], n)
        copy(learners.multipliers[target, i], learners.multipliers[source, i], n)
    learners.initial_value[target] = learners.initial_value[source]
    learners.mu[target] = learners.mu[source]


class OnCone(L1):
    """Matrices on the cone, with their multipliers."""

    def new_learners(self, J: int, n: int, geometry: Geometry, identity: bool) -> Cone:
        """Learners that all start at 0, or at the identity."""
        initial = np.full(J, 1.0 if identity else 0.0)
        matrix = initial[:, None, None] * np.eye(n)
        return Cone(matrix, np.zeros_like(matrix), initial, np.ones(J))

    def widen(self, learners: Cone, new: Cone, geometry: Geometry) -> Cone:
        """Learners of more features, which have been 0 so far: there M is as it started."""
        n = learners.matrix.shape[1]
        more = new.matrix.shape[1] - n
        around = ((0, 0), (0, more), (0, more))
        matrix = np.pad(learners.matrix, around)
        added = np.arange(n, n + more)
        matrix[:, added, added] = learners.initial_value[:, None]
        return learners._replace(matrix=matrix, multipliers=np.pad(learners.multipliers, around))

    def adopt(self, source: Source, new: Cone, geometry: Geometry) -> Cone:
        """Learners with the metrics of others."""
        matrix = np.array([metric.matrix() for metric in source.metrics()])
        untouched = np.array([each.untouched for each in source.entries()])
        initial = np.clip(untouched, 0.0, 1.0)
        return self.widen(Cone(matrix, np.zeros_like(matrix), initial, source.mu), new, geometry)

    def entries(self, learners: Cone, j: int, geometry: Geometry) -> Entries:
        """M of learner j."""
        return Entries(learners.matrix[j], float(learners.initial_value[j]))

    def mixture(self, learners: Cone, p: Floats, geometry: Geometry, unit: float) -> Factored:
        """The weighted sum of the first learners' metrics, over ``unit``."""
        M = np.triu(np.tensordot(p, learners.matrix[: len(p)], 1))
        values, vectors = positive_part(M, geometry.capacity)
        return Factored(values / unit, vectors, 0.0)

    def make_scratch(self, learners: Cone, n_features: int) -> Scratch:
        """Working memory for a pass over a batch."""
        return Scratch(*np.empty((len(Scratch._fields), n_features, n_features)))


CONE = register(OnCone("cone", Cone, squared_distance, update, copy_learner))
