"""The rank-one change of a factor L with M = L'L: what LogDet steps are made of, in O(n^2)."""

import math

from metrack.engine.numerics.divergences import LARGEST
from metrack.engine.numerics.kernels import Floats, add_scaled, dot, fill, inner, mix
from metrack.engine.numerics.pairs import Difference, row_times

LOST = 1e-15  # 1 minus so little is 1 but for a few last digits


@inner
def factor_distance(factor: Floats, u: Difference, w: Floats) -> float:
    """The squared distance |Lu|^2; leaves Lu in w."""
    for i in range(w.size):
        w[i] = row_times(factor[i], u)
    return dot(w, w, w.size)


@inner
def update_factor(
    factor: Floats, w: Floats, r: Floats, q: float, ratio: float, norm2: float, growth: float
) -> None:
    """Give u the squared distance ratio * q, where Lu is in w, then all of M a factor ``growth``.

    r is working memory.
    """
    n, grown = w.size, math.sqrt(growth)
    # No input may lead to a NaN.
    ratio = min(max(ratio, 1.0 / LARGEST), max(1.0, LARGEST * norm2 / q))
    root = math.sqrt(ratio)
    a = (1.0 - root) / q
    fill(r, 0.0, n)
    for i in range(n):
        add_scaled(r, w[i], factor[i], n)
    for i in range(n):
        mix(grown, factor[i], -grown * a * w[i], r, n)
        if root < LOST:  # else a factor of rank 1 might cancel to nothing, and M with it
            add_scaled(factor[i], grown * root / q * w[i], r, n)
