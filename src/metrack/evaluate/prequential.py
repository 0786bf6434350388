"""Losses of test-then-train over time, and how soon they recover from a change.

The names are those of Gama, Sebastião and Rodrigues, On evaluating stream learning algorithms
(2013).
"""

from itertools import pairwise
from typing import Any

import numpy as np

from metrack.checks import Floats, number, whole
from metrack.evaluate.checks import check_losses


def running_mean(losses: Any) -> Floats:
    """Mean of all losses so far, round by round.

    Examples
    --------
    >>> running_mean([4.0, 2.0, 0.0])
    array([4., 3., 2.])
    """
    array = check_losses(losses)
    mean: Floats = np.cumsum(array) / np.arange(1, array.size + 1)
    return mean


def windowed_mean(losses: Any, window: int) -> Floats:
    """Mean of the latest ``window`` losses, round by round; of all of them while they are fewer.

    Examples
    --------
    >>> windowed_mean([4.0, 2.0, 0.0, 1.0], window=2)
    array([4. , 3. , 1. , 0.5])
    """
    array = check_losses(losses)
    width = whole("window", window)
    return np.concatenate([running_mean(array)[: width - 1], _full(array, width)])


def fading_mean(losses: Any, fading: float = 0.99) -> Floats:
    """Weighted mean of all losses so far, a loss k rounds ago counting fading^k times.

    It remembers about 1 / (1 - fading) rounds.

    Examples
    --------
    >>> fading_mean([4.0, 1.0, 0.0], fading=0.5).round(3)
    array([4.   , 2.   , 0.857])
    """
    array = check_losses(losses)
    if not 0.0 < number("fading", fading) <= 1.0:
        raise ValueError(f"fading is {fading!r}; it must be above 0 and at most 1")
    means = np.empty(array.size)
    total = weight = 0.0
    for t, loss in enumerate(array.tolist()):
        total, weight = loss + fading * total, 1.0 + fading * weight
        means[t] = total / weight
    return means


def recovery_times(
    losses: Any,
    changes: Any,
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
        back = np.flatnonzero(_full(array[change:end], width) <= slack * level)
        if back.size:
            times[i] = back[0] + width
    return times


def _full(losses: Floats, width: int) -> Floats:
    """Means of all windows that are full; each summed anew, so that zeros give zero."""
    if losses.size < width:
        return np.empty(0)
    means: Floats = np.lib.stride_tricks.sliding_window_view(losses, width).mean(axis=1)
    return means


def _check_changes(changes: Any, n_rounds: int, needs_past: bool) -> list[int]:
    found = [whole("a change", change) if change else 0 for change in np.ravel(changes).tolist()]
    if sorted(set(found)) != found or (found and found[-1] >= n_rounds):
        raise ValueError(f"changes are {found}; they must rise and lie within {n_rounds} rounds")
    if needs_past and found and found[0] == 0:
        raise ValueError("a change at round 0 has no level before it; give a target")
    return found
