"""What banks share whose learners are always on, and say distances on scales of their own."""

from typing import Any, ClassVar

import numpy as np

from metrack.engine.learners.bank import Bank
from metrack.engine.learners.calibration import START, new_calibration
from metrack.engine.numerics.factored import Factored, nearest_metric
from metrack.engine.numerics.kernels import Floats


class AlwaysOnBank(Bank):
    """What banks share whose learners are always on, each with a calibration of its own."""

    STATE: ClassVar[tuple[str, ...]] = ("learners", "calibration")
    NEEDS: ClassVar[tuple[str, ...]] = ("rate",)
    name = ""
    first_interval = 0
    pace: Any

    def __init__(self, n_features: int, n_learners: int, start: float = START) -> None:
        self.n_features = n_features
        self.n_learners = n_learners
        self.calibration = new_calibration(n_learners, start)

    @property
    def learning_rates(self) -> Floats:
        """Learning rate of each learner."""
        rates: Floats = self.pace.rate
        return rates

    @property
    def mu(self) -> Floats:
        """Threshold of each learner on calibrated distances."""
        return self.calibration.threshold

    def n_active(self, t: int) -> int:
        """All of them."""
        return self.n_learners

    def mixture(self, p: Floats, unit: float) -> Factored:
        """The metric nearest to the weighted sum of the first learners' forms, over ``unit``."""
        matrix, _ = self.matrix(np.pad(p, (0, self.n_learners - len(p))))
        return nearest_metric(matrix / unit)

    def metric(self, j: int, unit: float) -> Factored:
        """Metric of learner j, over ``unit``: the one nearest to its form."""
        return self.mixture(np.eye(self.n_learners)[j], unit)

    def check(self, n_features: int) -> None:
        """Refuse another number of learners than this bank has.

        Records agree with each other: all that have an entry a learner have as many.
        """
        if len(self.calibration.slope) != self.n_learners:
            raise ValueError(
                f"{len(self.calibration.slope)} scales of {self.name} learners, expected "
                f"{self.n_learners}"
            )


def sum_of_squares(weights: Floats, factors: Floats) -> Floats:
    """The weighted sum of the metrics L'L of some factors."""
    rows = (np.sqrt(weights)[:, None, None] * factors).reshape(-1, factors.shape[2])
    found: Floats = rows.T @ rows
    return found
