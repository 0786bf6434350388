"""Where something fails, an estimator is as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Have all attributes again that an estimator had before, where this block raises an error."""
    before = estimator.__dict__.copy()
    try:
        yield
    except Exception:
        estimator.__dict__ = before
        raise
