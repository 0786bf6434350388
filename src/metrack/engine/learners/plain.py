"""Plain distance with a learned threshold: right where there is nothing to learn."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from metrack.engine.learners.always_on import AlwaysOnBank
from metrack.engine.learners.bank import FOREVER, Predictions, Row
from metrack.engine.learners.calibration import MEMORY, START, calibrate, scales
from metrack.engine.learners.replay import Material
from metrack.engine.numerics.kernels import Floats

SLOW_START = 4.0  # it does not move, so that nothing is lost by learning its scale slowly


class PlainBank(AlwaysOnBank):
    """One expert, which never changes its metric.

    Its scale and threshold, both ``start`` at first, rest on ``memory`` pairs.
    """

    STATE = ("calibration",)
    NEEDS = ("memory",)
    name = "plain"

    def __init__(self, n_features: int, memory: float = MEMORY, start: float = START) -> None:
        super().__init__(n_features, 1, start)
        self.memory = memory

    @classmethod
    def of_rows(cls, rows: Sequence[Row], n_features: int) -> Self:
        """A row's memory is that of its scale."""
        (row,) = rows
        return cls(n_features, float(row.memory), SLOW_START)

    @property
    def lengths(self) -> Floats:
        """It forgets nothing."""
        return np.array([FOREVER])

    @property
    def learning_rates(self) -> Floats:
        """No metric is learned."""
        return np.zeros(1)

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict a chunk, and learn its scale and threshold."""
        chunk = material.chunk
        predictions.q[:, 0] = chunk.whole if chunk.whole.size > 0 else chunk.norm2
        calibrate(self.calibration, predictions, chunk.y, self.memory)

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """A multiple of the identity, and beyond."""
        scale = float(p[0] * scales(self.calibration)[0])
        return scale * np.eye(self.n_features), scale

    def change_basis(self, old: "PlainBank", turn: Floats) -> None:
        """Plain distance is the same on every basis."""
        self.calibration = old.calibration

    def continue_from(self, old: "PlainBank") -> None:
        """Go on from another; the features that are new have been 0 so far."""
        self.calibration = old.calibration
