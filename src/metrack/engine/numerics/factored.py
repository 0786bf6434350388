"""A metric by its eigenvectors: what the engine hands out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular

from metrack.engine.numerics.kernels import Floats

ROUNDING = 1e-14  # a mixture's eigenvalues below this share of the largest are no directions


class Factored(NamedTuple):
    """A metric M = outside (I - VV') + V diag(values) V'."""

    values: Floats
    vectors: Floats  # V', (rank, n_features)
    outside: float

    def matrix(self) -> Floats:
        """M itself."""
        n = self.vectors.shape[1]
        above = (self.vectors.T * (self.values - self.outside)) @ self.vectors
        return above + self.outside * np.eye(n)

    def eigenpairs(self) -> tuple[Floats, Floats]:
        """Eigenvalues, falling, and vectors as rows; those of value 0 may be left out."""
        if self.outside == 0.0:
            return self.values, self.vectors
        values, vectors, above = self._falling()
        # V' and an orthonormal basis of what it leaves out: Householder's, from V itself.
        others = qr(vectors.T)[0][:, len(vectors) :].T
        alike = np.full(len(others), self.outside)
        return (
            np.concatenate([values[:above], alike, values[above:]]),
            np.concatenate([vectors[:above], others, vectors[above:]]),
        )

    def _falling(self) -> tuple[Floats, Floats, int]:
        """Eigenvalues and V' in their order, and how many are not below all others."""
        order = np.argsort(-self.values, kind="stable")
        return self.values[order], self.vectors[order], int(np.sum(self.values >= self.outside))

    def leading(self, rank: int) -> "Factored":
        """The nearest metric of so small a rank."""
        values, vectors, above = self._falling()
        if above < rank:
            values, vectors = self.eigenpairs()
        return Factored(values[:rank], vectors[:rank], 0.0)

    def embed(self, points: Floats) -> Floats:
        """Points times the transpose of `components`; quicker, where V is narrow."""
        values, vectors, above = self._falling()
        rank = len(values)
        if self.outside == 0.0 or rank == 0 or values[-1] == 0.0:
            embedded: Floats = points @ self.components().T
            return embedded
        # The reflections of `eigenpairs`, I - YTY', turn V to the first axes, or minus these: so V
        # tells the first coordinates, and by them Y the others, in products of matrices alone.
        reflections = lapack.dgeqrf(vectors.T)[0]
        along = points @ vectors.T
        turned = points[:, :rank] - along * np.sign(np.diag(reflections))
        others = points[:, rank:] - turned @ solve_triangular(
            reflections[:rank], reflections[rank:].T, trans="T", lower=True, unit_diagonal=True
        )
        along *= np.sqrt(values)
        others *= np.sqrt(self.outside)
        return np.concatenate([along[:, :above], others, along[:, above:]], axis=1)

    def squared_distances(self, u: Floats) -> Floats:
        """Those of differences, row by row."""
        along = u @ self.vectors.T
        above = np.einsum("ij,ij,j->i", along, along, self.values - self.outside)
        found: Floats = np.maximum(above + self.outside * np.einsum("ij,ij->i", u, u), 0.0)
        return found

    def components(self) -> Floats:
        """L with M = L'L, rows by falling eigenvalue."""
        values, vectors = self.eigenpairs()
        kept = values > 0.0
        components: Floats = np.sqrt(values[kept])[:, None] * vectors[kept]
        return components


def mixture_of(metrics: Sequence[Factored], p: Floats, capacity: int) -> Factored:
    """The weighted sum of metrics, cut to a rank of ``capacity`` where its rank is not full."""
    n_features = metrics[0].vectors.shape[1]
    outside = float(sum(weight * m.outside for weight, m in zip(p, metrics, strict=True)))
    rows = np.concatenate([m.vectors for m in metrics])
    above = [weight * (m.values - m.outside) for weight, m in zip(p, metrics, strict=True)]
    lifted = np.concatenate(above)
    if outside == 0.0 and len(rows) < n_features:
        # Fewer directions than features: the Gram matrix of L has the eigenvalues of L'L.
        factor = np.sqrt(lifted)[:, None] * rows
        values, mixing = np.linalg.eigh(factor @ factor.T)
        vectors = mixing.T @ factor
    else:
        values, mixing = np.linalg.eigh((rows.T * lifted) @ rows)
        vectors = mixing.T
    values, vectors = values[::-1] + outside, vectors[::-1]
    n_kept = int(np.sum(values > ROUNDING * values[0])) if len(values) else 0
    if outside == 0.0:
        n_kept = min(n_kept, capacity)
    vectors = vectors[:n_kept]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return Factored(values[:n_kept], vectors / lengths, 0.0)
