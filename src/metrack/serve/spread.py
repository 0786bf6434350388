"""How far features differ in what is judged: a metric's numbers alone do not say what counts.

A feature in small units has large numbers in the metric, and counts for no more than another one.
"""

import numpy as np

from metrack.checks import Floats
from metrack.storage import Arrays

PREFIX = "spread."


class Spread:
    """Mean squared differences of features.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, n_features: int) -> None:
        self.totals: Floats = np.zeros(n_features)
        self.last: Floats = np.empty((0, n_features))  # point, where points come one by one

    def observe(self, points: Floats) -> None:
        """Take what is judged, (n, members, n_features): differences to the first of each.

        Single points differ from the one before.
        """
        if points.shape[1] > 1:
            gaps = (points[:, 1:] - points[:, :1]).reshape(-1, points.shape[2])
        else:
            row = np.concatenate([self.last, points[:, 0]])
            gaps, self.last = row[1:] - row[:-1], row[-1:]
        # One after another: numpy's own sum would depend on how many there are.
        self.totals = np.add.accumulate(np.concatenate([self.totals[None], gaps**2]), axis=0)[-1]

    def weigh(self, shares: Floats) -> Floats:
        """Features' shares of a metric's trace as shares of its mean squared distance."""
        found: Floats = shares * self.totals
        total = found.sum(axis=-1)
        return found / total if total > 0.0 else shares

    def pack(self) -> Arrays:
        """The arrays."""
        return {f"{PREFIX}totals": self.totals, f"{PREFIX}last": self.last}

    def unpack(self, arrays: Arrays) -> None:
        """The inverse of `pack`."""
        self.totals, self.last = arrays[f"{PREFIX}totals"], arrays[f"{PREFIX}last"]
