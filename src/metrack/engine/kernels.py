"""How every function of the engine is compiled, and the names of the types it works on.

Compiled code is cached on disk and releases the interpreter lock. There is no ``fastmath`` in eigen
or loss code; `reduction` allows sums to be reordered, which is what lets a dot product use vector
instructions, and nothing else (infinities and NaN keep their meaning).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
F = TypeVar("F", bound=Callable[..., Any])

njit: Any = numba.njit  # its type knows only part of its options


OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# What only compiled code calls needs no bridge from Python objects, and holds no references to
# count: arrays belong to the caller. Counting them took more time than a step of a small learner.
ROUTINE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


def kernel(function: F) -> F:
    """Compile a function that Python calls."""
    return cast(F, njit(**OPTIONS, _nrt=False, no_cfunc_wrapper=True)(function))


def routine(function: F) -> F:
    """Compile a function that only compiled code calls; it allocates nothing."""
    return cast(F, njit(**OPTIONS, **ROUTINE)(function))


def inner(function: F) -> F:
    """Compile a routine into its caller: for what is small, or called once a step."""
    return cast(F, njit(**OPTIONS, **ROUTINE, forceinline=True)(function))


def reduction(function: F) -> F:
    """Compile a routine whose sums may be taken in any order."""
    options = OPTIONS | ROUTINE | {"forceinline": True, "fastmath": {"reassoc", "contract"}}
    return cast(F, njit(**options)(function))


class Difference(NamedTuple):
    """u = x - z of the pair at hand."""

    values: Floats  # at the features ``where``
    where: Ints
    full: Floats  # as a dense vector


@routine
def fill(target: Floats, value: float, n: int) -> None:
    """Set the first n entries."""
    for i in range(n):
        target[i] = value


@routine
def copy(target: Floats, source: Floats, n: int) -> None:
    """Copy the first n entries."""
    for i in range(n):
        target[i] = source[i]


@reduction
def dot(a: Floats, b: Floats, n: int) -> float:
    """Inner product of the first n entries."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@reduction
def mix(own: float, target: Floats, factor: float, source: Floats, n: int) -> None:
    """A multiple of the first n entries of a vector, plus a multiple of another's."""
    for i in range(n):
        target[i] = own * target[i] + factor * source[i]


@reduction
def add_scaled(target: Floats, factor: float, source: Floats, n: int) -> None:
    """Add a multiple of the first n entries of one vector to another."""
    for i in range(n):
        target[i] += factor * source[i]


@reduction
def combine(target: Floats, factors: Floats, rows: Floats, order: Ints, k: int, n: int) -> None:
    """Sum of factors[p] * rows[order[p]] over p < k, in the first n entries."""
    fill(target, 0.0, n)
    whole = k - k % 4
    for p in range(
        0, whole, 4
    ):  # four rows at a time: the target is read and written a fourth as often
        f, g, h, m = factors[p], factors[p + 1], factors[p + 2], factors[p + 3]
        a, b = rows[order[p]], rows[order[p + 1]]
        c, d = rows[order[p + 2]], rows[order[p + 3]]
        for i in range(n):
            target[i] += f * a[i] + g * b[i] + h * c[i] + m * d[i]
    for p in range(whole, k):
        add_scaled(target, factors[p], rows[order[p]], n)


@inner
def row_times(row: Floats, u: Difference) -> float:
    """Inner product of a row with u; where u is sparse, its non-zeros are gathered."""
    if u.where.size == u.full.size:
        return dot(row, u.full, u.full.size)
    total = 0.0
    for i in range(u.where.size):
        total += row[u.where[i]] * u.values[i]
    return total
