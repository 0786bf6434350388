"""Fixed share with a guarantee on every interval: coin betting over experts and their share.

Fixed share (Herbster and Warmuth, 1998) over experts that are always on does best on all streams
tried, but its regret on an interval may grow with the interval's length. So it is one more expert,
which loses what an expert drawn by its shares would, and coin betting on the dyadic cover (CBCE;
Jun, Orabona, Wright and Willett, 2017) bets on it, with most of the prior, and on every expert. The
regret against each expert, on every interval I, is then O(sqrt(|I| log T)).

Statistics of an expert: its share, then for each level of the cover the sum z of gains, the wealth
v won and the number k of rounds. The combiner's own row has the number of rounds so far in the
place of the share, and the bets on the share.
"""

import math
from typing import NamedTuple

from metrack.engine.ensemble.combiners.cbce import bet, pay
from metrack.engine.ensemble.combiners.fixed_share import activate, share
from metrack.engine.ensemble.combiners.protocol import Combiner, mean_loss
from metrack.engine.learners.cover import active_levels
from metrack.engine.numerics.kernels import Floats, fill, inner
from metrack.engine.numerics.records import MOST

LEVELS = MOST.bit_length() - 1  # as many as a counter of pairs can have
PER_LEVEL = 3


class AdaptiveShare(NamedTuple):
    """Its parameters."""

    sharpness: float = 2.0  # how much a loss in [0, 1] counts
    shared: float = 0.003  # of all trust, shared out anew each round
    prior: float = 0.99  # of the share; the experts have the rest


@inner
def weigh(record: AdaptiveShare, statistics: Floats, n: int, t: float, p: Floats) -> None:
    """Bets on the experts, and on the share times what each expert has of it."""
    fill(p, 0.0, n)
    on_share, total = 0.0, 0.0
    start, length = 0.0, 1.0
    for level in range(active_levels(int(t), 1)):
        start = math.floor(t / length) * length
        prior = 1.0 / (start * start * (1.0 + math.floor(math.log2(start))))
        length *= 2.0
        on_share += prior * max(bet(statistics[n], _at(level)), 0.0)
        for j in range(n):
            p[j] += prior * max(bet(statistics[j], _at(level)), 0.0)
    for j in range(n):
        p[j] *= (1.0 - record.prior) / n
        total += p[j]
    on_share *= record.prior
    if total + on_share == 0.0:  # nobody has won yet: the prior
        on_share = 1.0
    for j in range(n):
        p[j] += on_share * statistics[j, 0]


@inner
def update(record: AdaptiveShare, statistics: Floats, n: int, p: Floats, losses: Floats) -> None:
    """Pay out the bets, share out the trust, and start the intervals that begin next."""
    own = statistics[n]
    own[0] += 1.0
    expected, of_share = mean_loss(n, p, losses), 0.0
    for j in range(n):
        of_share += statistics[j, 0] * losses[j]
    for level in range(active_levels(int(own[0]), 1)):
        pay(own, expected - of_share, _at(level))
        for j in range(n):
            pay(statistics[j], expected - losses[j], _at(level))
    for j in range(n):
        statistics[j, 0] *= math.exp(-record.sharpness * losses[j])
    share(statistics, n, record.shared)
    _restart(statistics, n, int(own[0]) + 1)


@inner
def _at(level: int) -> int:
    """Where the bets of a level are."""
    return 1 + PER_LEVEL * level


@inner
def _restart(statistics: Floats, n: int, tau: int) -> None:
    """Levels whose intervals begin at tau start anew."""
    level, length = 0, 1
    while tau % length == 0 and length <= tau:
        for j in range(n + 1):
            fill(statistics[j, _at(level) :], 0.0, PER_LEVEL)
        level += 1
        length *= 2


ADAPTIVE_SHARE = Combiner(
    AdaptiveShare(),
    activate,
    weigh,
    update,
    always_on=True,
    n_statistics=1 + PER_LEVEL * LEVELS,
    own_rows=1,
)
