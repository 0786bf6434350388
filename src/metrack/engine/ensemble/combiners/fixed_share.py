"""Fixed share, over experts that are always on: Herbster and Warmuth (1998).

Statistics: the probability.
"""

import math
from typing import Any, NamedTuple

from metrack.engine.ensemble.combiners.protocol import Activation, Combiner, weigh_by_first
from metrack.engine.numerics.kernels import Floats, inner


class FixedShare(NamedTuple):
    """Its parameters."""

    sharpness: float = 2.0  # how much a loss in [0, 1] counts
    shared: float = 0.0003  # of all trust, shared out anew each round


@inner
def activate(record: Any, statistics: Floats, start: Activation) -> None:
    """An equal share."""
    statistics[0] = 1.0 / start.n_experts


@inner
def update(record: FixedShare, statistics: Floats, n: int, p: Floats, losses: Floats) -> None:
    """Hedge, then share."""
    for j in range(n):
        statistics[j, 0] = p[j] * math.exp(-record.sharpness * losses[j])
    share(statistics, n, record.shared)


@inner
def share(statistics: Floats, n: int, shared: float) -> None:
    """Normalise the first column, and share out some of it."""
    total = 0.0
    for j in range(n):
        total += statistics[j, 0]
    for j in range(n):
        kept = (1.0 - shared) * statistics[j, 0] / total
        statistics[j, 0] = kept + shared / n


FIXED_SHARE = Combiner(FixedShare(), activate, weigh_by_first, update, always_on=True)
