"""A metric by its eigenvectors: what the engine hands out."""

from typing import NamedTuple

import numpy as np

from metrack.engine.kernels import Floats


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
