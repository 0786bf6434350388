"""Products of sparse rows, pair by pair."""

import numpy as np

from metrack.compare.tokens import Terms
from metrack.engine.numerics.kernels import Floats, Ints, kernel


def products(first: Terms, a: Floats, second: Terms, b: Floats, rows: Ints) -> Floats:
    """Inner products of row rows[k, 0] of the first texts and row rows[k, 1] of the second.

    Parameters
    ----------
    first, second : Terms
    a, b : array
        The value of each of their terms.
    rows : array (n_pairs, 2)
    """
    found = np.empty(len(rows))
    _products(first, a, second, b, rows, found)
    return found


@kernel
def _products(first: Terms, a: Floats, second: Terms, b: Floats, rows: Ints, found: Floats) -> None:
    """Terms are merged by their numbers."""
    for k in range(found.size):
        i, stop = first.starts[rows[k, 0]], first.starts[rows[k, 0] + 1]
        j, end = second.starts[rows[k, 1]], second.starts[rows[k, 1] + 1]
        total = 0.0
        while i < stop and j < end:
            x, z = first.keys[i], second.keys[j]
            if x == z:
                total += a[i] * b[j]
            i += x <= z
            j += z <= x
        found[k] = total
