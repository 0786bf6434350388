"""A metric by its eigenvectors: what the engine hands out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

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
        n = self.vectors.shape[1]
        # V' and any orthonormal basis of what it leaves out: Householder's, from V itself.
        complement = qr(self.vectors.T)[0][:, len(self.vectors) :].T
        values = np.concatenate([self.values, np.full(n - len(self.values), self.outside)])
        order = np.argsort(-values, kind="stable")
        return values[order], np.concatenate([self.vectors, complement])[order]

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
