"""Clusters that k-means finds in an embedding, and how well they are those that were meant.

Points are stored feature by feature, so that all loops over them are whole vector instructions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metrack.checks import Floats, Ints, number, whole
from metrack.engine.numerics.kernels import add_scaled, copy, dot, fill, inner, kernel, routine
from metrack.evaluate.checks import check_points

MAX_ITER = 100
SHORT = 10  # steps after which the best start is chosen
TILE = 512  # points at a time
TOLERANCE = 1e-4  # squared move of the centres at which to stop, in mean variances of a feature


class Clusters(NamedTuple):
    """What `kmeans` finds.

    Attributes
    ----------
    labels : array (n_points,)
    centres : array (n_clusters, n_features)
    inertia : float
        Sum of squared distances to the centres.
    """

    labels: Ints
    centres: Floats
    inertia: float


class Interval(NamedTuple):
    """A share, and the interval it lies in with the given confidence."""

    share: float
    low: float
    high: float


def kmeans(
    X: ArrayLike, n_clusters: int, n_init: int = 4, random_state: int | np.random.Generator = 0
) -> Clusters:
    """Lloyd's k-means from several starts by greedy k-means++, as scikit-learn's ``KMeans`` does.

    Parameters
    ----------
    X : array (n_points, n_features)
    n_clusters : int
    n_init : int
        Starts, of which the best result is taken.
    random_state : int or Generator
        Same seed, same clusters.

    Examples
    --------
    >>> from metrack.evaluate.clustering import kmeans
    >>> found = kmeans([[0.0], [1.0], [8.0], [9.0]], 2)
    >>> float(found.inertia), sorted(found.centres.ravel().tolist())
    (1.0, [0.5, 8.5])
    """
    points = check_points(X, "X")
    n_points, n_features = points.shape
    k = whole("n_clusters", n_clusters, most=n_points)
    n_init = whole("n_init", n_init)
    n_tries = 2 + int(np.log(k))
    uniforms = np.random.default_rng(random_state).random((n_init, k, n_tries))
    middle = points.mean(axis=0)
    columns = np.ascontiguousarray((points - middle).T)
    work = _Work(
        squares=np.einsum("ij,ij->j", columns, columns),
        scores=np.empty((k, TILE)),
        nearest=np.empty(n_points),
        tried=np.empty((2, n_points)),
        centres=np.empty((k, n_features)),
        sums=np.empty((k, n_features)),
        lengths=np.empty(k),
        counts=np.empty(k),
        labels=np.zeros(n_points, dtype=np.int64),
    )
    centres = np.empty((k, n_features))
    tolerance = TOLERANCE * float(work.squares.sum()) / columns.size if columns.size else 0.0
    inertia = _kmeans(columns, uniforms, tolerance, work, centres)
    return Clusters(work.labels, centres + middle, inertia)


def nmi(labels: ArrayLike, found: ArrayLike) -> float:
    """Normalised mutual information of two labellings: 1 the same partition, 0 independent ones.

    The mutual information is divided by the mean of the two entropies, as scikit-learn's
    ``normalized_mutual_info_score`` does.

    Parameters
    ----------
    labels, found : array (n_points,)
        Whole numbers from 0.

    Examples
    --------
    >>> from metrack.evaluate.clustering import nmi
    >>> nmi([0, 0, 1, 1], [1, 1, 0, 0]), nmi([0, 0, 1, 1], [0, 1, 0, 1])
    (1.0, 0.0)
    """
    a, b = np.asarray(labels), np.asarray(found)
    if a.shape != b.shape or a.ndim != 1 or not a.size:
        raise ValueError(f"the labellings must be two 1-D arrays alike; got {a.shape}, {b.shape}")
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu" or min(a.min(), b.min()) < 0:
        raise ValueError("labels must be whole numbers from 0; np.unique can make them")
    n_found = int(b.max()) + 1
    joint = np.bincount(a * n_found + b, minlength=(int(a.max()) + 1) * n_found)
    table = joint.reshape(-1, n_found) / a.size
    entropies = _entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0))
    if entropies == 0.0:  # one cluster each: the same partition
        return 1.0
    return float(np.clip(2.0 * (1.0 - _entropy(table.ravel()) / entropies), 0.0, 1.0))


def kmeans_nmi(
    X: ArrayLike, labels: ArrayLike, n_init: int = 4, random_state: int | np.random.Generator = 0
) -> float:
    """NMI of the true labels with the clusters that k-means finds, as many as there are labels.

    Parameters
    ----------
    X : array (n_points, n_features)
        Points, in the embedding to be judged.
    labels : array (n_points,)
        Whole numbers from 0.
    n_init
        As in `kmeans`.
    random_state
        As in `kmeans`.

    Examples
    --------
    >>> from metrack.evaluate import kmeans_nmi
    >>> kmeans_nmi([[0.0], [1.0], [8.0], [9.0]], [1, 1, 0, 0])
    1.0
    """
    codes = np.asarray(labels)
    return nmi(codes, kmeans(X, len(np.unique(codes)), n_init, random_state).labels)


def exceedance(values: ArrayLike, level: float = 0.8, confidence: float = 0.95) -> Interval:
    """Share of values above a level, with Wilson's interval for the probability.

    Parameters
    ----------
    values : array (n_trials,)
        Such as the NMI of each trial.
    level : float
    confidence : float

    Examples
    --------
    >>> from metrack.evaluate import exceedance
    >>> share, low, high = exceedance([0.9, 0.85, 0.95, 0.3], level=0.8)
    >>> share, round(low, 2), round(high, 2)
    (0.75, 0.3, 0.95)
    """
    array = np.asarray(values, dtype=np.float64)
    return wilson_interval(int(np.count_nonzero(array > level)), array.size, confidence)


def wilson_interval(n_successes: int, n_trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a probability, sound also near 0 and 1 and for few trials.

    Examples
    --------
    >>> from metrack.evaluate import wilson_interval
    >>> [round(bound, 3) for bound in wilson_interval(0, 10)]
    [0.0, 0.0, 0.278]
    """
    from scipy.stats import binomtest

    n = whole("n_trials", n_trials)
    if not 0 <= n_successes <= n:
        raise ValueError(f"n_successes is {n_successes}; it must be from 0 to n_trials={n}")
    if not 0.0 < number("confidence", confidence) < 1.0:
        raise ValueError(f"confidence is {confidence!r}; it must lie between 0 and 1")
    share = n_successes / n
    # Tested against its own share, as that needs no search for a p-value.
    found = binomtest(n_successes, n, share).proportion_ci(confidence, method="wilson")
    # Rounding must leave the share inside.
    return Interval(share, min(share, float(found.low)), max(share, float(found.high)))


def _entropy(shares: Floats) -> float:
    shares = shares[shares > 0.0]
    return float(-(shares * np.log(shares)).sum())


class _Work(NamedTuple):
    """Arrays that a run of k-means works in."""

    squares: Floats  # (n_points,), squared lengths
    scores: Floats  # (n_clusters, TILE), -2 times the inner products with each centre
    nearest: Floats  # (n_points,), squared distance to the nearest centre
    tried: Floats  # (2, n_points): the same with the best candidate so far, and with another
    centres: Floats
    sums: Floats  # of each centre's points
    lengths: Floats  # squared, of the centres
    counts: Floats
    labels: Ints


@routine
def _project(columns: Floats, start: int, direction: Floats, out: Floats, n: int) -> None:
    """Inner products of n points with -2 times a direction."""
    stop, n_features = start + n, len(columns)
    quads = n_features - n_features % 4
    fill(out, 0.0, n)
    for f in range(0, quads, 4):  # four at a time: the sum is read and written a fourth as often
        a, b = -2.0 * direction[f], -2.0 * direction[f + 1]
        c, d = -2.0 * direction[f + 2], -2.0 * direction[f + 3]
        p, q = columns[f][start:stop], columns[f + 1][start:stop]
        r, s = columns[f + 2][start:stop], columns[f + 3][start:stop]
        for i in range(n):
            out[i] += a * p[i] + b * q[i] + c * r[i] + d * s[i]
    for f in range(quads, n_features):
        add_scaled(out, -2.0 * direction[f], columns[f][start:stop], n)


@routine
def _place(nearest: Floats, uniform: float) -> int:
    """A point drawn in proportion to its squared distance."""
    total = 0.0
    for i in range(len(nearest)):
        total += nearest[i]
    goal = uniform * total
    for i in range(len(nearest)):
        goal -= nearest[i]
        if goal < 0.0:
            return i
    return min(int(uniform * len(nearest)), len(nearest) - 1)  # all points are one


@routine
def _try(columns: Floats, at: int, work: _Work, direction: Floats, out: Floats) -> float:
    """Squared distances to the nearest centre, with a point as a further one; their sum."""
    for f in range(len(columns)):
        direction[f] = columns[f, at]
    _project(columns, 0, direction, out, len(out))
    total = 0.0
    for i in range(len(out)):
        square = max(work.squares[i] + work.squares[at] + out[i], 0.0)
        out[i] = min(square, work.nearest[i])
        total += out[i]
    return total


@routine
def _start(columns: Floats, uniforms: Floats, work: _Work) -> None:
    """Greedy k-means++: each centre is the best of a few points drawn far from the others."""
    n = columns.shape[1]
    fill(work.nearest, np.inf, n)
    first = min(int(uniforms[0, 0] * n), n - 1)
    _try(columns, first, work, work.centres[0], work.tried[0])
    copy(work.nearest, work.tried[0], n)
    for c in range(1, len(work.centres)):
        least = np.inf
        for uniform in uniforms[c]:
            at = _place(work.nearest, uniform)
            total = _try(columns, at, work, work.sums[0], work.tried[1])
            if total < least:
                least = total
                for f in range(len(columns)):
                    work.centres[c, f] = columns[f, at]
                copy(work.tried[0], work.tried[1], n)
        copy(work.nearest, work.tried[0], n)


@routine
def _sweep(columns: Floats, work: _Work) -> float:
    """Give each point to its nearest centre, and sum up each centre's points.

    A few points at a time, which stay in the nearest cache. Returns the sum of squared distances.
    """
    k, n_features = work.centres.shape
    for c in range(k):
        work.lengths[c] = dot(work.centres[c], work.centres[c], n_features)
        work.counts[c] = 0.0
        fill(work.sums[c], 0.0, n_features)
    inertia = 0.0
    for start in range(0, columns.shape[1], TILE):
        n = min(TILE, columns.shape[1] - start)
        for c in range(k):
            _project(columns, start, work.centres[c], work.scores[c], n)
        inertia += _label(work, work.squares[start:], work.labels[start:], n)
        for f in range(n_features):
            for c in range(k):
                work.sums[c, f] += dot(columns[f][start:], work.scores[c], n)
    return max(inertia, 0.0)


@inner
def _label(work: _Work, squares: Floats, labels: Ints, n: int) -> float:
    """Labels of a few points by their scores, which become 1 at the label and 0 elsewhere."""
    inertia = 0.0
    for i in range(n):
        label, least = 0, work.scores[0, i] + work.lengths[0]
        for c in range(1, len(work.lengths)):
            score = work.scores[c, i] + work.lengths[c]
            if score < least:
                label, least = c, score
        for c in range(len(work.lengths)):
            work.scores[c, i] = 0.0
        work.scores[label, i] = 1.0
        work.counts[label] += 1.0
        labels[i] = label
        inertia += squares[i] + least
    return inertia


@routine
def _move(work: _Work) -> float:
    """Put centres in the middle of their points; one without any stays. The squared move."""
    total = 0.0
    for c in range(len(work.counts)):
        if work.counts[c] > 0.0:
            for f in range(work.centres.shape[1]):
                centre = work.sums[c, f] / work.counts[c]
                total += (centre - work.centres[c, f]) ** 2
                work.centres[c, f] = centre
    return total


@routine
def _run(columns: Floats, tolerance: float, n_steps: int, work: _Work) -> float:
    """Lloyd's steps until the centres hardly move; the inertia before the last."""
    inertia = np.inf
    for _ in range(n_steps):
        inertia = _sweep(columns, work)
        if _move(work) <= tolerance:
            break
    return inertia


@kernel
def _kmeans(
    columns: Floats, uniforms: Floats, tolerance: float, work: _Work, found: Floats
) -> float:
    """The best of several short runs, run to its end: ``found`` and labels; its inertia."""
    k, n_features = found.shape
    best = np.inf
    for start in range(len(uniforms)):
        _start(columns, uniforms[start], work)
        inertia = _run(columns, tolerance, SHORT, work)
        if inertia < best:
            best = inertia
            for c in range(k):
                copy(found[c], work.centres[c], n_features)
    for c in range(k):
        copy(work.centres[c], found[c], n_features)
    _run(columns, tolerance, MAX_ITER, work)
    best = _sweep(columns, work)
    for c in range(k):
        copy(found[c], work.centres[c], n_features)
    return best
