"""The engine's losses and gradients, for whole arrays of shortfalls s = 1 - m.

They are taken from its own source, run as Python: the engine's compiled form is for compiled
callers alone.
"""

import numpy as np

from metrack.checks import Floats
from metrack.engine.numerics.losses import FORMULAS, Kind


def loss_of(kind: Kind, shortfalls: Floats) -> Floats:
    """The loss at each shortfall."""
    formula = FORMULAS[type(kind)].loss.py_func
    found: Floats = np.vectorize(formula, otypes=[np.float64], excluded={0})(kind, shortfalls)
    return found


def gradient_of(kind: Kind, shortfalls: Floats) -> Floats:
    """How strongly the loss asks for a larger margin, at each shortfall."""
    formula = FORMULAS[type(kind)].gradient.py_func
    found: Floats = np.vectorize(formula, otypes=[np.float64], excluded={0})(kind, shortfalls)
    return found
