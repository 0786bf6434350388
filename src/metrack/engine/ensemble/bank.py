"""What a bank is: learners of one kind that see the same pairs, and know nothing of combiners.

A new kind of learner is a file with a class of this protocol; it need not use a representation.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from metrack.engine.ensemble.replay import Material
from metrack.engine.numerics.factored import Factored, nearest_metric
from metrack.engine.numerics.kernels import Floats

FOREVER = float(1 << 53)  # memory length of a learner that forgets nothing


class Predictions(NamedTuple):
    """What each learner said of each pair before learning it, (n_pairs, n_learners)."""

    q: Floats  # squared distance
    mu: Floats  # threshold


class Bank(Protocol):
    """Learners of one kind.

    Attributes that are records are state: `estimators.engine_state` saves them, by what their
    fields declare.
    On the dyadic cover (``first_interval`` > 0) learner j has the intervals of level j, so that all
    such banks have the same learners active; else all learners are always on.
    """

    @property
    def first_interval(self) -> int:
        """Length of the cover's shortest intervals; 0: learners are always on."""

    @property
    def recent(self) -> int:
        """How many of the last pairs must be kept, to be replayed."""

    @property
    def lengths(self) -> Floats:
        """Memory length of each learner there is."""

    @property
    def name(self) -> str:
        """Of the kind of learners."""

    @property
    def learning_rates(self) -> Floats:
        """Learning rate of each learner there is; 0 where no metric is learned."""

    @property
    def mu(self) -> Floats:
        """Threshold of each learner there is."""

    def n_active(self, t: int) -> int:
        """How many learners, the first ones, predict the t-th pair (counted from 1)."""

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict and learn a chunk, one pair after another.

        Predictions are left in the columns of the learners that are active.
        """

    def metric(self, j: int, unit: float) -> Factored:
        """Metric of learner j, over ``unit``."""

    def mixture(self, p: Floats, unit: float) -> Factored:
        """The weighted sum of the first learners' metrics, over ``unit``."""

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of all learners' metrics: on their features, and beyond them.

        Where a learner's form need not be a metric, of these forms.
        """

    def continue_from(self, old: Any) -> None:
        """Go on from what a bank of the same kind has learned, with perhaps fewer features.

        The others have been 0 so far: there every metric is at its start.
        """

    def check(self, n_features: int) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""


class ReadFromMatrix:
    """What banks share whose metrics are read from the sum of their learners' forms."""

    def metric(self: Bank, j: int, unit: float) -> Factored:
        """Metric of learner j, over ``unit``: the one nearest to its form."""
        return self.mixture(np.eye(len(self.mu))[j], unit)

    def mixture(self: Bank, p: Floats, unit: float) -> Factored:
        """The metric nearest to the weighted sum of the first learners' forms, over ``unit``."""
        matrix, _ = self.matrix(np.pad(p, (0, len(self.mu) - len(p))))
        return nearest_metric(matrix / unit)
