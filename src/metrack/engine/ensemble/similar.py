"""The covariance of similar pairs, forgotten as fast as the ensemble says: what neighbours go by.

Pairs tell which distances are large and which small. Among near neighbours all are small, and what
counts is how much points of the same class differ in each direction: the covariance S of the
differences of similar pairs. Its inverse is what LDA and RCA whiten by. Here S forgets
exponentially, over a tenth of the effective window, the trusted experts' memory: points may turn
faster than what is alike. The fewer pairs it rests on, the more it is shrunk towards the identity.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.ensemble.bank import Bank
from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.ensemble import Ensemble, Said
from metrack.engine.numerics.factored import Factored, nearest_metric
from metrack.engine.numerics.kernels import Floats, inner, kernel, mix
from metrack.engine.numerics.pairs import Chunk, Difference, Pairs, difference, rest
from metrack.engine.numerics.records import floats

SHARE = 0.1  # of the effective window
SHORTEST = 8.0  # similar pairs
NOISE = 0.05  # times features / similar pairs that S rests on: shrinkage, in mean eigenvalues
ALONG = 0.4  # of the way from the metric that judges pairs to the inverse covariance


class Similar(NamedTuple):
    """What similar pairs have shown of late."""

    scatter: Annotated[Floats, floats("width", "width")]  # weighted sum of uu'


class Beyond(NamedTuple):
    """What is outside of the features at hand, where these are directions of a basis."""

    n_features: int
    scatter: float  # the trace there


NOTHING = Beyond(0, 0.0)


def new_similar(n_features: int) -> Similar:
    """Nothing seen yet."""
    return Similar(np.zeros((n_features, n_features)))


def memory(window: Any) -> Any:
    """How many similar pairs S rests on, by the effective window, or at each of some."""
    return np.maximum(SHARE * window, SHORTEST)


def for_neighbours(
    similar: Similar, metric: Factored, window: float, beyond: Beyond = NOTHING
) -> Factored:
    """A metric between a given one and the inverse covariance; its trace stays what it was.

    It lies on the geodesic between the two, as GMML's does (Zadeh, Hosseini and Sra, 2016): a
    weighted geometric mean, which keeps a direction small where either of them says so. On a basis,
    the metric's ``outside`` is beyond the features at hand.
    """
    n = len(similar.scatter) + beyond.n_features
    mean = (np.trace(similar.scatter) + beyond.scatter) / n
    trace = float(metric.values.sum() + metric.outside * (n - len(metric.values)))
    if mean <= 0.0 or trace <= 0.0:
        return metric
    shrinkage = NOISE * n / memory(window)
    values, vectors = np.linalg.eigh(similar.scatter / mean)
    spread = np.sqrt(np.maximum(values, 0.0) + shrinkage)
    whitened = (vectors * spread).T @ metric.matrix() @ (vectors * spread)
    values, turned = np.linalg.eigh(whitened)
    root = (vectors / spread) @ (turned * np.maximum(values, 0.0) ** (0.5 - 0.5 * ALONG))
    directions, roots, _ = np.linalg.svd(root)
    outside = 0.0
    if beyond.n_features > 0:
        each = beyond.scatter / (mean * beyond.n_features)
        outside = metric.outside ** (1.0 - ALONG) / (each + shrinkage) ** ALONG
    scale = trace / (roots @ roots + beyond.n_features * outside)
    return Factored(roots**2 * scale, directions.T, outside * scale)


class NeighbourEnsemble(Ensemble):
    """An ensemble with a second output, for neighbours and clusters.

    Parameters
    ----------
    n_features, banks, combination, scaled
        As of an `Ensemble`.
    """

    def __init__(
        self, n_features: int, banks: Sequence[Bank], combination: Combination, scaled: bool
    ) -> None:
        super().__init__(n_features, banks, combination, scaled)
        self.similar = new_similar(self.width)

    def _observe_part(self, pairs: Pairs, draws: Floats, said: Said | None) -> Floats:
        told, chunk = self._observe(pairs, draws, np.empty(len(pairs.y)), said)
        full, beyond = np.zeros(self.width), self._similar_beyond
        follow(self.similar, chunk, memory(told.windows), full, beyond)
        return told.losses

    @property
    def _similar_beyond(self) -> Floats:
        """Sum of what similar pairs have outside of the features at hand: nothing."""
        return np.zeros(1)

    def continue_from(self, old: Ensemble) -> None:
        """Go on from what another ensemble has learned; see `Ensemble`."""
        super().continue_from(old)
        if isinstance(old, NeighbourEnsemble):
            n = old.width
            self.similar.scatter[:n, :n] = old.similar.scatter

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        super().check()
        if len(self.similar.scatter) != self.width:
            raise ValueError(f"similar.scatter is of {len(self.similar.scatter)} features")

    def mixture(self, p: Floats) -> Factored:
        """The weighted sum of the first experts' metrics; where that is none, the nearest one."""
        return nearest_metric(self.form(p))

    def form(self, p: Floats) -> Floats:
        """The weighted sum of the first experts' forms, a matrix of all features."""
        return self._summed(p, self.banks)[0]

    def _summed(self, p: Floats, banks: Sequence[Any]) -> tuple[Floats, float]:
        """The weighted sum of the first experts' forms: on the features at hand, and beyond."""
        width = self.width
        total, outside = np.zeros((width, width)), 0.0
        for bank, share in zip(banks, self._shares(p), strict=True):
            matrix, beyond = bank.matrix(share)
            own = len(matrix)
            total[:own, :own] += matrix
            total[range(own, width), range(own, width)] += beyond
            outside += beyond
        return total / self.unit, outside / self.unit

    def neighbours(self, p: Floats) -> Factored:
        """The mixture, with the inverse covariance of similar pairs."""
        return for_neighbours(self.similar, self.mixture(p), self.effective_window)


@kernel
def follow(similar: Similar, chunk: Chunk, memories: Floats, full: Floats, beyond: Floats) -> None:
    """Add a chunk's similar pairs, forgetting as `memory` says; ``full`` is for working in."""
    for row in range(chunk.y.size):
        u = difference(chunk, row, full)
        if chunk.y[row] > 0.0:
            kept = 1.0 - 1.0 / memories[row]
            weight = chunk.y[row]
            _add(similar, u, kept, weight)
            beyond[0] = kept * beyond[0] + weight * rest(chunk.whole, row, u.norm2)


@inner
def _add(similar: Similar, u: Difference, kept: float, weight: float) -> None:
    scatter, n = similar.scatter, u.full.size
    for i in range(n):
        mix(kept, scatter[i], weight * u.full[i], u.full, n)
