"""The embedding of a metric that changes: it moves no more than the metric does.

Every L with M = L'L gives the same distances, and rows by falling eigenvalue, as in
``components_``, turn around or swap places at the smallest change of M. What has been embedded
earlier can then not be compared with what is embedded now. So L is Procrustes-aligned: of all L the
one nearest to a fixed position is taken; for as many rows as features, the square root of M.
"""

from functools import lru_cache

import numpy as np
from scipy.linalg import qr

from metrack.engine.numerics.kernels import Floats

EQUAL = 1e-9  # lengths of rows that differ by less, relative to the longest, count as equal


def orthogonal(components: Floats) -> Floats:
    """The same metric by orthogonal rows, by falling length; for an L that a user has set."""
    _, lengths, rows = np.linalg.svd(components, full_matrices=False)
    found: Floats = lengths[:, None] * rows
    return found


def leading(components: Floats, width: int) -> Floats:
    """The rows of L that matter most, no more than ``width``.

    Where a metric has more directions it began at the identity, and many matter alike: of those
    at the cut, any of which would do, the ones nearest to features are taken, so that rounding does
    not choose.

    Parameters
    ----------
    components : array (rank, n_features)
        Any L with M = L'L whose rows are orthogonal, by falling length.
    width : int
    """
    if len(components) <= width:
        return components
    lengths = np.linalg.norm(components, axis=1)
    alike = np.abs(lengths - lengths[width]) <= EQUAL * lengths[0]
    first = int(np.argmax(alike))
    if first >= width or lengths[width] == 0.0:
        return components[:width]
    rows = components[alike] / lengths[alike, None]
    axes, signs, _ = qr(rows.T @ rows, mode="economic", pivoting=True)
    chosen = slice(width - first)
    turned = lengths[width] * np.sign(np.diag(signs))[chosen, None] * axes.T[chosen]
    found: Floats = np.vstack([components[:first], turned])
    return found


def aligned(components: Floats, width: int) -> Floats:
    """L with M = L'L, Procrustes-aligned with a fixed position: of all L the nearest to it.

    Parameters
    ----------
    components : array (rank, n_features)
        Any L with M = L'L whose rows are orthogonal.
    width : int
        Rows to return, from rank to n_features: coordinates of an embedded point.
    """
    if width == components.shape[1]:
        lengths = np.linalg.norm(components, axis=1)
        inside = components[lengths > 0.0]
        root: Floats = (inside / lengths[lengths > 0.0, None]).T @ inside
        return root
    turn, _, back = np.linalg.svd(
        _position(width, components.shape[1]) @ components.T, full_matrices=False
    )
    turned: Floats = turn @ (back @ components)
    return turned


@lru_cache(maxsize=8)
def _position(width: int, n_features: int) -> Floats:
    """The fixed position: generic, and for the first features the same however many follow."""
    columns: Floats = np.random.RandomState(0).normal(size=(n_features, width)) / np.sqrt(width)
    columns[:width] = np.eye(width)
    columns.flags.writeable = False
    position: Floats = columns.T
    return position
