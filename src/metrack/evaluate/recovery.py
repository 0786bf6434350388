"""How fast the truth moves, and how soon a method is back after a change.

`recovery_times` takes losses in every round, `time_to_recover` errors measured now and then.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from metrack.checks import Floats, number, whole
from metrack.evaluate.checks import check_losses
from metrack.evaluate.prequential import full_windows


def rate_of_change(metrics: ArrayLike) -> Floats:
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


def recovery_times(
    losses: ArrayLike,
    changes: ArrayLike,
    window: int = 100,
    tolerance: float = 0.1,
    target: float | None = None,
) -> Floats:
    """Rounds after each change until the windowed loss is back to its level before.

    Only losses after a change count, so a recovery takes at least ``window`` rounds; it must come
    before the next change.

    Parameters
    ----------
    losses : array (n_rounds,)
    changes : array of int
        Rounds at which something changed, rising; such as ``stream.switches``.
    window : int
        Losses that are averaged, after a change and before it.
    tolerance : float
        Back is at most (1 + tolerance) times the level.
    target : float, optional
        The level, in place of the mean of the ``window`` losses before each change.

    Returns
    -------
    array (n_changes,)
        Infinite where the loss does not come back before the next change or the end.

    Examples
    --------
    >>> losses = [1.0] * 10 + [5.0] * 3 + [1.0] * 7
    >>> recovery_times(losses, [10], window=2)
    array([5.])
    """
    array = check_losses(losses)
    width = whole("window", window)
    slack = 1.0 + number("tolerance", tolerance)
    rounds = _check_changes(changes, array.size, target is None)
    times = np.full(len(rounds), np.inf)
    for i, (change, end) in enumerate(pairwise([*rounds, array.size])):
        if target is None:
            level = float(array[max(change - width, 0) : change].mean())
        else:
            level = number("target", target)
        back = _first_at(full_windows(array[change:end], width), slack * level)
        if back is not None:
            times[i] = back + width
    return times


def time_to_recover(
    steps: ArrayLike,
    errors: ArrayLike,
    change: int | None,
    level: float,
    until: int | None = None,
    interpolate: bool = True,
) -> float:
    """Time from a change until an error, measured now and then, is down to a level.

    Where the first measurement after the change is already below the level, the time is that up to
    it.

    Parameters
    ----------
    steps : array (n_times,)
        When the errors were measured, rising.
    errors : array (n_times,)
    change : int or None
        When it happened: only measurements after it count. None: before the first of the steps,
        which count from the change.
    level : float
    until : int, optional
        When the next change comes: measurements after it do not count.
    interpolate : bool
        Between two measurements the error is taken to move evenly. Without, the time is that of the
        first measurement down to the level.

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
    counted = times <= (np.inf if until is None else until)
    if change is not None:
        counted &= times > change
    times, values = times[counted] - (change or 0), values[counted]
    i = _first_at(values, goal)
    if i is None:
        return float("inf")
    if i == 0 or values[i] == goal or not interpolate:
        return float(times[i])
    share = (values[i - 1] - goal) / (values[i - 1] - values[i])
    return float(times[i - 1] + share * (times[i] - times[i - 1]))


def _first_at(values: Floats, level: float) -> int | None:
    """Place of the first value that is at most a level."""
    reached = np.flatnonzero(values <= level)
    return int(reached[0]) if reached.size else None


def _check_changes(changes: ArrayLike, n_rounds: int, needs_past: bool) -> list[int]:
    found = [whole("a change", change) if change else 0 for change in np.ravel(changes).tolist()]
    if sorted(set(found)) != found or (found and found[-1] >= n_rounds):
        raise ValueError(f"changes are {found}; they must rise and lie within {n_rounds} rounds")
    if needs_past and found and found[0] == 0:
        raise ValueError("a change at round 0 has no level before it; give a target")
    return found
