"""Weights on the dyadic cover: Greenewald, Kelley and Hero (2016).

After Daniely, Gonen and Shalev-Shwartz (2015). Statistics: the weight, and its rate eta_I.
"""

import math
from typing import NamedTuple

from metrack.engine.ensemble.combiners.protocol import (
    Activation,
    Combiner,
    mean_loss,
    weigh_by_first,
)
from metrack.engine.numerics.kernels import Floats, inner


class Sadl(NamedTuple):
    """Has no parameters."""


@inner
def activate(record: Sadl, statistics: Floats, start: Activation) -> None:
    """The weight at the start is the rate, min(1/2, 1 / sqrt(length))."""
    statistics[0] = statistics[1] = min(0.5, 1.0 / math.sqrt(start.length))


@inner
def update(record: Sadl, statistics: Floats, n: int, p: Floats, losses: Floats) -> None:
    """W <- w (1 + eta_I r)."""
    expected = mean_loss(n, p, losses)
    for j in range(n):
        statistics[j, 0] *= 1.0 + statistics[j, 1] * (expected - losses[j])


SADL = Combiner(Sadl(), activate, weigh_by_first, update)
