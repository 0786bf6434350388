"""What points without judgements say: directions in which they vary much tend to carry meaning.

The prior is M0 = C + shrinkage, C the covariance of the points. While few pairs are known to be
alike, what is put out is (1 - share) M + share M0, both with the same mean squared distance; the
share falls fast with that number. What is learned does not change.
"""

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp

from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.records import counts, floats

SHRINKAGE = 0.1  # of the mean variance, added to all directions
ENOUGH = 14.0  # alike pairs, at which the prior has half a share ...
STEEPNESS = 4  # ... and how fast it falls with more
REMEMBERED = 100_000  # points; older ones fade, as points may drift
WIDEST = 1024  # features, whose covariance is kept
BLOCK = 4096  # points taken at a time


class Points(NamedTuple):
    """What is known of unlabelled points."""

    counts: Annotated[Ints, counts(2)]  # points, as many as are remembered; alike pairs learned
    mean: Annotated[Floats, floats("n")]
    scatter: Annotated[Floats, floats("n", "n")]  # sum of (x - mean)(x - mean)'


def no_points(n_features: int, n_pairs: int) -> Points:
    """Nothing seen yet; pairs that were learned before all count as alike."""
    zeros = np.zeros(n_features), np.zeros((n_features, n_features))
    return Points(np.array([0, n_pairs]), *zeros)


def take(seen: Points, X: Floats | sp.csr_array) -> Points:
    """What is known after more points."""
    for start in range(0, X.shape[0], BLOCK):
        block = X[start : start + BLOCK]
        seen = _take(seen, block.toarray() if isinstance(block, sp.csr_array) else block)
    return seen


def _take(seen: Points, block: Floats) -> Points:
    before, added = seen.counts[0], len(block)
    kept = min(before, max(REMEMBERED - added, 0))
    mean = block.mean(axis=0)
    apart, centred = mean - seen.mean, block - mean
    total = kept + added
    scatter = seen.scatter * (kept / max(before, 1)) + centred.T @ centred
    scatter += (kept * added / total) * np.outer(apart, apart)
    return Points(np.array([total, seen.counts[1]]), seen.mean + apart * added / total, scatter)


def widen(seen: Points, n_features: int) -> Points:
    """The same with more features, which have been 0 so far."""
    more = n_features - len(seen.mean)
    return seen._replace(
        mean=np.pad(seen.mean, (0, more)), scatter=np.pad(seen.scatter, ((0, more), (0, more)))
    )


def with_prior(metric: Factored, seen: Points, mu: float, n_pairs: int) -> Factored:
    """A metric together with what the points say.

    Before the first pair it is the prior alone, on which the mean pair is at the threshold.
    """
    covariance = seen.scatter / max(seen.counts[0] - 1, 1)
    variance = np.trace(covariance) / len(covariance)
    if variance <= 0.0:
        return metric
    prior = covariance / variance + SHRINKAGE * np.eye(len(covariance))
    learned, spread = metric.matrix(), np.sum(prior * covariance)
    if n_pairs == 0:
        mixed = prior * (mu / (2.0 * spread))
    else:
        share = 1.0 / (1.0 + (seen.counts[1] / ENOUGH) ** STEEPNESS)
        mixed = (1.0 - share) * learned
        mixed += prior * (share * np.sum(learned * covariance) / spread)
    values, vectors = np.linalg.eigh(mixed)
    return Factored(np.maximum(values[::-1], 0.0), vectors.T[::-1], 0.0)
