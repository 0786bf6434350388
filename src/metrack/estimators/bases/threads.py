"""One thread at a time: compiled code releases the interpreter's lock, so learners have their own.

A call that learns is done before the next one starts, and read-outs wait for it: what is read is
the metric after some whole call, never one half-way. Locks belong to this process and to one
object: what is copied, cloned or pickled has another.

One BLAS thread as well: two make the small eigenproblems of learning many times slower.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock, RLock
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_making = Lock()
_limiting = Lock()


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Let one thread at a time into all such methods of an object."""

    @wraps(method)
    def alone(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with _making:
            lock = _locks.setdefault(self, RLock())
        with lock:
            return method(self, *args, **kwargs)

    return alone


def when_fitted(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The same, of an estimator that has learned something; another is refused."""

    @wraps(method)
    def fitted(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        check_is_fitted(self)
        return method(self, *args, **kwargs)

    return exclusive(fitted)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS has one thread meanwhile. Where several threads learn, the first of them sees to it."""
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limiting.release()


@cache
def _controller() -> ThreadpoolController:
    """Made once: to look for the libraries of a process takes longer than to learn some pairs."""
    return ThreadpoolController()
