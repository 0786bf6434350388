"""Coordinates on a few directions, and on all others: what many features are turned by."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from metrack.engine.numerics.kernels import Floats


class Frame:
    """Orthonormal columns B, and a basis of all that they leave out: Householder's.

    His reflections, I - YTY', turn B to the first axes, or minus these. So B tells the first
    coordinates of a point that is turned, and by them Y the others, in products of narrow matrices.
    B is ``vectors``, (n_features, width).
    """

    def __init__(self, vectors: Floats) -> None:
        self.vectors = vectors

    @cached_property
    def _reflections(self) -> tuple[Floats, Floats]:
        """On which side columns come to lie; what the first coordinates add to the others."""
        width = self.vectors.shape[1]
        found = lapack.dgeqrf(self.vectors)[0]
        added = solve_triangular(
            found[:width], found[width:].T, trans="T", lower=True, unit_diagonal=True
        )
        return np.sign(np.diag(found)), np.ascontiguousarray(added)

    def of_type(self, kind: Any) -> "Frame":
        """The same for points of single precision, which takes half the time, or of double."""
        return self if kind == self.vectors.dtype else self._single

    @cached_property
    def _single(self) -> "Frame":
        signs, added = self._reflections
        found = Frame(self.vectors.astype(np.float32))
        found._reflections = signs.astype(np.float32), added.astype(np.float32)
        return found

    def left_out(self, points: Floats, c: Floats, found: Floats) -> None:
        """Coordinates on what B leaves out, into ``found``; ``c``, those on B, is used up."""
        signs, added = self._reflections
        width = c.shape[1]
        c *= signs
        c -= points[:, :width]
        np.matmul(c, added, out=found)
        found += points[:, width:]

    def others(self) -> Floats:
        """Orthonormal rows: the basis of what B leaves out."""
        n, width = self.vectors.shape
        found = np.empty((n, n - width))
        self.left_out(np.eye(n), self.vectors.copy(), found)
        return found.T
