"""The basis of a spectral metric: how it takes up a direction, turns, and stays orthonormal."""

import math
from typing import Annotated, NamedTuple

from metrack.engine.numerics.divergences import BURG, LARGEST, eigenvalue
from metrack.engine.numerics.kernels import (
    Floats,
    Ints,
    add_scaled,
    combine,
    copy,
    dot,
    fill,
    inner,
    routine,
)
from metrack.engine.numerics.pairs import Difference
from metrack.engine.numerics.records import counts, floats
from metrack.engine.numerics.secular import SecularScratch

# A direction whose part outside the basis is smaller than this share of it counts as lying in the
# basis.
IN_SPAN = 1e-14
# Rotations multiply the basis's rounding errors; after so many its columns are made orthonormal
# again.
POLISH_EVERY = 256


class Spectral(NamedTuple):
    """The state of J learners. Every array has one entry (row, block) a learner."""

    # F: (J, n, widest), or (J, 0, 0) where there is no frame.
    frame: Annotated[Floats, floats("J", "n or 0", "widest")]
    width: Annotated[Ints, counts("J")]  # columns of the frame in use
    # Q': (J, capacity + 1 at most, widest or n), one row to spare for the step.
    basis: Annotated[Floats, floats("J", "rows", "columns")]
    spectrum: Annotated[Floats, floats("J", "rows")]  # stored values, descending
    rank: Annotated[Ints, counts("J")]  # rows of the basis in use
    # a: the stored value of every direction outside the basis.
    outside: Annotated[Floats, floats("J", least=-LARGEST, most=LARGEST)]
    mu: Annotated[Floats, floats("J", least=1.0, most=LARGEST)]
    dropped: Annotated[Floats, floats("J", least=0.0)]  # mass that the capacity has cost so far
    # Rotations since the basis was last polished.
    age: Annotated[Ints, counts("J", most=POLISH_EVERY)]


class Scratch(NamedTuple):
    """What `squared_distance` leaves for `update`, and what a step needs in passing."""

    coordinates: Floats  # (J, columns of Q'): u in the frame
    weights: Floats  # (J, capacity + 1): w = V'u
    outside: Floats  # part of u outside the basis, and before that outside the frame
    poles: Floats
    z: Floats
    order: Ints  # row of Q' behind each pole
    values: Floats
    vectors: Floats  # eigenvectors of the small problem, as rows
    rotated: Floats  # the new Q'
    correction: Floats
    tall: Floats  # (2, capacity + 1, n) where there is a frame to collapse
    secular: SecularScratch


@routine
def widen_frame(learners: Spectral, scratch: Scratch, j: int, u: Difference) -> int:
    """Make u a combination of the frame's columns, adding one where it is not.

    Returns how many there are.
    """
    if learners.frame.shape[1] == 0:
        return u.full.size
    worn = learners.age[j] >= POLISH_EVERY
    if worn or learners.width[j] == learners.frame.shape[2]:
        _collapse(learners, scratch, j, worn)
    frame, width = learners.frame[j], learners.width[j]
    residual, coordinates = scratch.outside, scratch.coordinates[j]
    copy(residual, u.full, residual.size)
    length = math.sqrt(dot(residual, residual, residual.size))
    left = _reject_from_frame(frame, width, residual, coordinates)
    if left < 0.7 * length:  # "twice is enough"
        correction = scratch.correction
        fill(correction, 0.0, width)
        for i in range(residual.size):
            add_scaled(correction, residual[i], frame[i], width)
        left = _reject_from_frame(frame, width, residual, correction)
        add_scaled(coordinates, 1.0, correction, width)
    if left > IN_SPAN * length:
        for i in range(residual.size):
            frame[i, width] = residual[i] / left
        for p in range(learners.rank[j]):
            learners.basis[j, p, width] = 0.0
        coordinates[width] = left
        width += 1
        learners.width[j] = width
    return int(width)


@inner
def _reject_from_frame(frame: Floats, width: int, vector: Floats, coordinates: Floats) -> float:
    """Take F times the coordinates from a vector; returns the length of what is left."""
    for i in range(vector.size):
        vector[i] -= dot(frame[i], coordinates, width)
    return math.sqrt(dot(vector, vector, vector.size))


@inner
def new_direction(
    learners: Spectral, scratch: Scratch, j: int, u: Difference, columns: int
) -> float:
    """Put the unit vector of u's part outside the basis in the spare row.

    Returns that part's length.
    """
    rank, basis, w = learners.rank[j], learners.basis[j], scratch.weights[j]
    if rank == columns:
        return 0.0
    start = u.full if learners.frame.shape[1] == 0 else scratch.coordinates[j]
    residual = basis[rank]
    copy(residual, start, columns)
    length = math.sqrt(dot(residual, residual, columns))
    for p in range(rank):
        add_scaled(residual, -w[p], basis[p], columns)
    left = math.sqrt(dot(residual, residual, columns))
    if left < 0.7 * length:  # "twice is enough"
        for p in range(rank):
            correction = dot(basis[p], residual, columns)
            add_scaled(residual, -correction, basis[p], columns)
            w[p] += correction
        left = math.sqrt(dot(residual, residual, columns))
    if left <= IN_SPAN * length:
        return 0.0
    for i in range(columns):
        residual[i] /= left
    return left


@inner
def small_problem(
    learners: Spectral, scratch: Scratch, j: int, divergence: int, outside_length: float
) -> int:
    """Poles (descending) and vector of the small eigenproblem; returns its size."""
    rank, spectrum, w = learners.rank[j], learners.spectrum[j], scratch.weights[j]
    outside = learners.outside[j]
    k = 0
    placed = outside_length == 0.0
    for p in range(rank + 1):
        if not placed and (p == rank or spectrum[p] < outside):
            scratch.poles[k], scratch.z[k], scratch.order[k] = outside, outside_length, rank
            placed = True
            k += 1
        if p < rank:
            scratch.poles[k], scratch.z[k], scratch.order[k] = spectrum[p], w[p], p
            k += 1
    if divergence == BURG:
        for i in range(k):
            scratch.z[i] *= scratch.poles[i]
    return k


@routine
def drop_one(
    learners: Spectral, scratch: Scratch, j: int, divergence: int, rank: int, k: int
) -> None:
    """Merge the eigenvalue nearest to the outside, of rank + 1, into it and account for that."""
    spectrum = learners.spectrum[j]
    outside = eigenvalue(divergence, learners.outside[j])
    nearest, cost = 0, math.inf
    for p in range(rank + 1):
        difference = abs(eigenvalue(divergence, spectrum[p]) - outside)
        if difference <= cost:
            nearest, cost = p, difference
    learners.dropped[j] += cost
    for p in range(nearest, rank):
        spectrum[p] = spectrum[p + 1]
        copy(scratch.vectors[p], scratch.vectors[p + 1], k)


@inner
def rotate(basis: Floats, scratch: Scratch, columns: int, k: int, rank: int) -> None:
    """The new basis: the small problem's eigenvectors that are kept, in terms of the old."""
    rotated, order = scratch.rotated, scratch.order
    for r in range(rank):
        combine(rotated[r], scratch.vectors[r], basis, order, k, columns)
    for r in range(rank):
        copy(basis[r], rotated[r], columns)


@routine
def _collapse(learners: Spectral, scratch: Scratch, j: int, worn: bool) -> None:
    """F <- FQ, Q <- I: the frame keeps only the basis, and has room again."""
    rank, frame, basis = learners.rank[j], learners.frame[j], learners.basis[j]
    width = learners.width[j]
    product = scratch.tall[0]
    for i in range(frame.shape[0]):
        for p in range(rank):
            product[p, i] = dot(basis[p], frame[i], width)
    if worn:
        learners.age[j] = 0
        polish(product, rank, frame.shape[0], scratch.tall[1])
    for i in range(frame.shape[0]):
        for p in range(rank):
            frame[i, p] = product[p, i]
    for p in range(rank):
        fill(basis[p], 0.0, width)
        basis[p, p] = 1.0
    copy(scratch.coordinates[j], scratch.weights[j], rank)
    learners.width[j] = rank


@routine
def polish(basis: Floats, rank: int, columns: int, old: Floats) -> None:
    """One step of Newton and Schulz, (3I - VV') V / 2 on rows.

    Squares the distance from orthonormality.
    """
    for p in range(rank):
        copy(old[p], basis[p], columns)
    for p in range(rank):
        for r in range(rank):
            defect = (1.0 if p == r else 0.0) - dot(old[p], old[r], columns)
            add_scaled(basis[p], 0.5 * defect, old[r], columns)
