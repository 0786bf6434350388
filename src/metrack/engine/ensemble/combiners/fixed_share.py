"""Fixed share, over experts that are always on: Herbster and Warmuth (1998).

Statistics: the probability.
"""

import math
from typing import NamedTuple

from metrack.engine.ensemble.combiners.protocol import Activation, Combiner, weigh_by_first
from metrack.engine.numerics.kernels import Floats, inner


class FixedShare(NamedTuple):
    """Its parameters."""

    sharpness: float = 2.0  # how much a loss in [0, 1] counts
    shared: float = 0.0003  # of all trust, shared out anew each round


@inner
def activate(record: FixedShare, statistics: Floats, start: Activation) -> None:
    """An equal share."""
    statistics[0] = 1.0 / start.n_experts


@inner
def update(record: FixedShare, statistics: Floats, n: int, p: Floats, losses: Floats) -> None:
    """Hedge, then share."""
    total = 0.0
    for j in range(n):
        statistics[j, 0] = p[j] * math.exp(-record.sharpness * losses[j])
        total += statistics[j, 0]
    for j in range(n):
        kept = (1.0 - record.shared) * statistics[j, 0] / total
        statistics[j, 0] = kept + record.shared / n


FIXED_SHARE = Combiner(FixedShare(), activate, weigh_by_first, update, always_on=True)
