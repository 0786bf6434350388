"""Combiners: how much each learner is trusted, from the losses it has suffered.

A combiner keeps four numbers a learner, its row of ``memory``, and is three small functions: what a
newborn learner starts with, the probabilities p that follow from the memory, and the update after a
round. Losses of learners are in [0, 1]; the instantaneous regret is r_j = sum_i p_i l_i - l_j.

`SADL`          Greenewald, Kelley and Hero (2016), after Daniely, Gonen and Shalev-Shwartz (2015).
`CBCE`          coin betting, Jun, Orabona, Wright and Willett (2017).
`ADANORMALHEDGE` Luo and Schapire (2015), learners sleep outside their intervals.
`FIXED_SHARE`   Herbster and Warmuth (1998), over learners that are always on.
`ADER`          Hedge on linearised losses over always-on learners, Zhang, Lu and Zhou (2018).
"""

import math

from metrack.engine.kernels import Floats, fill, inner

SADL, CBCE, ADANORMALHEDGE, FIXED_SHARE, ADER = range(5)

COMBINERS = {
    "sadl": SADL,
    "cbce": CBCE,
    "adanormalhedge": ADANORMALHEDGE,
    "fixed_share": FIXED_SHARE,
    "ader": ADER,
}
ALWAYS_ON = (FIXED_SHARE, ADER)
N_MEMORY = 4
# A regret below this is the rounding of equal losses. CBCE asks for its sign: without a limit,
# learners that agree would be told apart by the data's units.
TIE = 1e-12

# Fixed share: how sharply a loss in [0, 1] counts, and how much of the trust is shared out anew
# each round.
SHARPNESS = 2.0
SHARED = 0.0003


@inner
def newborn(combiner: int, memory: Floats, length: float, birth: float, n_learners: int) -> None:
    """Memory of a learner that starts at time ``birth`` on an interval of the given length."""
    fill(memory, 0.0, N_MEMORY)
    if combiner == SADL:
        memory[0] = memory[1] = min(0.5, 1.0 / math.sqrt(length))
    elif combiner == CBCE:
        memory[3] = 1.0 / (birth * birth * (1.0 + math.floor(math.log2(birth))))
    elif combiner == FIXED_SHARE:
        memory[0] = 1.0 / n_learners


@inner
def probabilities(combiner: int, memory: Floats, n: int, t: float, p: Floats) -> None:
    """Normalised weights of the n active learners before round t (counted from 1)."""
    if combiner == CBCE:
        _cbce_weights(memory, n, p)
    elif combiner == ADANORMALHEDGE:
        _adanormalhedge_weights(memory, n, p)
    elif combiner == ADER:
        _ader_weights(memory, n, t, p)
    else:
        for j in range(n):
            p[j] = memory[j, 0]
    _normalise(p, n)


@inner
def update(combiner: int, memory: Floats, n: int, p: Floats, losses: Floats) -> None:
    """Learn from the losses that the n active learners have suffered."""
    expected = 0.0
    for j in range(n):
        expected += p[j] * losses[j]
    if combiner == FIXED_SHARE:
        _fixed_share_update(memory, n, p, losses)
        return
    for j in range(n):
        regret = expected - losses[j]
        if combiner == SADL:
            memory[j, 0] *= 1.0 + memory[j, 1] * regret  # w <- w (1 + eta_I r)
        elif combiner == CBCE:
            _cbce_update(memory[j], regret)
        elif combiner == ADANORMALHEDGE:
            memory[j, 0] += regret
            memory[j, 1] += abs(regret)
        else:
            memory[j, 0] += losses[j]


@inner
def _normalise(p: Floats, n: int) -> None:
    total = 0.0
    for j in range(n):
        total += p[j]
    for j in range(n):
        p[j] = p[j] / total if total > 0.0 else 1.0 / n


@inner
def _bet(memory: Floats) -> float:
    """CBCE's signed weight (z / (k + 1)) (1 + v)."""
    return float(memory[0] / (memory[2] + 1.0) * (1.0 + memory[1]))


@inner
def _cbce_weights(memory: Floats, n: int, p: Floats) -> None:
    total = 0.0
    for j in range(n):
        p[j] = memory[j, 3] * max(_bet(memory[j]), 0.0)
        total += p[j]
    if total == 0.0:  # nobody has won yet: the prior
        for j in range(n):
            p[j] = memory[j, 3]


@inner
def _cbce_update(memory: Floats, regret: float) -> None:
    if abs(regret) < TIE:
        regret = 0.0
    bet = _bet(memory)
    gain = regret if bet > 0.0 else max(regret, 0.0)
    memory[0] += gain
    memory[1] += gain * bet
    memory[2] += 1.0


@inner
def _adanormalhedge_weights(memory: Floats, n: int, p: Floats) -> None:
    """(Phi(R + 1, C + 1) - Phi(R - 1, C + 1)) / 2, over the largest Phi = exp(max(R, 0)^2 / 3C)."""
    largest = 0.0
    for j in range(n):
        largest = max(largest, max(memory[j, 0] + 1.0, 0.0) ** 2 / (3.0 * (memory[j, 1] + 1.0)))
    for j in range(n):
        c = 3.0 * (memory[j, 1] + 1.0)
        up, down = max(memory[j, 0] + 1.0, 0.0) ** 2 / c, max(memory[j, 0] - 1.0, 0.0) ** 2 / c
        p[j] = math.exp(up - largest) - math.exp(down - largest)


@inner
def _fixed_share_update(memory: Floats, n: int, p: Floats, losses: Floats) -> None:
    total = 0.0
    for j in range(n):
        memory[j, 0] = p[j] * math.exp(-SHARPNESS * losses[j])
        total += memory[j, 0]
    for j in range(n):
        memory[j, 0] = (1.0 - SHARED) * memory[j, 0] / total + SHARED / n


@inner
def _ader_weights(memory: Floats, n: int, t: float, p: Floats) -> None:
    """Hedge with the anytime rate sqrt(8 ln N / t), prior 1 / (j (j + 1))."""
    rate = math.sqrt(8.0 * math.log(n + 1.0) / t)
    least = memory[0, 0]
    for j in range(n):
        least = min(least, memory[j, 0])
    for j in range(n):
        p[j] = math.exp(-rate * (memory[j, 0] - least)) / ((j + 1.0) * (j + 2.0))
