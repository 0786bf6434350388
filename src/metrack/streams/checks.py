"""Types and checks that all streams share."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number from ``least`` up."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least:
        return int(value)
    raise ValueError(f"{name} is {value!r}; it must be a whole number >= {least}")


def number(name: str, value: Any, least: float, most: float = np.inf) -> float:
    """A finite number between two bounds, both allowed."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if real and np.isfinite(value) and least <= value <= most:
        return float(value)
    bounds = f"from {least:g} to {most:g}" if np.isfinite(most) else f">= {least:g}"
    raise ValueError(f"{name} is {value!r}; it must be a number {bounds}")


def pieces(start: int, stop: int, size: int) -> Iterator[tuple[int, slice]]:
    """The blocks of a given size that a range touches, and the part of each that lies in it."""
    for block in range(start // size, -(-stop // size)):
        first = block * size
        yield block, slice(max(start - first, 0), min(stop - first, size))
