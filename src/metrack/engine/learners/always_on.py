"""What banks share whose learners are always on, and say distances on scales of their own."""

from typing import ClassVar

import numpy as np

from metrack.engine.learners.calibration import START, new_calibration
from metrack.engine.numerics.factored import Factored, nearest_metric
from metrack.engine.numerics.kernels import Floats


class AlwaysOnBank:
    """What banks share whose learners are always on, each with a calibration of its own."""

    STATE: ClassVar[tuple[str, ...]] = ("learners", "calibration")
    NEEDS: ClassVar[tuple[str, ...]] = ("rate",)
    name = ""
    first_interval = 0

    def __init__(self, n_features: int, n_learners: int, start: float = START) -> None:
        self.n_features = n_features
        self.n_learners = n_learners
        self.calibration = new_calibration(n_learners, start)

    @property
    def recent(self) -> int:
        """How many of the last pairs must be kept, to be replayed: none."""
        return 0

    @property
    def remembers(self) -> bool:
        """Whether pairs of all the past are replayed."""
        return False

    @property
    def mu(self) -> Floats:
        """Threshold of each learner on calibrated distances."""
        return self.calibration.threshold

    def n_active(self, t: int) -> int:
        """All of them."""
        return self.n_learners

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of the learners' forms: on their features, and beyond them."""
        raise NotImplementedError

    def mixture(self, p: Floats, unit: float) -> Factored:
        """The metric nearest to the weighted sum of the first learners' forms, over ``unit``."""
        matrix, _ = self.matrix(np.pad(p, (0, self.n_learners - len(p))))
        return nearest_metric(matrix / unit)

    def metric(self, j: int, unit: float) -> Factored:
        """Metric of learner j, over ``unit``: the one nearest to its form."""
        return self.mixture(np.eye(self.n_learners)[j], unit)

    def check(self, n_features: int) -> None:
        """Refuse another number of learners than this bank has."""
        if len(self.calibration.slope) != self.n_learners:
            raise ValueError(
                f"{len(self.calibration.slope)} scales of {self.name} learners, expected "
                f"{self.n_learners}"
            )
