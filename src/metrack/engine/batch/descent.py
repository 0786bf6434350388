"""Descent of the batch methods: scipy's L-BFGS-B, over arrays of any shape."""

import sys
from collections.abc import Callable
from typing import NamedTuple

from scipy.optimize import OptimizeResult, minimize

from metrack.engine.numerics.kernels import Floats

Objective = Callable[[Floats], tuple[float, Floats]]


class Found(NamedTuple):
    """Where descent came to."""

    x: Floats
    value: float
    n_iter: int
    done: bool  # the caller was content


def minimise(
    objective: Objective, x: Floats, max_iter: int, report: Callable[[int, float], bool]
) -> Found:
    """Descend until the caller is content, or ``max_iter``, or rounding hides the way down.

    ``report`` gets each iteration's number and value, and ends the descent by returning True. The
    objective, value and gradient at a point, was last called at the iteration's point.
    """
    shape, n_iter, done = x.shape, 0, False

    def flat(x: Floats) -> tuple[float, Floats]:
        value, gradient = objective(x.reshape(shape))
        return value, gradient.ravel()

    def callback(intermediate_result: OptimizeResult) -> None:
        nonlocal n_iter, done
        n_iter += 1
        done = report(n_iter, float(intermediate_result.fun))
        if done:
            raise StopIteration

    found = minimize(
        flat,
        x.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=callback,
        # The caller judges progress: by itself it ends only where numbers tell no way down.
        options={"maxiter": max_iter, "maxfun": sys.maxsize, "ftol": 0.0, "gtol": 0.0},
    )
    return Found(found.x.reshape(shape), float(found.fun), n_iter, done)
