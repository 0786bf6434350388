"""The three Bregman divergences: what a step b = e * alpha does to q, to mu and to an eigenvalue.

A learner stores its spectrum where the divergence's rank-one update is plain: the eigenvalues
themselves for Frobenius and Burg, their logarithms for von Neumann. `eigenvalue` translates.
"""

import math

from metrack.engine.numerics.kernels import inner

FROBENIUS, VON_NEUMANN, BURG = range(3)

DIVERGENCES = {"frobenius": FROBENIUS, "von_neumann": VON_NEUMANN, "burg": BURG}

# Eigenvalues and mu stay below LARGEST (and, where zero is out of reach, above its inverse):
# squares of what they multiply remain finite, so no input can lead to a NaN.
LARGEST = 1e60
LOG_LARGEST = math.log(LARGEST)
# No von Neumann step moves a log-eigenvalue by more than this.
LONGEST_LOG_STEP = 50.0


@inner
def eigenvalue(divergence: int, s: float) -> float:
    """The eigenvalue of M that a stored value of the spectrum stands for."""
    return math.exp(s) if divergence == VON_NEUMANN else s


def bounds(divergence: int) -> tuple[float, float]:
    """Between which numbers stored values of the spectrum stay."""
    if divergence == FROBENIUS:
        return 0.0, LARGEST
    if divergence == VON_NEUMANN:
        return -LOG_LARGEST, LOG_LARGEST
    return 1.0 / LARGEST, LARGEST


@inner
def shrink(divergence: int, s: float, amount: float) -> float:
    """The proximal map of amount * |M|_* on one stored value, kept within the numbers' limits."""
    if divergence == FROBENIUS:
        return min(max(s - amount, 0.0), LARGEST)
    if divergence == VON_NEUMANN:
        return min(max(s - amount, -LOG_LARGEST), LOG_LARGEST)
    return min(max(s / (1.0 + amount * s), 1.0 / LARGEST), LARGEST)


@inner
def gain(divergence: int, mu: float, b: float) -> float:
    """By how much a step b moves the threshold, before it is clipped to at least 1."""
    if divergence == FROBENIUS:
        return b
    if divergence == VON_NEUMANN:
        return mu * math.expm1(b)
    return b * mu * mu / (1.0 - b * mu)  # 1 / (1 / mu - b) - mu


@inner
def moved_q(divergence: int, q: float, norm2: float, b: float) -> float:
    """The pair's squared distance after a step b along its own uu', before shrinkage and the cone.

    Exact for Frobenius and Burg. For von Neumann it is exact when u is an eigenvector, and
    otherwise bounds the change from above, so that a step sized by it never goes further than the
    pair asks.
    """
    if divergence == FROBENIUS:
        return q - b * norm2 * norm2
    if divergence == VON_NEUMANN:
        return q * math.exp(-b * norm2)
    return q / (1.0 + b * q)


@inner
def longest_step(divergence: int, positive: bool, q: float, mu: float, norm2: float) -> float:
    """The largest |b| for which the step is defined, with room to spare."""
    if divergence == VON_NEUMANN:
        return LONGEST_LOG_STEP / max(norm2, 1.0)
    if divergence == BURG:
        # Half the way to the pole: q (b < 0) or mu (b > 0) at most doubles.
        return 0.5 / (mu if positive else max(q, 1.0 / LARGEST))
    return math.inf
