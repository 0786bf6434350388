"""Nearest neighbours among sparse rows, exact, by products of all rows with a few."""

import numpy as np
import scipy.sparse as sp

from metrack.checks import Floats, Ints

ROWS = 128  # queries a product, whose result is dense
UNIT = 2.0**-53  # rounding of a double-precision number, relative


def check_sparse(X: sp.csr_array, name: str) -> sp.csr_array:
    """Finite numbers, a point per row."""
    points: sp.csr_array = sp.csr_array(X).astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(points.data))
    if wrong.size:
        row = int(np.searchsorted(points.indptr, wrong[0], side="right")) - 1
        raise ValueError(f"{name} row {row} is not finite; drop such points first")
    return points


def sparse_nearest(points: sp.csr_array, n_queries: int, k: int) -> Ints:
    """Numbers of the k rows nearest to each of the first rows, itself left out.

    Of rows at the same distance, up to rounding, those that come first are taken.
    """
    squares: Floats = points.multiply(points).sum(axis=1)
    longest = int(np.diff(points.indptr).max(initial=1))
    slack = 8.0 * UNIT * longest * float(squares.max(initial=0.0))
    found = np.empty((n_queries, k), dtype=np.int64)
    for start in range(0, n_queries, ROWS):
        here = np.arange(start, min(start + ROWS, n_queries))
        products = points @ np.ascontiguousarray(points[here].toarray().T)
        values = squares - 2.0 * products.T  # ranks rows as the distance does
        values[np.arange(len(here)), here] = np.inf
        found[here] = _smallest(values, k, slack)
    return found


def _smallest(values: Floats, k: int, slack: float) -> Ints:
    """Columns of the k smallest values in each row; of those within rounding the first ones."""
    limit = np.partition(values, k - 1, axis=1)[:, k - 1]
    chosen = np.empty((len(values), k), dtype=np.int64)
    for row, most, places in zip(values, limit, chosen, strict=True):
        near = np.flatnonzero(row <= most + slack)
        below = near[row[near] < most - slack]
        level = near[row[near] >= most - slack]
        places[:] = np.concatenate([below, level[: k - len(below)]])
    return chosen
