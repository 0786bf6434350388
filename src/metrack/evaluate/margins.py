"""The engine's losses and slopes, for whole arrays of shortfalls s = 1 - m.

They are taken from its own source, run as Python: the engine's compiled form is for compiled
callers alone.
"""

from typing import Any

import numpy as np

from metrack.engine import losses
from metrack.evaluate.checks import Floats

_compiled: Any = losses
_loss = np.vectorize(_compiled.loss.py_func, otypes=[np.float64])
_slope = np.vectorize(_compiled.slope.py_func, otypes=[np.float64])


def loss_of(kind: int, shortfalls: Floats) -> Floats:
    """The loss at each shortfall."""
    found: Floats = _loss(kind, shortfalls)
    return found


def slope_of(kind: int, shortfalls: Floats) -> Floats:
    """How strongly the loss asks for a larger margin, at each shortfall."""
    found: Floats = _slope(kind, shortfalls)
    return found
