"""Types of arrays and checks of numbers, for every room of the house; knows nothing of them."""

from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def whole(name: str, value: object, least: int = 1, most: float = np.inf) -> int:
    """A whole number between two bounds, both allowed.

    Examples
    --------
    >>> whole("n_pairs", 0)
    Traceback (most recent call last):
    ValueError: n_pairs is 0; it must be a whole number >= 1
    """
    if is_number(value) and isinstance(value, int | np.integer) and least <= value <= most:
        return int(value)
    raise ValueError(f"{name} is {value!r}; it must be a whole number {_bounds(least, most)}")


def number(name: str, value: object, least: float = 0.0, most: float = np.inf) -> float:
    """A finite number between two bounds, both allowed.

    Examples
    --------
    >>> number("noise", 2, most=1.0)
    Traceback (most recent call last):
    ValueError: noise is 2; it must be a number from 0 to 1
    """
    if is_number(value) and np.isfinite(value) and least <= value <= most:
        return float(value)
    raise ValueError(f"{name} is {value!r}; it must be a number {_bounds(least, most)}")


def is_number(value: object) -> TypeGuard[int | float]:
    """A real number, and not a truth value."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _bounds(least: float, most: float) -> str:
    return f"from {least:.15g} to {most:.15g}" if np.isfinite(most) else f">= {least:.15g}"
