"""The units in which pairs are learned: the root mean square of all differences before."""

import math

import numpy as np

from metrack.engine.numerics.kernels import Record, dot, inner, kernel
from metrack.engine.numerics.pairs import SMALLEST, Chunk, Pairs, span_of
from metrack.engine.numerics.records import Structure, counts, floats

# What has been seen of the size of differences: pairs with x != z, and the mean |u|^2 over those.
SCALER = Structure(moved=counts(1), mean_square=floats(1, least=0.0))


def check(scaler: Record, n_pairs: int) -> None:
    """Refuse a count that so many pairs cannot have led to."""
    moved = int(scaler["moved"][0])
    if moved > n_pairs:
        raise ValueError(f"scaler.moved counts {moved:,} of {n_pairs:,} pairs")


def unit(scaler: Record, spread: float) -> float:
    """Square of the length in which u is measured; see `to_scale`."""
    mean_square = float(scaler["mean_square"][0])
    return mean_square / spread if spread > 0.0 and mean_square > 0.0 else 1.0


def to_scale(scaler: Record, pairs: Pairs, spread: float, seen: int) -> Chunk:
    """Pairs with a mean |u|^2 of ``spread``, each by the mean before it; all then count.

    With a spread of 0 they stay as they are, and nothing is counted. ``seen`` pairs came before.
    """
    u = pairs.u if spread == 0.0 else np.empty_like(pairs.u)
    norm2, whole = np.empty(pairs.y.size), np.empty(0)
    chunk = Chunk(u, pairs.where, pairs.starts, pairs.y, norm2, whole, seen)
    _to_scale(scaler, pairs, spread, chunk)
    return chunk


@kernel
def _to_scale(scaler: Record, pairs: Pairs, spread: float, chunk: Chunk) -> None:
    for row in range(pairs.y.size):
        start, stop = span_of(pairs, row)
        before = pairs.u[start:stop]
        norm2 = dot(before, before, before.size)
        chunk.norm2[row] = norm2
        if spread > 0.0:
            length = unit_before(scaler, norm2, spread)
            after = chunk.u[start:stop]
            for i in range(after.size):
                after[i] = before[i] / length if norm2 >= SMALLEST else 0.0
            chunk.norm2[row] = dot(after, after, after.size)


@inner
def unit_before(scaler: Record, norm2: float, spread: float) -> float:
    """The length by which a difference is divided; it then counts for those that come after it."""
    seen = scaler[0]
    before = seen.mean_square
    if norm2 < SMALLEST:  # as good as x = z
        return 1.0
    seen.moved += 1
    seen.mean_square += (norm2 - before) / seen.moved
    return math.sqrt((before if before > 0.0 else norm2) / spread)
