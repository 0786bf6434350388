"""Features in their own units: what differences are multiplied by, so that all spread alike."""

import numpy as np

from metrack.engine.numerics.kernels import Floats

ROUNDING = 1e-12  # a spread of less, beside the largest number, is none


def own_units(points: Floats) -> Floats:
    """One over each feature's standard deviation among some points; 1 where it is constant."""
    largest = np.abs(points).max(axis=0)
    unit = np.where(largest > 0.0, largest, 1.0)
    spread = np.std(points / unit, axis=0) * unit  # squares of the largest numbers stay finite
    varies = spread > ROUNDING * largest
    units: Floats = np.divide(1.0, spread, where=varies, out=np.ones_like(spread))
    return units
