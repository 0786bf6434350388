"""The covariance of similar pairs, forgotten as fast as the ensemble says: what neighbours go by.

Pairs tell which distances are large and which small. Among near neighbours all are small, and what
counts is how much points of the same class differ in each direction: the covariance S of the
differences of similar pairs. Its inverse is what LDA and RCA whiten by. Here S forgets
exponentially, over a tenth of the effective window, the trusted experts' memory: points may turn
faster than what is alike. The fewer pairs it rests on, the more it is shrunk towards the identity.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, kernel, mix
from metrack.engine.numerics.pairs import Chunk, difference, rest
from metrack.engine.numerics.records import floats

SHARE = 0.1  # of the effective window
SHORTEST = 8.0  # similar pairs
NOISE = 0.05  # times features / similar pairs that S rests on: shrinkage, in mean eigenvalues
ALONG = 0.4  # of the way from the metric that judges pairs to the inverse covariance


class Similar(NamedTuple):
    """What similar pairs have shown of late."""

    scatter: Annotated[Floats, floats("width", "width")]  # weighted sum of uu'
    outside: Annotated[Floats, floats(1, least=0.0)]  # its trace beyond the directions of a basis


def new_similar(width: int) -> Similar:
    """Nothing seen yet."""
    return Similar(np.zeros((width, width)), np.zeros(1))


def widened(similar: Similar, more: int, beyond: int) -> Similar:
    """With more directions, of so many beyond those at hand: what is there is the same in all."""
    width, each = len(similar.scatter), similar.outside[0] / max(beyond, 1)
    scatter = np.pad(similar.scatter, (0, more))
    scatter[range(width, width + more), range(width, width + more)] = each
    return Similar(scatter, similar.outside - more * each)


def turned(similar: Similar, turn: Floats) -> Similar:
    """By coordinates on the columns of ``turn``; the trace stays what it was."""
    scatter = turn.T @ similar.scatter @ turn
    outside = np.trace(similar.scatter) + similar.outside - np.trace(scatter)
    return Similar(scatter, np.maximum(outside, 0.0))


def memory(window: Any) -> Any:
    """How many similar pairs S rests on, by the effective window, or at each of some."""
    return np.maximum(SHARE * window, SHORTEST)


def for_neighbours(similar: Similar, metric: Factored, window: float, beyond: int = 0) -> Factored:
    """A metric between a given one and the inverse covariance; its trace stays what it was.

    It lies on the geodesic between the two, as GMML's does (Zadeh, Hosseini and Sra, 2016): a
    weighted geometric mean, which keeps a direction small where either of them says so. On a basis,
    the metric's ``outside`` is for so many directions beyond those at hand.
    """
    n = len(similar.scatter) + beyond
    mean = (np.trace(similar.scatter) + similar.outside[0]) / n
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
    if beyond > 0:
        each = float(similar.outside[0]) / (mean * beyond)
        outside = metric.outside ** (1.0 - ALONG) / (each + shrinkage) ** ALONG
    scale = trace / (roots @ roots + beyond * outside)
    return Factored(roots**2 * scale, directions.T, outside * scale)


@kernel
def follow(similar: Similar, chunk: Chunk, memories: Floats, full: Floats) -> None:
    """Add a chunk's similar pairs, forgetting as `memory` says; ``full`` is for working in."""
    for row in range(chunk.y.size):
        u = difference(chunk, row, full)
        if chunk.y[row] > 0.0:
            kept = 1.0 - 1.0 / memories[row]
            weight = chunk.y[row]
            for i in range(full.size):
                mix(kept, similar.scatter[i], weight * u.full[i], u.full, full.size)
            beyond = weight * rest(chunk.whole, row, u.norm2)
            similar.outside[0] = kept * similar.outside[0] + beyond
