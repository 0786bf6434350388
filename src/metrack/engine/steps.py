"""How far a pair moves a learner: the signed step b = e * y * a, explicit or implicit."""

import math

from metrack.engine.divergences import BURG, FROBENIUS, gain, longest_step, moved_q
from metrack.engine.kernels import inner
from metrack.engine.losses import HINGE, LEAST_SQUARES, SQUARED_HINGE, shortfall, slope

EXPLICIT, IMPLICIT = range(2)

STEPS = {"explicit": EXPLICIT, "implicit": IMPLICIT}


@inner
def signed_step(
    step: int,
    loss: int,
    divergence: int,
    e: float,
    y: float,
    q: float,
    mu: float,
    norm2: float,
) -> float:
    """The step b for a pair at squared distance q: M moves by -b uu' in the dual, mu by +b.

    An explicit step takes the loss's slope at the margin before the step, an implicit one at the
    margin after it: the proximal step, which for the hinge moves no further than the pair asks.
    """
    lacking = shortfall(y, mu, q)
    a = slope(loss, lacking)
    if a == 0.0:
        return 0.0
    longest = longest_step(divergence, y * a > 0.0, q, mu, norm2)
    beta = min(max(e * a, -longest), longest)
    if step == IMPLICIT:
        if divergence == FROBENIUS and loss in (HINGE, SQUARED_HINGE, LEAST_SQUARES):
            beta = _implicit_closed_form(loss, e, lacking, norm2 * norm2 + 1.0)
        elif divergence == BURG and loss == HINGE:
            beta = min(beta, _burg_to_the_margin(lacking, mu * q, 2.0 * mu * q + y * (mu - q)))
        else:
            beta = _implicit_by_bisection(loss, divergence, e, y, q, mu, norm2, beta)
    return y * beta


@inner
def _implicit_closed_form(loss: int, e: float, lacking: float, curvature: float) -> float:
    """Root of beta = e * a(lacking - beta * curvature) for a piecewise linear slope."""
    if loss == HINGE:
        return min(e, lacking / curvature)
    return e * lacking / (1.0 + e * curvature)


@inner
def _burg_to_the_margin(lacking: float, square: float, linear: float) -> float:
    """The beta after which nothing is lacking, and the hinge's slope ends.

    Positive root of square * beta^2 + linear * beta = lacking, which is the shortfall after the
    step, 1 - y (mu / (1 - b mu) - q / (1 + b q)) = 0 with b = y beta, times its denominators.
    """
    root = math.hypot(linear, 2.0 * math.sqrt(square * lacking))
    # Of two forms of the solution, the one in which nothing cancels.
    return 2.0 * lacking / (root + linear) if linear > 0.0 else (root - linear) / (2.0 * square)


@inner
def _implicit_by_bisection(
    loss: int,
    divergence: int,
    e: float,
    y: float,
    q: float,
    mu: float,
    norm2: float,
    furthest: float,
) -> float:
    """Root of beta = e * a(shortfall after the step) between 0 and the explicit step.

    The right side falls as beta grows.
    """
    near, far = 0.0, furthest
    while True:
        beta = 0.5 * (near + far)
        if beta in (near, far):
            # Neighbouring numbers. Where even the whole step falls short of the root, far is still
            # the whole.
            return far
        b = y * beta
        moved = moved_q(divergence, q, norm2, b)
        wanted = e * slope(loss, shortfall(y, mu, moved, gain(divergence, mu, b)))
        if abs(wanted) > abs(beta) and wanted * beta > 0.0:
            near = beta
        else:
            far = beta
