"""Learners whose output is weighed over many experts, and what they tell of these."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from metrack.engine.learners.bank import FOREVER
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.ensemble_learner import EnsembleLearner
from metrack.estimators.bases.threads import exclusive, when_fitted
from metrack.estimators.reading import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEMORIES = 4.0 ** np.arange(2, 9)  # lengths between which trust is told apart, in pictures


class Expert(NamedTuple):
    """A learner of the ensemble, and how much it is trusted.

    Attributes
    ----------
    kind : str
        Such as "target", "gradient" or "plain".
    memory : float
        How many of the most recent pairs it rests on; infinite where it forgets nothing.
    learning_rate : float
        0 where it learns no metric; of moments, the share of the latest pair.
    weight : float
    space : str
        Which features of the points it works on: "as they come", each in its "own" units, or those
        of a kernel.
    """

    kind: str
    memory: float
    learning_rate: float
    weight: float
    space: str


class Round(NamedTuple):
    """What the combiner did in the last round, expert by expert of those that were active.

    Attributes
    ----------
    p : array
        Probability of each when it predicted.
    losses : array
        What the combiner was told of each, in [0, 1].
    """

    p: Floats
    losses: Floats


class WeighedLearner(EnsembleLearner):
    """An ensemble of experts, whose weights tell how fast things drift."""

    @property
    @when_fitted
    def scales_(self) -> Floats:
        """Memory lengths of the active learners; infinite where nothing is forgotten."""
        lengths = self.engine_.experts.lengths
        return np.where(lengths < FOREVER, lengths, np.inf)

    @property
    @when_fitted
    def effective_window_(self) -> float:
        """How many of the most recent pairs the metric rests on: the trusted memory length.

        Or all pairs, as long as there are fewer.
        """
        return min(self.engine_.experts.effective_window, float(self.engine_.n_pairs))

    @property
    @when_fitted
    def weights_(self) -> Floats:
        """Normalised weights of the active learners."""
        return self.engine_.experts.weights

    @property
    @when_fitted
    def experts_(self) -> list[Expert]:
        """Kind, memory length, rate and weight of every active learner."""
        experts = self.engine_.experts
        seen = zip(self._spaces(), self.engine_.spaces, strict=True)
        spaces = experts.named([name for name, space in seen for _ in space.banks])
        found = zip(
            experts.kinds, self.scales_, experts.learning_rates, self.weights_, spaces, strict=True
        )
        return [
            Expert(kind, float(memory), float(rate), float(weight), space)
            for kind, memory, rate, weight, space in found
        ]

    def _spaces(self) -> list[str]:
        """What each space of learners sees."""
        return list(self.engine_.views.names)

    def _standing(self) -> Floats:
        """The last change, and the trust in learners of each length of memory."""
        experts = self.engine_.experts
        bins = np.searchsorted(MEMORIES, experts.lengths)
        trust = np.bincount(bins, experts.weights, len(MEMORIES) + 1)
        return np.append(super()._standing(), trust)

    @exclusive
    def plot_trust(self, ax: "Axes | None" = None) -> "Axes":
        """Draw how much learners of each length of memory were trusted along the stream.

        Trust moves to short memories where things change, and to long ones where they stay.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Drawn on a new figure without.
        """
        ends, _, values = self._so_far()
        names = [f"up to {each:,.0f} pairs" for each in MEMORIES]
        return plotting.trust(plotting.axes(ax), ends, values[:, 1:], [*names, "all pairs"])

    @when_fitted
    def last_round(self) -> Round:
        """What the combiner did in the last round."""
        known, n_active = self.engine_.experts.known, self.engine_.experts.n_active
        return Round(known.p[:n_active].copy(), known.losses[:n_active].copy())

    def _mu(self) -> float:
        p = self.weights_
        return max(1.0, float(p @ self.engine_.experts.mu[: len(p)]))  # a mean of >= 1, rounded
