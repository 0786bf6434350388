"""Coin betting for changing environments: Jun, Orabona, Wright and Willett (2017).

Statistics: the sum z of gains, the wealth v won, the number k of rounds, and the prior.
"""

import math
from typing import NamedTuple

from metrack.engine.ensemble.combiners.protocol import Activation, Combiner, mean_loss
from metrack.engine.numerics.kernels import Floats, inner

# A regret below this is the rounding of equal losses. Its sign is asked for: without a limit,
# experts that agree would be told apart by the data's units.
TIE = 1e-12


class Cbce(NamedTuple):
    """Has no parameters."""


@inner
def activate(record: Cbce, statistics: Floats, start: Activation) -> None:
    """The prior."""
    tau = start.tau
    statistics[3] = 1.0 / (tau * tau * (1.0 + math.floor(math.log2(tau))))


@inner
def weigh(record: Cbce, statistics: Floats, n: int, t: float, p: Floats) -> None:
    """The prior times the bet, where it is positive."""
    total = 0.0
    for j in range(n):
        p[j] = statistics[j, 3] * max(bet(statistics[j]), 0.0)
        total += p[j]
    if total == 0.0:  # nobody has won yet: the prior
        for j in range(n):
            p[j] = statistics[j, 3]


@inner
def update(record: Cbce, statistics: Floats, n: int, p: Floats, losses: Floats) -> None:
    """Pay out the bets."""
    expected = mean_loss(n, p, losses)
    for j in range(n):
        pay(statistics[j], expected - losses[j])


@inner
def bet(statistics: Floats, at: int = 0) -> float:
    """The signed weight (z / (k + 1)) (1 + v), from three statistics."""
    return float(statistics[at] / (statistics[at + 2] + 1.0) * (1.0 + statistics[at + 1]))


@inner
def pay(statistics: Floats, regret: float, at: int = 0) -> None:
    """Win or lose the bet."""
    if abs(regret) < TIE:
        regret = 0.0
    placed = bet(statistics, at)
    gain = regret if placed > 0.0 else max(regret, 0.0)
    statistics[at] += gain
    statistics[at + 1] += gain * placed
    statistics[at + 2] += 1.0


CBCE = Combiner(Cbce(), activate, weigh, update)
