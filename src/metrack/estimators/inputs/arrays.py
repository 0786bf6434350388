"""Numbers as users give them: real, finite, and of one shape, or an error that names the row."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

LARGEST = 1e40  # of a feature: what the engine squares stays finite


def as_numbers(values: Any, name: str, id_dimensions: int | None = None) -> Any:
    """A real array; integers and text stay as they are only where they may be row numbers or ids.

    Parameters
    ----------
    values, name
    id_dimensions : int, optional
        Number of dimensions of an array of ids.
    """
    if sp.issparse(values):
        raise ValueError(
            f"{name} is a sparse matrix; pass the sparse matrix of points as preprocessor, and "
            "pairs or triplets as an integer array of its rows, one a line"
        )
    try:
        array = as_array(values)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} row {_odd_row(values)} does not have the shape of the others; give every "
            "point the same number of features"
        ) from None
    if id_dimensions is not None and (
        array.dtype.kind in "iu" or (is_text(array) and array.ndim == id_dimensions)
    ):
        return array
    try:
        check_kind(array.dtype, name)
        return np.asarray(array, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        if array.dtype.kind == "c":
            raise
        raise ValueError(
            f"{name} row {_odd_row(values)} is not numbers ({error}); encode text first, or, where "
            "it is ids, pass a callable as preprocessor that gives their points"
        ) from None


def as_array(values: Any) -> Any:
    """What numpy makes of it; objects count for what they hold, so that text stays text."""
    array = np.asarray(values)
    return np.asarray(array.tolist()) if array.dtype.kind == "O" else array


def is_text(array: Any) -> bool:
    """Whether it holds text, such as ids."""
    kind: str = array.dtype.kind
    return kind in "US"


def check_kind(dtype: np.dtype[Any], name: str) -> None:
    """Refuse what is no real number."""
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must be real numbers")
    if dtype.kind not in "iufbO":
        raise ValueError(f"{name} has type {dtype}")


def _odd_row(values: Any) -> int:
    """The first row that is not numbers of the first row's shape."""
    shape: tuple[int, ...] | None = None
    for i, row in enumerate(values if np.iterable(values) else [values]):
        try:
            array = as_array(row).astype(np.float64)
        except (TypeError, ValueError):
            return i
        if shape not in (None, array.shape) or as_array(row).dtype.kind not in "iufbO":
            return i
        shape = array.shape
    return 0


def check_finite(values: Any, where: Callable[[int], str]) -> None:
    """Refuse NaN, infinity, and what is too large; ``where`` names the place of an entry."""
    # Two reductions and no copy; NaN fails both comparisons.
    if values.size == 0 or (values.max() <= LARGEST and values.min() >= -LARGEST):
        return
    flat = values.ravel()
    i = int(np.flatnonzero(~(np.abs(flat) <= LARGEST))[0])
    if np.isfinite(flat[i]):
        raise ValueError(f"{where(i)} contains {flat[i]:g}, too large to square; rescale it")
    kind = "NaN" if np.isnan(flat[i]) else "infinity"
    raise ValueError(f"{where(i)} contains {kind}; drop or impute such rows first")


def check_one_each(values: Any, name: str, entry: str, n: int, of: str) -> None:
    """Refuse an array that has not one entry for each of what it is about."""
    if values.shape != (n,):
        raise ValueError(
            f"{name} must have one {entry} per {of}: {n} {of}s, but {name} has shape {values.shape}"
        )


def check_width(width: int, name: str, n_features: int | None) -> None:
    """Refuse no features at all, and others than were learned on."""
    if width == 0:
        raise ValueError(f"{name} has 0 feature(s); a minimum of 1 is required.")
    if n_features is not None and width != n_features:
        raise ValueError(
            f"{name} has {width} features, but the metric was learned on {n_features}; "
            "pass points with the same features, or call fit to start anew"
        )
