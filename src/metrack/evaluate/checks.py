"""Checks of arrays that all measures share."""

import numpy as np
from numpy.typing import ArrayLike

from metrack.checks import Floats


def check_losses(losses: ArrayLike, name: str = "losses") -> Floats:
    """One finite number per round, for at least one round."""
    array = _finite(losses, name)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be 1-D, one number per round; got shape {array.shape}")
    return array


def check_rivals(losses: ArrayLike, n_rounds: int, several: bool = True) -> Floats:
    """Losses of one comparator (n_rounds,) or several (n, n_rounds), as a 2-D array."""
    array = _finite(losses, "comparator_losses")
    if array.shape[-1:] == (n_rounds,) and array.ndim <= 1 + several and array.size:
        return np.atleast_2d(array)
    or_several = f", or (n_comparators, {n_rounds})" if several else ""
    raise ValueError(
        f"comparator_losses must have shape ({n_rounds},), as losses has{or_several}; "
        f"got {array.shape}"
    )


def _finite(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    wrong = np.argwhere(~np.isfinite(array))
    if wrong.size:
        where = ", ".join(map(str, wrong[0].tolist()))
        raise ValueError(f"{name}[{where}] is not finite; drop such rounds first")
    return array


def check_points(X: ArrayLike, name: str) -> Floats:
    """Finite numbers, a point per row; an embedding without any dimension is allowed."""
    array = _finite(X, name)
    if array.ndim != 2 or not len(array):
        raise ValueError(f"{name} must be 2-D with a point per row; got shape {array.shape}")
    return array
