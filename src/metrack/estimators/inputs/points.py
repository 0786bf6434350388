"""Points as users give them: rows of numbers, or row numbers and ids of such."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.estimators.inputs.arrays import (
    as_numbers,
    check_finite,
    check_kind,
    check_width,
    is_text,
)
from metrack.estimators.inputs.names import take_names

# What users give; what of it is of use is found out here.
PointsLike: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix  # rows, or row numbers or ids of them
Preprocessor: TypeAlias = PointsLike | Callable[[Any], Any] | None  # points, or ids to points
# What was checked.
Points = Floats | sp.csr_array
Lookup: TypeAlias = Points | Callable[[Any], Any] | None  # a preprocessor


def check_points(points: Any, name: str = "X", n_features: int | None = None) -> Points:
    """Rows of finite numbers, dense or CSR."""
    if sp.issparse(points):
        given: Any = points
        if given.ndim != 2:
            raise ValueError(f"{name} must be 2-D, one point a row; got {given.ndim} dimensions")
        check_kind(given.dtype, name)
        matrix = sp.csr_array(given, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the next line works in place, and the arrays are the caller's
            matrix.sum_duplicates()
        starts = matrix.indptr
        check_finite(
            matrix.data, lambda i: f"{name} row {np.searchsorted(starts, i, side='right') - 1}"
        )
        found: Points = matrix
    else:
        found = as_numbers(points, name)
        if found.ndim == 1:
            raise ValueError(
                f"{name} must be 2-D, one point a row; got a 1-D array. Reshape your data using "
                "array.reshape(1, -1) if it is a single point."
            )
        if found.ndim != 2:
            raise ValueError(f"{name} must be 2-D, one point a row; got {found.ndim} dimensions")
        check_finite(found, lambda i: f"{name} row {i // found.shape[1]}")
    if found.shape[0] == 0:
        raise ValueError(f"{name} has 0 rows; pass at least one point")
    check_width(found.shape[1], name, n_features)
    return found


def check_preprocessor(preprocessor: Preprocessor) -> Lookup:
    """The points that index pairs refer to, or the callable that gives them."""
    if preprocessor is None or callable(preprocessor):
        return preprocessor
    return check_points(preprocessor, "preprocessor")


def points_of(X: PointsLike, preprocessor: Lookup, n_features: int | None) -> Points:
    """Points given as such, or as row numbers or other ids."""
    if preprocessor is not None and not sp.issparse(X):
        array = as_numbers(X, "X", id_dimensions=1)
        if array.ndim == 1:
            points, rows = look_up(array, preprocessor, "X")
            check_width(points.shape[1], "X", n_features)
            taken: Points = points[rows]
            return taken
    return check_points(X, "X", n_features)


def points_for(estimator: Any, X: PointsLike) -> Points:
    """Points as a fitted estimator takes them: of its features, under the names that it knows."""
    take_names(estimator, X, reset=False)
    return points_of(X, estimator.preprocessor_, estimator.n_features_in_)


def are_ids(X: PointsLike, preprocessor: Lookup) -> bool:
    """Whether X names points by row numbers or other ids."""
    return preprocessor is not None and not sp.issparse(X) and np.asarray(X).ndim == 1


def float_type(estimator: Any, X: PointsLike) -> type[np.floating[Any]]:
    """The type of what is computed from points: float32 where they are, else float64."""
    by_id = are_ids(X, estimator.preprocessor_)
    given: Any = getattr(estimator, "preprocessor", None) if by_id else X
    dtype = given.dtype if hasattr(given, "dtype") else np.asarray(given).dtype
    return np.float32 if dtype == np.float32 else np.float64


def look_up(array: Any, preprocessor: Lookup, name: str) -> tuple[Any, Ints]:
    """Points, and for each index its row among them."""
    if len(array) == 0:
        raise ValueError(f"{name} is empty; pass at least one index")
    if is_text(array) and not callable(preprocessor):
        raise ValueError(
            f"{name} has ids that are text: pass a callable as preprocessor, which takes an array "
            "of ids and returns their points, one a row; an array's rows have numbers"
        )
    if array.dtype.kind not in "iuUS":
        raise ValueError(f"{name} of indices must be integers; cast them with .astype(int)")
    if callable(preprocessor):
        unique, inverse = np.unique(array, return_inverse=True)
        try:
            points = check_points(preprocessor(unique), "preprocessor(indices)")
        except LookupError as error:
            raise ValueError(
                f"{name} has an index that the preprocessor refuses: {error}"
            ) from error
        if points.shape[0] != len(unique):
            raise ValueError(
                f"preprocessor(indices) gave {points.shape[0]} points for {len(unique)} indices; "
                "it must return one a row"
            )
        return points, inverse.reshape(array.shape)
    assert preprocessor is not None  # there are ids because there is one
    n_points = preprocessor.shape[0]
    wrong = np.argwhere((array < -n_points) | (array >= n_points))
    if wrong.size:
        where = tuple(wrong[0].tolist())
        raise ValueError(
            f"{name}[{', '.join(map(str, where))}] = {array[where]} is out of range: the "
            f"preprocessor has {n_points} points, numbered 0 to {n_points - 1}, or from the end "
            f"-1 to {-n_points}"
        )
    rows: Ints = array.astype(np.int64)
    return preprocessor, np.where(rows < 0, rows + n_points, rows)
