"""Which representation is the fastest that is exact."""

from metrack.engine.numerics.divergences import BURG
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from metrack.engine.representations.protocol import Geometry, Representation
from metrack.engine.representations.spectral import SPECTRAL


def for_nuclear_norm(geometry: Geometry, rho: float, n_features: int) -> Representation:
    """The representation for the nuclear norm of strength rho, or for no regulariser."""
    if geometry.divergence == BURG and rho == 0.0 and geometry.capacity == n_features:
        return DENSE_FACTOR
    return SPECTRAL
