"""From pairs and how likely each is alike to clusters of records."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from metrack.checks import number, whole
from metrack.engine.numerics.kernels import Ints


class Clusters(NamedTuple):
    """What `clusters` found.

    Attributes
    ----------
    left, right : array
        The cluster of each record, a number from 0; of right none where there is one table.
    likelihood : float
        That of the least likely pair that was linked; infinite where none was.
    precision : float
        Of the links: so many are expected to be right.
    n_links : int
    """

    left: Ints
    right: Ints
    likelihood: float
    precision: float
    n_links: int


def clusters(
    rows: ArrayLike,
    likelihood: ArrayLike,
    n_left: int,
    n_right: int | None = None,
    precision: float = 0.95,
) -> Clusters:
    """Link the likeliest pairs, as many as leave the expected precision, and what they connect.

    The expected precision is the mean likelihood of all pairs that are linked: as good as
    `predict_proba` is calibrated. Two records of a cluster need not be a pair that was linked:
    where a cluster is large, look at it.

    Parameters
    ----------
    rows : array (n_pairs, 2)
        Row of left and row of right of each pair; both of the one table without ``n_right``.
    likelihood : array (n_pairs,)
        That they are the same: the second column of a tracker's ``predict_proba``.
    n_left, n_right : int
        How many records there are.
    precision : float
        From 0 to 1.

    Examples
    --------
    >>> from metrack.compare import clusters
    >>> found = clusters([[0, 0], [1, 0], [2, 1]], [0.98, 0.96, 0.3], n_left=3, n_right=2)
    >>> found.left.tolist(), found.right.tolist()
    ([0, 0, 1], [0, 2])
    >>> round(found.precision, 2), found.n_links
    (0.97, 2)
    """
    number("precision", precision, most=1.0)
    n_first = whole("n_left", n_left)
    n_second = n_first if n_right is None else whole("n_right", n_right)
    pairs, p = np.asarray(rows), np.asarray(likelihood, dtype=np.float64)
    _check(pairs, p, n_first, n_second)
    offset = 0 if n_right is None else n_first
    order = np.argsort(-p, kind="stable")
    expected = np.cumsum(p[order]) / np.arange(1, len(p) + 1)
    n_links = int(np.searchsorted(-expected, -precision, side="right"))
    linked = order[:n_links]
    total = n_first + (0 if n_right is None else n_second)
    graph = sp.csr_array(
        (np.ones(n_links), (pairs[linked, 0], pairs[linked, 1] + offset)), shape=(total, total)
    )
    labels = connected_components(graph, directed=False)[1].astype(np.int64)
    return Clusters(
        labels[:n_first],
        labels[n_first:],
        float(p[linked[-1]]) if n_links else np.inf,
        float(expected[n_links - 1]) if n_links else 1.0,
        n_links,
    )


def _check(rows: Any, likelihood: Any, n_left: int, n_right: int) -> None:
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"rows must be whole numbers of shape (n_pairs, 2); got {rows.dtype} of shape "
            f"{rows.shape}"
        )
    if likelihood.shape != (len(rows),):
        raise ValueError(
            f"likelihood must have one number a pair: {len(rows)} pairs, but it has shape "
            f"{likelihood.shape}; of predict_proba take the second column"
        )
    wrong = np.flatnonzero(~((likelihood >= 0.0) & (likelihood <= 1.0)))
    if wrong.size:
        raise ValueError(f"likelihood[{wrong[0]}] = {likelihood[wrong[0]]}; it is from 0 to 1")
    for side, (name, n) in enumerate((("left", n_left), ("right", n_right))):
        out = np.flatnonzero((rows[:, side] < 0) | (rows[:, side] >= n))
        if out.size:
            raise ValueError(
                f"rows[{out[0]}, {side}] = {rows[out[0], side]}; {name} has {n} records"
            )
