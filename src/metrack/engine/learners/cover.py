"""The dyadic cover of time: intervals [i L, (i+1) L - 1] with L = I0 2^j, i >= 1, j >= 0.

At time tau the levels 0, ..., floor(log2(tau / I0)) are active, one interval each. Time starts at
tau = I0, where the first interval begins: the t-th pair is learned at tau = t + I0 - 1.
"""

from metrack.engine.numerics.kernels import inner

LONGEST_FIRST = 1 << 40  # first interval; doubled as long as there are pairs, it never overflows


@inner
def time_on_cover(t: int, first_interval: int) -> int:
    """The time tau at which the t-th pair is learned."""
    return t + first_interval - 1


@inner
def active_levels(tau: int, first_interval: int) -> int:
    """How many levels have an interval that contains tau."""
    levels, length = 0, first_interval
    while length <= tau:
        levels += 1
        length *= 2
    return levels


@inner
def activated_levels(tau: int, first_interval: int) -> int:
    """How many levels, from the shortest up, start a new interval at tau."""
    levels, length = 0, first_interval
    while length <= tau and tau % length == 0:
        levels += 1
        length *= 2
    return levels


def n_active_levels(t: int, first_interval: int) -> int:
    """How many levels are active when the t-th pair is learned; one before the first."""
    return max(1, ((t + first_interval - 1) // first_interval).bit_length())
