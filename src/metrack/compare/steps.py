"""Comparisons told in steps: a little, much, all. What a forest would ask of them.

Of a number from 0 to 1 each step has a share, larger the nearer it is; shares of neighbouring steps
add up to 1. That is a linear spline, so that a weighted sum of shares is any function of the
comparison with corners at the steps; and as steps are hardly ever large together, learning about
the one leaves the others as they are.
"""

import numpy as np

from metrack.engine.numerics.kernels import Floats

STEPS = {"a little": 1.0 / 3.0, "much": 2.0 / 3.0, "all": 1.0}
YES_OR_NO = ("other", "missing")  # how names of comparisons end that are 0 or 1, and stay as is


def step_names(name: str) -> list[str]:
    """What one comparison becomes."""
    return [name] if name.endswith(YES_OR_NO) else [f"{name}, {step}" for step in STEPS]


def in_steps(name: str, comparison: Floats) -> list[Floats]:
    """A comparison of that name, as the shares of its steps; all are 0 where it is."""
    if name.endswith(YES_OR_NO):
        return [comparison]
    corners = [0.0, *STEPS.values()]
    return [np.interp(comparison, corners, share) for share in np.eye(len(corners))[1:]]
