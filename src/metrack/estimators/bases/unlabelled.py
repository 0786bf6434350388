"""What points without judgements say: what tells neighbours from others tends to carry meaning.

The prior is M0 = C^1/2 S^-1 C^1/2, both shrunk: C is the covariance of the points, S that of the
differences between neighbours. Directions in which all points differ, but neighbours little, are
those of clusters. It is of use twice:

1. Learning starts from M0^w, a part of the way from plain distance to the prior, and is pulled
   back there: pairs are learned as M0^(w/2) u, and what is plain distance to a learner is M0^w.
   This is settled when the first pair comes, by the points of which it is known then.
2. While few pairs are known to be alike, what is put out is (1 - share) M + share M0, both with
   the same mean squared distance; the share falls fast with that number.
"""

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag
from scipy.spatial.distance import cdist

from metrack.engine.numerics.factored import ROUNDING, Factored
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.pairs import Pairs, turned
from metrack.engine.numerics.records import counts, floats

SHRINKAGE = 0.1  # of the mean variance, added to all directions
NEIGHBOURS = 3  # of each point ...
COMPARED = 256  # ... among so many that came one after another
ON_THE_WAY = 0.2  # w, from plain distance to the prior
ENOUGH = 10.0  # alike pairs, at which the prior has half a share ...
STEEPNESS = 4  # ... and how fast it falls with more
REMEMBERED = 100_000  # points; older ones fade, as points may drift
WIDEST = 1024  # features, whose covariance is kept
BLOCK = 4096  # points taken at a time
NO_SHARE = 1e-6  # of the prior: less is none


class Moments(NamedTuple):
    """Mean and covariance of the points, and how much is known beside them."""

    counts: Annotated[Ints, counts(2)]  # points, as many as are remembered; alike pairs learned
    mean: Annotated[Floats, floats("n")]
    scatter: Annotated[Floats, floats("n", "n")]  # sum of (x - mean)(x - mean)'


class Neighbours(NamedTuple):
    """How neighbours differ, and points that have not been compared yet."""

    scatter: Annotated[Floats, floats("n", "n")]  # sum of uu', u the differences
    waiting: Annotated[Floats, floats(COMPARED, "n")]
    n_waiting: Annotated[Ints, counts(1, most=COMPARED - 1)]


class Start(NamedTuple):
    """Where learning starts: M = root^2 is plain distance to learners."""

    # Shrinkage keeps it far from these bounds.
    root: Annotated[Floats, floats("n", "n", least=-1e3, most=1e3)]

    def as_learned(self, pairs: Pairs) -> Pairs:
        """Pairs as learners see them."""
        return turned(pairs, self.root)

    def on_points(self, metric: Factored) -> Factored:
        """What learners found, as a metric on points."""
        values, vectors = np.linalg.eigh(self.root @ metric.matrix() @ self.root)
        kept = values > ROUNDING * max(values[-1], 0.0)
        return Factored(values[kept][::-1], vectors.T[kept][::-1], 0.0)


class Points(NamedTuple):
    """What is known of unlabelled points."""

    moments: Moments
    neighbours: Neighbours
    start: Start | None = None  # from plain distance


def no_points(n_features: int, n_pairs: int) -> Points:
    """Nothing seen yet; pairs that were learned before all count as alike."""
    zeros = np.zeros(n_features), np.zeros((n_features, n_features))
    return Points(Moments(np.array([0, n_pairs]), *zeros), no_neighbours(n_features))


def no_neighbours(n_features: int) -> Neighbours:
    """Nothing compared yet."""
    scatter = np.zeros((n_features, n_features))
    return Neighbours(scatter, np.zeros((COMPARED, n_features)), np.zeros(1, np.int64))


def take(seen: Points, X: Floats | sp.csr_array) -> Points:
    """What is known after more points."""
    for start in range(0, X.shape[0], BLOCK):
        block = X[start : start + BLOCK]
        block = block.toarray() if isinstance(block, sp.csr_array) else block
        seen = seen._replace(
            moments=_take(seen.moments, block), neighbours=_compare(seen.neighbours, block)
        )
    return seen


def _take(seen: Moments, block: Floats) -> Moments:
    before, added = seen.counts[0], len(block)
    kept = min(before, max(REMEMBERED - added, 0))
    mean = block.mean(axis=0)
    apart, centred = mean - seen.mean, block - mean
    total = kept + added
    scatter = seen.scatter * (kept / max(before, 1)) + centred.T @ centred
    scatter += (kept * added / total) * np.outer(apart, apart)
    return Moments(np.array([total, seen.counts[1]]), seen.mean + apart * added / total, scatter)


def _compare(seen: Neighbours, block: Floats) -> Neighbours:
    """Compare points with one another as soon as enough of them wait."""
    scatter, waiting, n_waiting = seen.scatter, seen.waiting.copy(), int(seen.n_waiting[0])
    while len(block) > 0:
        taken = min(COMPARED - n_waiting, len(block))
        waiting[n_waiting : n_waiting + taken] = block[:taken]
        block, n_waiting = block[taken:], n_waiting + taken
        if n_waiting == COMPARED:
            scatter = scatter * (1.0 - COMPARED / REMEMBERED) + _between(waiting)
            n_waiting = 0
    return Neighbours(scatter, waiting, np.array([n_waiting]))


def _between(points: Floats) -> Floats:
    """The sum of uu', u the differences between points and their nearest neighbours."""
    if len(points) < 2:
        return np.zeros((points.shape[1], points.shape[1]))
    squares = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(squares, np.inf)
    nearest = np.argsort(squares, axis=1, kind="stable")[:, : min(NEIGHBOURS, len(points) - 1)]
    u = (points[:, None] - points[nearest]).reshape(-1, points.shape[1])
    found: Floats = u.T @ u
    return found


def widen(seen: Points, n_features: int) -> Points:
    """The same with more features, which have been 0 so far."""
    moments, neighbours, start = seen
    more = n_features - len(moments.mean)
    return Points(
        moments._replace(
            mean=np.pad(moments.mean, (0, more)), scatter=np.pad(moments.scatter, (0, more))
        ),
        neighbours._replace(
            scatter=np.pad(neighbours.scatter, (0, more)),
            waiting=np.pad(neighbours.waiting, ((0, 0), (0, more))),
        ),
        start and Start(block_diag(start.root, np.eye(more))),
    )


def settled(seen: Points) -> Points:
    """The same, with a start for learning if points are more than features, and vary."""
    n_points, covariance = seen.moments.counts[0], _covariance(seen.moments)
    spread = np.trace(covariance)
    if n_points <= len(covariance) or spread <= 0.0:
        return seen
    values, vectors = np.linalg.eigh(_prior(covariance, seen.neighbours))
    root = (vectors * values ** (0.5 * ON_THE_WAY)) @ vectors.T
    # The mean squared distance stays: some learners have units of their own.
    root *= np.sqrt(spread / np.sum((root @ covariance) * root))
    return seen._replace(start=Start(root))


def on_points(metric: Factored, seen: Points, mu: float, n_pairs: int) -> Factored:
    """What learners found, as a metric on points, together with what the points say.

    Before the first pair it is the prior alone, on which the mean pair is at the threshold.
    """
    if seen.start is not None:
        metric = seen.start.on_points(metric)
    share = 1.0 / (1.0 + (seen.moments.counts[1] / ENOUGH) ** STEEPNESS)
    covariance = _covariance(seen.moments)
    if np.trace(covariance) <= 0.0 or (n_pairs > 0 and share < NO_SHARE):
        return metric
    prior = _prior(covariance, seen.neighbours)
    learned, spread = metric.matrix(), np.sum(prior * covariance)
    if n_pairs == 0:
        mixed = prior * (mu / (2.0 * spread))
    else:
        mixed = (1.0 - share) * learned
        mixed += prior * (share * np.sum(learned * covariance) / spread)
    values, vectors = np.linalg.eigh(mixed)
    return Factored(np.maximum(values[::-1], 0.0), vectors.T[::-1], 0.0)


def _covariance(seen: Moments) -> Floats:
    found: Floats = seen.scatter / max(seen.counts[0] - 1, 1)
    return found


def _prior(covariance: Floats, seen: Neighbours) -> Floats:
    """M0, up to a factor. Without neighbours, S is taken to be the same in all directions."""
    near = seen.scatter + _between(seen.waiting[: seen.n_waiting[0]])
    values, vectors = np.linalg.eigh(_shrunk(covariance))
    root = (vectors * np.sqrt(values)) @ vectors.T
    found = root @ np.linalg.solve(_shrunk(near), root)
    symmetric: Floats = 0.5 * (found + found.T)
    return symmetric


def _shrunk(covariance: Floats) -> Floats:
    """Of mean variance 1 before the shrinkage, if there is any."""
    variance = np.trace(covariance) / len(covariance)
    scaled = covariance / variance if variance > 0.0 else np.zeros_like(covariance)
    return scaled + SHRINKAGE * np.eye(len(covariance))
