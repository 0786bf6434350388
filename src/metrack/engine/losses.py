"""Losses on the margin m = y (mu - q), and their slopes a = -dl/dm: two formulas each.

They are written in the shortfall s = 1 - m, which keeps its digits where mu is 1 and q tiny.
"""

import math

from metrack.engine.kernels import inner

HINGE, SQUARED_HINGE, LOGISTIC, EXPONENTIAL, LEAST_SQUARES = range(5)

LOSSES = {
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
    "logistic": LOGISTIC,
    "exponential": EXPONENTIAL,
    "least_squares": LEAST_SQUARES,
}

# Below m = -STEEPEST the exponential loss continues as a straight line, so that it stays finite.
STEEPEST = 30.0


@inner
def shortfall(y: float, mu: float, q: float, gain: float = 0.0) -> float:
    """1 - y (mu + gain - q), summed so that nothing cancels that need not."""
    return (1.0 - mu) - gain + q if y > 0.0 else (1.0 + mu) + gain - q


@inner
def loss(kind: int, s: float) -> float:
    """The loss at shortfall s."""
    if kind == HINGE:
        return max(0.0, s)
    if kind == SQUARED_HINGE:
        return 0.5 * max(0.0, s) ** 2
    if kind == LOGISTIC:
        return max(0.0, s - 1.0) + math.log1p(math.exp(-abs(s - 1.0)))
    if kind == EXPONENTIAL:
        return math.exp(min(s - 1.0, STEEPEST)) * (1.0 + max(0.0, s - 1.0 - STEEPEST))
    return 0.5 * s * s


@inner
def slope(kind: int, s: float) -> float:
    """How strongly the loss asks for a larger margin, at shortfall s."""
    if kind == HINGE:
        return 1.0 if s > 0.0 else 0.0
    if kind == SQUARED_HINGE:
        return max(0.0, s)
    if kind == LOGISTIC:
        small = math.exp(-abs(s - 1.0))
        return (1.0 if s > 1.0 else small) / (1.0 + small)
    if kind == EXPONENTIAL:
        return math.exp(min(s - 1.0, STEEPEST))
    return s
