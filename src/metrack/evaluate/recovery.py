"""How fast the truth moves, and how soon a method is back after a change.

For losses in every round there is `recovery_times`; here are measures that are taken now and then.
"""

from typing import Any

import numpy as np

from metrack.checks import Floats, number
from metrack.evaluate.checks import check_losses


def rate_of_change(metrics: Any) -> Floats:
    """Frobenius norm of the change from each metric to the next, 0 for the first.

    Parameters
    ----------
    metrics : array (n_times, n_features, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from metrack.evaluate import rate_of_change
    >>> rate_of_change([np.diag([1.0, 0.0]), np.diag([1.0, 0.0]), np.diag([0.0, 0.0])])
    array([0., 0., 1.])
    """
    array = np.asarray(metrics, dtype=np.float64)
    if array.ndim != 3:
        raise ValueError(f"metrics must be matrices one after another; got shape {array.shape}")
    changes = np.diff(array, axis=0, prepend=array[:1])
    rates: Floats = np.sqrt(np.einsum("tij,tij->t", changes, changes))
    return rates


def time_to_recover(
    steps: Any, errors: Any, change: int, level: float, until: int | None = None
) -> float:
    """Time from a change until an error, measured now and then, is down to a level.

    Between two measurements the error is taken to move evenly; where the first one after the
    change is already below the level, the time is that up to it.

    Parameters
    ----------
    steps : array (n_times,)
        When the errors were measured, rising.
    errors : array (n_times,)
    change : int
        When it happened: only measurements after it count.
    level : float
    until : int, optional
        When the next change comes: measurements after it do not count.

    Returns
    -------
    float
        Infinite where the level is not reached.

    Examples
    --------
    >>> from metrack.evaluate import time_to_recover
    >>> time_to_recover([100, 150, 200, 300], [0.0, 0.4, 0.2, 0.1], change=100, level=0.3)
    75.0
    """
    times, values = check_losses(steps, "steps"), check_losses(errors, "errors")
    if times.shape != values.shape or (np.diff(times) <= 0).any():
        raise ValueError("steps must rise, and there must be as many errors")
    goal = number("level", level)
    counted = (times > change) & (times <= (np.inf if until is None else until))
    times, values = times[counted] - change, values[counted]
    reached = np.flatnonzero(values <= goal)
    if not reached.size:
        return float("inf")
    i = int(reached[0])
    if i == 0 or values[i] == goal:
        return float(times[i])
    share = (values[i - 1] - goal) / (values[i - 1] - values[i])
    return float(times[i - 1] + share * (times[i] - times[i - 1]))
