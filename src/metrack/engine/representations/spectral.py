"""A learner's metric in factored form, and its exact rank-one update.

A metric is M = a (I - VV') + V diag(s) V' with orthonormal V. V = F Q, where the frame F (n x
width) is orthonormal and the small Q (width x rank) takes all rotations; when the frame is full it
is collapsed to F Q. Where the capacity is not small against n there is no frame: F is the identity,
and Q is V itself. F is stored feature-major, so that a sparse u reads only the rows of its
non-zeros; Q component-major, so that short bases use whole vector instructions.

A pair's way through a learner is `squared_distance` (and coordinates of u), then `update` (the
step). A round without loss touches the spectrum alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metrack.engine.numerics.divergences import (
    BURG,
    FROBENIUS,
    LARGEST,
    VON_NEUMANN,
    bounds,
    eigenvalue,
    shrink,
)
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, add_scaled, copy, dot, fill, inner, routine
from metrack.engine.numerics.pairs import Difference, row_times
from metrack.engine.numerics.secular import make_secular_scratch, rank_one_eigh
from metrack.engine.representations.protocol import (
    Entries,
    Geometry,
    Representation,
    Source,
    Step,
    register,
)
from metrack.engine.representations.spectral_basis import (
    POLISH_EVERY,
    Scratch,
    Spectral,
    drop_one,
    new_direction,
    polish,
    rotate,
    small_problem,
    widen_frame,
)

ORDERED = 1e-9  # share of the largest eigenvalue by which rounding may put two out of order
FRAME_FROM = 6  # a frame pays where n is so many times the capacity
FIRST_COLUMNS = 8  # of a basis without frame; they double as the rank asks


class Kept(NamedTuple):
    """What a learner keeps: stored values, their vectors as rows, the stored value outside."""

    values: Floats
    vectors: Floats
    outside: float


def _vectors(learners: Spectral, j: int) -> Floats:
    """The basis of learner j, as rows."""
    vectors = learners.basis[j, : learners.rank[j]]
    if learners.frame.shape[1] > 0:
        width = learners.width[j]
        vectors = vectors[:, :width] @ learners.frame[j, :, :width].T
    return vectors


@inner
def is_full(learners: Spectral, capacity: int) -> bool:
    """Whether a basis needs more columns before the next step."""
    columns = learners.spectrum.shape[1] - 1
    if columns == capacity:
        return False
    highest = 0
    for j in range(learners.rank.size):
        highest = max(highest, learners.rank[j])
    return bool(highest == columns)


@inner
def squared_distance(
    learners: Spectral, scratch: Scratch, j: int, geometry: Geometry, u: Difference
) -> float:
    """Squared distance q = u'Mu of learner j."""
    divergence = geometry.divergence
    rank, basis, w = learners.rank[j], learners.basis[j], scratch.weights[j]
    if learners.frame.shape[1] > 0:
        width, coordinates = learners.width[j], scratch.coordinates[j]
        fill(coordinates, 0.0, width)
        for i in range(u.where.size):
            add_scaled(coordinates, u.values[i], learners.frame[j, u.where[i]], width)
        for p in range(rank):
            w[p] = dot(basis[p], coordinates, width)
    else:
        for p in range(rank):
            w[p] = row_times(basis[p], u)
    q = inside = 0.0
    for p in range(rank):
        square = w[p] * w[p]
        inside += square
        q += eigenvalue(divergence, learners.spectrum[j, p]) * square
    if rank == u.full.size or (divergence == FROBENIUS and learners.outside[j] == 0.0):
        return q
    return q + eigenvalue(divergence, learners.outside[j]) * max(u.norm2 - inside, 0.0)


@inner
def _shrunk(
    learners: Spectral, j: int, divergence: int, values: Floats, rank: int, amount: float
) -> int:
    """Take over stored values, shrunk; returns the rank without zeros.

    These need no direction where all outside has eigenvalue 0 too.
    """
    spectrum, outside = learners.spectrum[j], shrink(divergence, learners.outside[j], amount)
    learners.outside[j] = outside
    for p in range(rank):
        spectrum[p] = shrink(divergence, values[p], amount)
    if divergence == FROBENIUS and outside == 0.0:
        while rank > 0 and spectrum[rank - 1] <= 0.0:
            rank -= 1
    return rank


@routine
def update(
    learners: Spectral, scratch: Scratch, j: int, geometry: Geometry, u: Difference, step: Step
) -> None:
    """Take a step; `squared_distance` of the same pair came before."""
    divergence, b, amount = geometry.divergence, step.b, step.shrink
    if b == 0.0 or u.where.size == 0:
        if amount > 0.0:  # the regulariser alone
            spectrum, rank = learners.spectrum[j], learners.rank[j]
            learners.rank[j] = _shrunk(learners, j, divergence, spectrum, rank, amount)
        return
    columns = widen_frame(learners, scratch, j, u)
    outside_length = new_direction(learners, scratch, j, u, columns)
    k = small_problem(learners, scratch, j, divergence, outside_length)
    c = -b / (1.0 + b * step.q) if divergence == BURG else -b
    values = scratch.values
    rank_one_eigh(scratch.poles, scratch.z, c, k, values, scratch.vectors, scratch.secular)
    rank = _shrunk(learners, j, divergence, values, k, amount)
    if rank > geometry.capacity:
        rank -= 1
        drop_one(learners, scratch, j, divergence, rank, k)
    learners.rank[j] = rank
    rotate(learners.basis[j], scratch, columns, k, rank)
    learners.age[j] += 1
    if learners.age[j] >= POLISH_EVERY and learners.frame.shape[1] == 0:
        learners.age[j] = 0
        polish(learners.basis[j], rank, columns, scratch.rotated)


@routine
def copy_learner(learners: Spectral, source: int, target: int) -> None:
    """Make one learner the equal of another."""
    rank, width = learners.rank[source], learners.width[source]
    for i in range(learners.frame.shape[1]):
        copy(learners.frame[target, i], learners.frame[source, i], width)
    columns = width if learners.frame.shape[1] > 0 else learners.basis.shape[2]
    for p in range(rank):
        copy(learners.basis[target, p], learners.basis[source, p], columns)
    copy(learners.spectrum[target], learners.spectrum[source], rank)
    learners.width[target] = width
    learners.rank[target] = rank
    learners.outside[target] = learners.outside[source]
    learners.mu[target] = learners.mu[source]
    learners.dropped[target] = learners.dropped[source]
    learners.age[target] = learners.age[source]


class BySpectrum(Representation):
    """Eigenvalues and a basis, with a frame where there are many features."""

    def new_learners(self, J: int, n: int, geometry: Geometry, identity: bool) -> Spectral:
        """Learners that all start at 0, or at the identity."""
        capacity = geometry.capacity
        has_frame = n >= FRAME_FROM * capacity
        columns = capacity if has_frame else min(capacity, FIRST_COLUMNS)
        widest = 2 * capacity if has_frame else 0
        one = 0.0 if geometry.divergence == VON_NEUMANN else 1.0
        return Spectral(
            frame=np.zeros((J, n if has_frame else 0, widest)),
            width=np.zeros(J, np.int64),
            basis=np.zeros((J, columns + 1, widest if has_frame else n)),
            spectrum=np.zeros((J, columns + 1)),
            rank=np.zeros(J, np.int64),
            outside=np.full(J, one if identity else 0.0),
            mu=np.ones(J),
            dropped=np.zeros(J),
            age=np.zeros(J, np.int64),
        )

    def grow(self, learners: Spectral, capacity: int) -> Spectral:
        """Twice the columns, up to the capacity, where a basis fills its own; else the same."""
        columns = learners.spectrum.shape[1]
        if learners.rank.max() < columns - 1 or columns - 1 == capacity:
            return learners
        more = min(2 * (columns - 1), capacity) + 1 - columns
        return learners._replace(
            basis=np.pad(learners.basis, ((0, 0), (0, more), (0, 0))),
            spectrum=np.pad(learners.spectrum, ((0, 0), (0, more))),
        )

    def widen(self, learners: Spectral, new: Spectral, geometry: Geometry) -> Spectral:
        """Learners of more features, which have been 0 so far: no basis has a part in them."""
        kept = [
            Kept(learners.spectrum[j, :rank], _vectors(learners, j), float(learners.outside[j]))
            for j, rank in enumerate(learners.rank)
        ]
        wider = self._laid_out(kept, new, geometry.capacity)
        return wider._replace(mu=learners.mu, dropped=learners.dropped, age=learners.age)

    def adopt(self, source: Source, new: Spectral, geometry: Geometry) -> Spectral:
        """Learners with the metrics of others, up to the capacity."""
        kept, dropped = [], []
        for metric in source.metrics():
            values, vectors = metric.eigenpairs()
            capacity = min(len(values), geometry.capacity)
            dropped.append(values[capacity:].sum())
            stored = np.maximum(values[:capacity], 1.0 / LARGEST)
            if geometry.divergence == VON_NEUMANN:
                stored = np.log(stored)
            kept.append(Kept(stored, vectors[:capacity], float(new.outside[0])))
        learners = self._laid_out(kept, new, geometry.capacity)
        return learners._replace(mu=source.mu, dropped=np.array(dropped))

    def _laid_out(self, kept: Sequence[Kept], new: Spectral, capacity: int) -> Spectral:
        """Learners in arrays such as new ones have, or larger; the frame is the basis itself."""
        learners = Spectral(
            *(np.zeros((len(kept), *array.shape[1:]), array.dtype) for array in new)
        )
        learners.rank[:] = [len(each.values) for each in kept]
        while (grown := self.grow(learners, capacity)) is not learners:
            learners = grown
        for j, (values, vectors, outside) in enumerate(kept):
            rank, n = vectors.shape
            learners.spectrum[j, :rank], learners.outside[j] = values, outside
            if learners.frame.shape[1] > 0:
                learners.frame[j, :n, :rank] = vectors.T
                learners.basis[j, :rank, :rank] = np.eye(rank)
                learners.width[j] = rank
            else:
                learners.basis[j, :rank, :n] = vectors
        return learners

    def check(self, learners: Spectral, geometry: Geometry, n_features: int) -> None:
        """Refuse learners that no stream can have led to; their arrays hold what they declare."""
        divergence, capacity = geometry
        _, n, widest = learners.frame.shape
        _, rows, columns = learners.basis.shape
        rank, width = learners.rank, learners.width
        if n > 0:
            fits = (n, widest, rows, columns) == (n_features, 2 * capacity, capacity + 1, widest)
            fits = fits and bool(np.all(rank <= width) and np.all(width <= widest))
        else:
            fits = widest == 0 and columns == n_features and 2 <= rows <= capacity + 1
            fits = fits and not width.any()
        if not (fits and np.all(rank < rows)):
            raise ValueError(
                f"the frame {learners.frame.shape}, the basis {learners.basis.shape} and their "
                f"parts in use, up to {width.max()} and {rank.max()}, do not fit {n_features} "
                f"features and rank {capacity}"
            )
        least, most = bounds(divergence)
        for j, kept in enumerate(rank):
            spectrum, used = learners.spectrum[j, :kept], width[j] if n > 0 else columns
            stored = np.append(spectrum, learners.outside[j])
            # The outside starts at 0 also where no eigenvalue gets there.
            if stored.max() > most or stored.min() < min(least, 0.0):
                raise ValueError(f"learner {j} has eigenvalues out of bounds")
            if np.any(np.diff(spectrum) > ORDERED * np.abs(spectrum).max(initial=0.0)):
                raise ValueError(f"learner {j} has eigenvalues that do not fall")
            if np.abs(learners.basis[j, :kept, :used]).max(initial=0.0) > 2.0:
                raise ValueError(f"learner {j} has a basis that is not orthonormal")
            if n > 0 and np.abs(learners.frame[j, :, :used]).max(initial=0.0) > 2.0:
                raise ValueError(f"learner {j} has a frame that is not orthonormal")

    def entries(self, learners: Spectral, j: int, geometry: Geometry) -> Entries:
        """M of learner j."""
        outside = learners.outside[j]
        untouched = np.exp(outside) if geometry.divergence == VON_NEUMANN else outside
        return Entries(self.metric(learners, j, geometry, 1.0).matrix(), float(untouched))

    def metric(self, learners: Spectral, j: int, geometry: Geometry, unit: float) -> Factored:
        """Metric of learner j, over ``unit``."""
        rank, vectors = learners.rank[j], _vectors(learners, j)
        values, outside = learners.spectrum[j, :rank], learners.outside[j]
        if geometry.divergence == VON_NEUMANN:
            values, outside = np.exp(values), np.exp(outside)
        if rank == vectors.shape[1]:
            outside = 0.0  # nothing is left out there
        return Factored(values / unit, vectors.copy(), float(outside) / unit)

    def truncated_mass(self, learners: Spectral, j: int) -> float:
        """Eigenvalue mass that the capacity has cost learner j."""
        return float(learners.dropped[j])

    def make_scratch(self, learners: Spectral, n_features: int) -> Scratch:
        """Working memory for a pass over a batch."""
        n_learners, k, columns = learners.basis.shape
        return Scratch(
            coordinates=np.empty((n_learners, columns)),
            weights=np.empty((n_learners, k)),
            outside=np.empty(n_features),
            poles=np.empty(k),
            z=np.empty(k),
            order=np.empty(k, np.int64),
            values=np.empty(k),
            vectors=np.empty((k, k)),
            rotated=np.empty((k, columns)),
            correction=np.empty(columns),
            tall=np.empty((2, k, learners.frame.shape[1])),
            secular=make_secular_scratch(k),
        )


SPECTRAL = register(
    BySpectrum("spectral", Spectral, squared_distance, update, copy_learner, is_full=is_full)
)
