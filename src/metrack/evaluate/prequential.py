"""Losses of test-then-train over time.

The names are those of Gama, Sebastião and Rodrigues, On evaluating stream learning algorithms
(2013).
"""

import numpy as np
from numpy.typing import ArrayLike

from metrack.checks import Floats, number, whole
from metrack.evaluate.checks import check_losses


def running_mean(losses: ArrayLike) -> Floats:
    """Mean of all losses so far, round by round.

    Examples
    --------
    >>> running_mean([4.0, 2.0, 0.0])
    array([4., 3., 2.])
    """
    array = check_losses(losses)
    mean: Floats = np.cumsum(array) / np.arange(1, array.size + 1)
    return mean


def windowed_mean(losses: ArrayLike, window: int) -> Floats:
    """Mean of the latest ``window`` losses, round by round; of all of them while they are fewer.

    Examples
    --------
    >>> windowed_mean([4.0, 2.0, 0.0, 1.0], window=2)
    array([4. , 3. , 1. , 0.5])
    """
    array = check_losses(losses)
    width = whole("window", window)
    return np.concatenate([running_mean(array)[: width - 1], full_windows(array, width)])


def fading_mean(losses: ArrayLike, fading: float = 0.99) -> Floats:
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


def full_windows(losses: Floats, width: int) -> Floats:
    """Means of all windows that are full; each summed anew, so that zeros give zero."""
    if losses.size < width:
        return np.empty(0)
    means: Floats = np.lib.stride_tricks.sliding_window_view(losses, width).mean(axis=1)
    return means
