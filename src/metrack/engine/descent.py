"""L-BFGS with the weak Wolfe conditions, which also serves where a slope jumps.

A line search that only asks the slope to rise enough, found by doubling and bisection, makes
quasi-Newton descent work on functions with kinks (Lewis and Overton, 2013), such as sums of hinges.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from metrack.engine.kernels import Floats

MEMORY = 10  # steps whose curvature is remembered
WINDOW = 10  # iterations over which progress is judged
TRIALS = 40  # of a line search

Objective = Callable[[Floats], tuple[float, Floats]]


class Found(NamedTuple):
    """Where descent came to."""

    x: Floats
    value: float
    n_iter: int
    converged: bool


class _Point(NamedTuple):
    x: Floats
    value: float
    slope: Floats


def minimise(
    objective: Objective,
    x: Floats,
    max_iter: int,
    tol: float,
    report: Callable[[int, float], bool],
) -> Found:
    """Descend until the last 10 iterations together gained less than ``tol`` of the value.

    Parameters
    ----------
    objective : callable
        Value and slope at a point, an array of any shape.
    x : array
        Where to start.
    max_iter : int
    tol : float
    report : callable
        Gets the iteration's number and value, and may end the descent by returning True.
    """
    here = _Point(x, *objective(x))
    steps: deque[tuple[Floats, Floats]] = deque(maxlen=MEMORY)
    values = deque([here.value], maxlen=WINDOW + 1)
    for n_iter in range(1, max_iter + 1):
        there = _search(objective, here, _direction(here, steps))
        if there is None and steps:  # what is remembered may mislead after a kink
            steps.clear()
            there = _search(objective, here, _direction(here, steps))
        if there is None:  # no way down that numbers can tell
            return Found(here.x, here.value, n_iter - 1, True)
        step, change = there.x - here.x, there.slope - here.slope
        if np.vdot(step, change) > 0.0:
            steps.append((step, change))
        here = there
        values.append(here.value)
        done = report(n_iter, here.value)
        if done or (len(values) > WINDOW and values[0] - here.value <= tol * abs(here.value)):
            return Found(here.x, here.value, n_iter, True)
    return Found(here.x, here.value, max_iter, False)


def _direction(here: _Point, steps: deque[tuple[Floats, Floats]]) -> Floats:
    """Minus the slope, through the inverse curvature that the last steps have shown."""
    if not steps:
        size = float(np.linalg.norm(here.slope))
        length = float(np.linalg.norm(here.x)) or 1.0
        return here.slope * (-0.01 * length / size) if size > 0.0 else -here.slope
    q = -here.slope
    factors = []
    for step, change in reversed(steps):
        factor = float(np.vdot(step, q) / np.vdot(step, change))
        q -= factor * change
        factors.append(factor)
    step, change = steps[-1]
    q *= np.vdot(step, change) / np.vdot(change, change)
    for (step, change), factor in zip(steps, reversed(factors), strict=True):
        q += (factor - float(np.vdot(change, q) / np.vdot(step, change))) * step
    return q


def _search(objective: Objective, here: _Point, direction: Floats) -> _Point | None:
    """A point along the direction with enough of a fall and of a rise in slope."""
    fall = float(np.vdot(here.slope, direction))
    if not fall < 0.0:
        return None
    low, high, t = 0.0, np.inf, 1.0
    best = None
    for _ in range(TRIALS):
        x = here.x + t * direction
        there = _Point(x, *objective(x))
        if not there.value <= here.value + 1e-4 * t * fall:
            high = t
        elif np.vdot(there.slope, direction) < 0.9 * fall:
            low, best = t, there
        else:
            return there
        t = 2.0 * low if high == np.inf else 0.5 * (low + high)
    return best if best is not None and best.value < here.value else None
