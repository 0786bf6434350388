"""The embedding of a metric that changes: it moves no more than the metric does.

Every L with M = L'L gives the same distances, and rows by falling eigenvalue, as in
``components_``, turn around or swap places at the smallest change of M. What has been embedded
earlier can then not be compared with what is embedded now. So of all L the one nearest to a fixed
position is taken: for as many rows as features that is the square root of M.
"""

from functools import lru_cache

import numpy as np

from metrack.engine.kernels import Floats


def steady(components: Floats, width: int) -> Floats:
    """L with M = L'L in the position nearest to a fixed one.

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
