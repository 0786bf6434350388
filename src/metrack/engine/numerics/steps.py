"""How far a pair moves a learner: the signed step b = e * y * a, explicit or implicit."""

import math
from typing import NamedTuple

from metrack.engine.numerics.divergences import BURG, FROBENIUS, gain, longest_step, moved_q
from metrack.engine.numerics.kernels import inner
from metrack.engine.numerics.losses import (
    HINGE,
    LEAST_SQUARES,
    SQUARED_HINGE,
    Kind,
    closed_form,
    gradient,
    shortfall,
)

EXPLICIT, IMPLICIT = range(2)

STEPS = {"explicit": EXPLICIT, "implicit": IMPLICIT}


class Way(NamedTuple):
    """How steps are taken."""

    step: int
    loss: Kind
    divergence: int


class Question(NamedTuple):
    """What a pair asks of a learner."""

    e: float  # learning rate
    y: float
    q: float  # squared distance
    mu: float  # threshold
    norm: float  # of what a step of size 1 adds


@inner
def signed_step(way: Way, asked: Question) -> float:
    """The step b for a pair at squared distance q: M moves by -b uu' in the dual, mu by +b.

    An explicit step takes the loss's gradient at the margin before the step, an implicit one at the
    margin after it: the proximal step, which for the hinge moves no further than the pair asks.
    """
    e, y, q, mu, norm = asked
    divergence = way.divergence
    lacking = shortfall(y, mu, q)
    a = gradient(way.loss, lacking)
    if a == 0.0:
        return 0.0
    longest = longest_step(divergence, y * a > 0.0, q, mu, norm)
    beta = min(max(e * a, -longest), longest)
    if way.step == IMPLICIT:
        known = closed_form(way.loss)
        if divergence == FROBENIUS and known in (HINGE, SQUARED_HINGE, LEAST_SQUARES):
            beta = _implicit_closed_form(known, e, lacking, norm * norm + 1.0)
        elif divergence == BURG and known == HINGE:
            beta = min(beta, _burg_to_the_margin(lacking, mu * q, 2.0 * mu * q + y * (mu - q)))
        else:
            beta = _implicit_by_bisection(way, asked, beta)
    return y * beta


@inner
def _implicit_closed_form(loss: int, e: float, lacking: float, curvature: float) -> float:
    """Root of beta = e * a(lacking - beta * curvature) for a piecewise linear gradient."""
    if loss == HINGE:
        return min(e, lacking / curvature)
    return e * lacking / (1.0 + e * curvature)


@inner
def _burg_to_the_margin(lacking: float, square: float, linear: float) -> float:
    """The beta after which nothing is lacking, and the hinge's gradient ends.

    Positive root of square * beta^2 + linear * beta = lacking, which is the shortfall after the
    step, 1 - y (mu / (1 - b mu) - q / (1 + b q)) = 0 with b = y beta, times its denominators.
    """
    root = math.hypot(linear, 2.0 * math.sqrt(square * lacking))
    # Of two forms of the solution, the one in which nothing cancels.
    return 2.0 * lacking / (root + linear) if linear > 0.0 else (root - linear) / (2.0 * square)


@inner
def _implicit_by_bisection(way: Way, asked: Question, furthest: float) -> float:
    """Root of beta = e * a(shortfall after the step) between 0 and the explicit step.

    The right side falls as beta grows.
    """
    e, y, q, mu, norm = asked
    near, far = 0.0, furthest
    while True:
        beta = 0.5 * (near + far)
        if beta in (near, far) or beta != beta:
            # Neighbouring numbers, or no numbers at all. Where even the whole step falls short of
            # the root, far is still the whole.
            return far
        b = y * beta
        moved = moved_q(way.divergence, q, norm, b)
        wanted = e * gradient(way.loss, shortfall(y, mu, moved, gain(way.divergence, mu, b)))
        if abs(wanted) > abs(beta) and wanted * beta > 0.0:
            near = beta
        else:
            far = beta


@inner
def towards_target(rate: float, q: float, g: float) -> float:
    """A gradient step of (q - g)^2, as ITML takes it: q becomes q / (1 + this), at most 2 q."""
    return max(2.0 * rate * (q - g) * q, -0.5)
