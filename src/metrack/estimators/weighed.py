"""Learners whose output is weighed over many experts, and what they tell of these."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble.bank import FOREVER
from metrack.engine.ensemble.spaces import AS_THEY_COME, SpacesEnsemble
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.online import EnsembleLearner
from metrack.estimators.threads import exclusive


class Expert(NamedTuple):
    """A learner of the ensemble, and how much it is trusted.

    Attributes
    ----------
    kind : str
        Such as "target"; "leading" are target learners on a few leading directions.
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
    space: str = AS_THEY_COME


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
    @exclusive
    def scales_(self) -> Floats:
        """Memory lengths of the active learners; infinite where nothing is forgotten."""
        check_is_fitted(self)
        lengths = self.engine_.lengths
        return np.where(lengths < FOREVER, lengths, np.inf)

    @property
    @exclusive
    def effective_window_(self) -> float:
        """How many of the most recent pairs the metric rests on: the trusted memory length.

        Or all pairs, as long as there are fewer.
        """
        check_is_fitted(self)
        return min(self.engine_.effective_window, float(self.engine_.n_pairs))

    @property
    @exclusive
    def weights_(self) -> Floats:
        """Normalised weights of the active learners."""
        check_is_fitted(self)
        return self.engine_.weights

    @property
    @exclusive
    def experts_(self) -> list[Expert]:
        """Kind, memory length, rate and weight of every active learner."""
        check_is_fitted(self)
        engine = self.engine_
        found = zip(engine.kinds, self.scales_, engine.learning_rates, self.weights_, strict=True)
        return [
            Expert(kind, float(memory), float(rate), float(weight), space)
            for (kind, memory, rate, weight), space in zip(found, self._spaces(), strict=True)
        ]

    def _spaces(self) -> list[str]:
        """Which features each active learner works on."""
        engine = self.engine_
        if isinstance(engine, SpacesEnsemble):
            return spaces_of(engine)
        return [AS_THEY_COME] * engine.n_active

    @exclusive
    def last_round(self) -> Round:
        """What the combiner did in the last round."""
        check_is_fitted(self)
        experts, n_active = self.engine_.experts, self.engine_.n_active
        return Round(experts.p[:n_active].copy(), experts.losses[:n_active].copy())

    def _mu(self) -> float:
        p = self.weights_
        return max(1.0, float(p @ self.engine_.mu[: len(p)]))  # a mean of >= 1, rounded


def spaces_of(engine: SpacesEnsemble, others: Iterable[str] = ()) -> list[str]:
    """The features that each expert works on; ``others`` are of spaces not of differences."""
    names = [*engine.views, *others]
    sizes = [len(space.experts.length) for space in engine.spaces]
    return [each for each, size in zip(names, sizes, strict=True) for _ in range(size)]
