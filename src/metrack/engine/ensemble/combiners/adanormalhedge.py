"""AdaNormalHedge: Luo and Schapire (2015); experts sleep outside their intervals.

Statistics: the sums R of regrets and C of their sizes.
"""

import math
from typing import NamedTuple

from metrack.engine.ensemble.combiners.protocol import Combiner, mean_loss, nothing_to_activate
from metrack.engine.numerics.kernels import Floats, inner


class AdaNormalHedge(NamedTuple):
    """Has no parameters."""


@inner
def weigh(record: AdaNormalHedge, statistics: Floats, n: int, t: float, p: Floats) -> None:
    """(Phi(R + 1, C + 1) - Phi(R - 1, C + 1)) / 2, over the largest Phi = exp(max(R, 0)^2 / 3C)."""
    largest = 0.0
    for j in range(n):
        regret, size = statistics[j, 0], statistics[j, 1]
        largest = max(largest, max(regret + 1.0, 0.0) ** 2 / (3.0 * (size + 1.0)))
    for j in range(n):
        regret, c = statistics[j, 0], 3.0 * (statistics[j, 1] + 1.0)
        up, down = max(regret + 1.0, 0.0) ** 2 / c, max(regret - 1.0, 0.0) ** 2 / c
        p[j] = math.exp(up - largest) - math.exp(down - largest)


@inner
def update(record: AdaNormalHedge, statistics: Floats, n: int, p: Floats, losses: Floats) -> None:
    """Count the regrets."""
    expected = mean_loss(n, p, losses)
    for j in range(n):
        regret = expected - losses[j]
        statistics[j, 0] += regret
        statistics[j, 1] += abs(regret)


ADANORMALHEDGE = Combiner(AdaNormalHedge(), nothing_to_activate, weigh, update)
