"""How every function of the engine is compiled, and the names of the types it works on.

What Python calls is kept on disk, see `caching`, and releases the interpreter lock. There is no
``fastmath`` in eigen or loss code; `reduction` allows sums to be reordered, which is what lets a
dot product use vector instructions, and nothing else (infinities and NaN keep their meaning).
"""

import logging
import sys
from collections.abc import Callable
from functools import cache
from threading import Timer
from typing import Any, NoReturn, TypeVar, cast

import numba
import numpy as np
from numba.core.registry import CPUDispatcher
from numpy.typing import NDArray

from metrack.engine.numerics.caching import SourceCache
from metrack.engine.numerics.linking import LinkedCompiler

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Record = Any  # a structured array of one entry: numbers that compiled code changes in place
F = TypeVar("F", bound=Callable[..., Any])

njit: Any = numba.njit  # its type knows only part of its options


OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# What only compiled code calls needs no bridge from Python objects, and holds no references to
# count: arrays belong to the caller. Counting them took more time than a step of a small learner.
ROUTINE: dict[str, Any] = {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
    "pipeline_class": LinkedCompiler,
}
PATIENCE = 2.0  # seconds of compilation before a word about it


class Kernel(CPUDispatcher):
    """A compiled function that is kept on disk, and says so where it takes long to compile."""

    def compile(self, sig: Any) -> Any:
        """The machine code for arguments of some types, from disk or compiled."""
        timer = Timer(PATIENCE, tell_of_compilation)
        timer.daemon = True
        timer.start()
        try:
            return super().compile(sig)
        finally:
            timer.cancel()


class Routine(CPUDispatcher):
    """A compiled function without a bridge from Python objects."""

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: without the bridge, the interpreter would crash."""
        name = self.py_func.__name__
        raise TypeError(
            f"{name} is compiled to be called by compiled code alone; call it in a function of "
            f"your own under @numba.njit, or call {name}.py_func"
        )


@cache
def tell_of_compilation() -> None:
    """Say once why nothing seems to happen."""
    words = "compiling numerical code, which takes some ten seconds the first time"
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"metrack: {words} ...\n")
    else:
        logging.getLogger("metrack").info(words)


def kernel(function: F) -> F:
    """Compile a function that Python calls."""
    compiled: Any = njit(**OPTIONS, _nrt=False, no_cfunc_wrapper=True)(function)
    if hasattr(compiled, "py_func"):  # not with NUMBA_DISABLE_JIT
        compiled.__class__ = Kernel
        compiled._cache = SourceCache(function)
    return cast(F, compiled)


def routine(function: F, **options: Any) -> F:
    """Compile a function that only compiled code calls; it allocates nothing."""
    compiled: Any = njit(**OPTIONS, **ROUTINE, **options)(function)
    if hasattr(compiled, "py_func"):
        compiled.__class__ = Routine
    return cast(F, compiled)


def inner(function: F) -> F:
    """Compile a routine into its caller: for what is small, or called once a step."""
    return routine(function, forceinline=True)


def reduction(function: F) -> F:
    """Compile a routine whose sums may be taken in any order."""
    return routine(function, forceinline=True, fastmath={"reassoc", "contract"})


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
def square_distance(a: Floats, b: Floats, n: int) -> float:
    """Squared Euclidean distance of the first n entries."""
    total = 0.0
    for i in range(n):
        gap = a[i] - b[i]
        total += gap * gap
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
    # Four rows at a time: the target is read and written a fourth as often.
    for p in range(0, whole, 4):
        f, g, h, m = factors[p], factors[p + 1], factors[p + 2], factors[p + 3]
        a, b = rows[order[p]], rows[order[p + 1]]
        c, d = rows[order[p + 2]], rows[order[p + 3]]
        for i in range(n):
            target[i] += f * a[i] + g * b[i] + h * c[i] + m * d[i]
    for p in range(whole, k):
        add_scaled(target, factors[p], rows[order[p]], n)
