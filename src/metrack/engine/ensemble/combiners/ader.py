"""Ader: Hedge on linearised losses over experts that are always on, Zhang, Lu and Zhou (2018).

Statistics: the sum of losses.
"""

import math
from typing import NamedTuple

from metrack.engine.ensemble.combiners.protocol import Combiner, nothing_to_activate
from metrack.engine.numerics.kernels import Floats, inner


class Ader(NamedTuple):
    """Has no parameters."""


@inner
def weigh(record: Ader, statistics: Floats, n: int, t: float, p: Floats) -> None:
    """Hedge with the anytime rate sqrt(8 ln N / t), prior 1 / (j (j + 1))."""
    rate = math.sqrt(8.0 * math.log(n + 1.0) / t)
    least = statistics[0, 0]
    for j in range(n):
        least = min(least, statistics[j, 0])
    for j in range(n):
        p[j] = math.exp(-rate * (statistics[j, 0] - least)) / ((j + 1.0) * (j + 2.0))


@inner
def update(record: Ader, statistics: Floats, n: int, p: Floats, losses: Floats) -> None:
    """Count the losses."""
    for j in range(n):
        statistics[j, 0] += losses[j]


ADER = Combiner(Ader(), nothing_to_activate, weigh, update, always_on=True, linearised=True)
