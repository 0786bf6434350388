"""k-NN error in an embedding, exact, by brute force that costs little.

Distances are found in single precision by one matrix product; those that may be among the nearest
by the bound on its rounding error, a dozen a point, are computed anew in double precision.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from metrack.checks import Floats, Ints, whole
from metrack.engine.numerics.kernels import dot, inner, kernel, reduction
from metrack.evaluate.checks import check_points
from metrack.evaluate.sparse_neighbours import check_sparse, sparse_nearest

Singles = NDArray[np.float32]

BLOCKS = 16  # each point is one of so many that share a minimum
ROWS = 64  # queries a matrix product: its result stays in the cache
FAR = np.float32(1e30)  # what fills up the last block
UNIT = 2.0**-24  # rounding of a single-precision number, relative


def knn_error(
    X: ArrayLike, labels: ArrayLike, X_test: ArrayLike, labels_test: ArrayLike, n_neighbors: int = 5
) -> float:
    """Share of held-out points that their nearest neighbours in X assign wrongly.

    The majority decides, and where it is shared the smallest label: as in scikit-learn's
    ``KNeighborsClassifier``.

    Parameters
    ----------
    X : array (n_points, n_features)
        Points, in the embedding to be judged.
    labels : array (n_points,)
        Whole numbers from 0.
    X_test, labels_test : the same, of the points to be assigned
    n_neighbors : int

    Examples
    --------
    >>> from metrack.evaluate import knn_error
    >>> knn_error([[0.0], [1.0], [9.0]], [0, 0, 1], [[0.4], [2.0], [6.0]], [0, 1, 1], n_neighbors=1)
    0.3333333333333333
    """
    points, codes = _check(X, labels, "X")
    queries, wanted = _check(X_test, labels_test, "X_test")
    if queries.shape[1] != points.shape[1]:
        raise ValueError(f"X has {points.shape[1]} features, X_test {queries.shape[1]}")
    own = np.full(len(queries), -1, dtype=np.int64)
    found = _nearest(points, queries, own, whole("n_neighbors", n_neighbors, most=len(points)))
    return float(np.mean(_majority(codes[found]) != wanted))


def leave_one_out_error(
    X: ArrayLike | sp.csr_array,
    labels: ArrayLike,
    n_neighbors: int = 5,
    n_tested: int | None = None,
) -> float:
    """Share of points that their nearest neighbours, themselves left out, assign wrongly.

    Parameters
    ----------
    X : array or CSR matrix (n_points, n_features)
        Points, in the embedding to be judged; or raw, which may be sparse.
    labels : array (n_points,)
        Whole numbers from 0.
    n_neighbors : int
    n_tested : int, optional
        Assign only the first so many points, among all others; by default all.

    Examples
    --------
    >>> from metrack.evaluate import leave_one_out_error
    >>> leave_one_out_error([[0.0], [1.0], [9.0], [9.5]], [0, 0, 1, 0], n_neighbors=1)
    0.5
    """
    points = check_sparse(X, "X") if sp.issparse(X) else check_points(X, "X")
    codes = _check_codes(labels, points.shape[0], "X")
    own = np.arange(whole("n_tested", n_tested or len(codes), most=len(codes)))
    n_neighbors = whole("n_neighbors", n_neighbors, most=len(codes) - 1)
    if isinstance(points, sp.csr_array):
        found = sparse_nearest(points, len(own), n_neighbors)
    else:
        found = _nearest(points, points[: len(own)], own, n_neighbors)
    return float(np.mean(_majority(codes[found]) != codes[: len(own)]))


def _check(X: ArrayLike, labels: ArrayLike, name: str) -> tuple[Floats, Ints]:
    points = check_points(X, name)
    return points, _check_codes(labels, len(points), name)


def _check_codes(labels: ArrayLike, n_points: int, name: str) -> Ints:
    codes = np.asarray(labels)
    if codes.shape != (n_points,) or codes.dtype.kind not in "iu" or codes.min() < 0:
        raise ValueError(
            f"{name} has {n_points} points; their labels must be as many whole numbers "
            "from 0 (np.unique(..., return_inverse=True) makes them)"
        )
    return codes.astype(np.int64)


def _nearest(points: Floats, queries: Floats, own: Ints, k: int) -> Ints:
    """Numbers of the k points nearest to each query, itself left out, nearest first."""
    centre = points.mean(axis=0)
    points, queries = points - centre, queries - centre
    squares = np.einsum("ij,ij->i", points, points)
    # Lengths of at most 1, so that the bound below is a number and nothing overflows.
    size = np.sqrt(max(squares.max(), np.einsum("ij,ij->i", queries, queries).max()))
    if size > 0.0:
        points, queries, squares = points / size, queries / size, squares / size**2
    n_points, n_features = points.shape
    width = -(-n_points // BLOCKS)
    # v = |p|^2 - 2 q'p ranks the points as the distance does, and is a single product.
    right = np.zeros((n_features + 1, BLOCKS * width), dtype=np.float32)
    right[:-1, :n_points] = -2.0 * points.T
    right[-1] = FAR
    right[-1, :n_points] = squares
    left = np.ones((len(queries), n_features + 1), dtype=np.float32)
    left[:, :-1] = queries
    slack = 3.0 * (n_features + 5) * UNIT
    found = np.empty((len(queries), k), dtype=np.int64)
    minima, best = np.empty(width, dtype=np.float32), np.empty(k + 1)
    values = np.empty((ROWS, right.shape[1]), dtype=np.float32)
    for start in range(0, len(queries), ROWS):
        here = slice(start, min(start + ROWS, len(queries)))
        block = np.dot(left[here], right, out=values[: here.stop - start])
        _select(block, points, queries[here], own[here], slack, minima, best, found[here])
    return found


@inner
def _insert(best: Floats, value: float, k: int) -> int:
    """Put a value in its place among the k smallest, in order; the place, or k if it has none."""
    at = k
    while at > 0 and value < best[at - 1]:
        at -= 1
    for i in range(k - 1, at, -1):
        best[i] = best[i - 1]
    if at < k:
        best[at] = value
    return at


@inner
def _minima(row: Singles, minima: Singles) -> None:
    """The least of the points b, b + width, b + 2 width, ... for each b below width."""
    width = len(minima)
    for b in range(width):
        minima[b] = FAR
    for start in range(0, BLOCKS * width, 4 * width):  # four at a time: fewer reads and writes
        p, q = row[start : start + width], row[start + width : start + 2 * width]
        r, s = row[start + 2 * width : start + 3 * width], row[start + 3 * width :]
        for b in range(width):
            x = p[b] if p[b] < q[b] else q[b]
            z = r[b] if r[b] < s[b] else s[b]
            x = x if x < z else z
            minima[b] = x if x < minima[b] else minima[b]


@reduction
def _distance(x: Floats, z: Floats, n: int) -> float:
    """Squared distance of the first n entries."""
    total = 0.0
    for i in range(n):
        total += (x[i] - z[i]) ** 2
    return total


@kernel
def _select(
    values: Singles,
    points: Floats,
    queries: Floats,
    own: Ints,
    slack: float,
    minima: Singles,
    best: Floats,
    found: Ints,
) -> None:
    """For each row of approximate values, the k nearest points by exact distances."""
    width, k = len(minima), found.shape[1]
    for i in range(len(values)):
        row, query, nearest = values[i], queries[i], found[i]
        _minima(row, minima)
        # Each minimum is another point's; the (k+1)-th leaves room for the query itself.
        for j in range(k + 1):
            best[j] = np.inf
        for b in range(width):
            if minima[b] < best[k]:
                _insert(best, minima[b], k + 1)
        limit = best[k] + 2.0 * slack
        for j in range(k):
            best[j] = np.inf
        square = dot(query, query, len(query))
        for b in range(width):
            if minima[b] > limit:
                continue
            for j in range(b, len(points), width):
                if row[j] <= limit and j != own[i]:
                    distance = _distance(query, points[j], len(query))
                    if distance < best[k - 1]:
                        at = _insert(best, distance, k)
                        for m in range(k - 1, at, -1):
                            nearest[m] = nearest[m - 1]
                        nearest[at] = j
                        limit = min(limit, best[k - 1] - square + slack)


def _majority(classes: Ints) -> Ints:
    """The commonest class in each row; of several the smallest."""
    votes = np.stack([(classes == c).sum(axis=1) for c in range(classes.max() + 1)], axis=1)
    commonest: Ints = votes.argmax(axis=1)
    return commonest
