"""Plain distance with a learned threshold: right where there is nothing to learn."""

import numpy as np

from metrack.engine.ensemble.bank import FOREVER, Predictions
from metrack.engine.ensemble.calibration import (
    MEMORY,
    START,
    calibrate,
    new_calibration,
    scales,
)
from metrack.engine.ensemble.replay import Material
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats


class PlainBank:
    """One expert, which never changes its metric.

    Parameters
    ----------
    n_features : int
    memory : float
        Pairs that its scale and threshold rest on.
    start : float
        Both at first; see `new_calibration`.
    """

    first_interval = 0
    recent = 0
    name = "plain"

    def __init__(self, n_features: int, memory: float = MEMORY, start: float = START) -> None:
        self.n_features = n_features
        self.memory = memory
        self.calibration = new_calibration(1, start)

    @property
    def lengths(self) -> Floats:
        """It forgets nothing."""
        return np.array([FOREVER])

    @property
    def learning_rates(self) -> Floats:
        """No metric is learned."""
        return np.zeros(1)

    @property
    def mu(self) -> Floats:
        """The threshold."""
        return self.calibration.threshold

    def n_active(self, t: int) -> int:
        """One."""
        return 1

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict a chunk, and learn its scale and threshold."""
        chunk = material.chunk
        predictions.q[:, 0] = chunk.whole if chunk.whole.size > 0 else chunk.norm2
        calibrate(self.calibration, predictions, chunk.y, self.memory)

    def metric(self, j: int, unit: float) -> Factored:
        """A multiple of the identity, over ``unit``."""
        n = self.n_features
        return Factored(np.full(n, scales(self.calibration)[0] / unit), np.eye(n), 0.0)

    def mixture(self, p: Floats, unit: float) -> Factored:
        """The same, times its weight."""
        own = self.metric(0, unit)
        return Factored(p[0] * own.values, own.vectors, own.outside)

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The same, as a matrix of its one direction, and beyond."""
        scale = float(p[0] * scales(self.calibration)[0])
        return np.full((1, 1), scale), scale

    def change_basis(self, old: "PlainBank", turn: Floats) -> None:
        """Plain distance is the same on every basis."""
        self.calibration = old.calibration

    def continue_from(self, old: "PlainBank") -> None:
        """Go on from another; the features that are new have been 0 so far."""
        self.calibration = old.calibration

    def check(self, n_features: int) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        if len(self.calibration.slope) != 1:
            raise ValueError(f"{len(self.calibration.slope)} scales of plain distance")
