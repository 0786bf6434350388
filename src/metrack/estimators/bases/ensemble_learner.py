"""Learners of pairs whose engine is an ensemble."""

import numpy as np

from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.linear_learner import LinearLearner
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.bases.threads import exclusive, when_fitted
from metrack.estimators.choosing import active
from metrack.estimators.inputs import PairBatch, TuplesLike
from metrack.estimators.reading import probability


class EnsembleLearner(OnlineLearner):
    """A learner of pairs, or several, whose engine is an ensemble."""

    engine_: Ensemble

    def _forget(self, batch: PairBatch) -> int:
        return sum(self.engine_.forget(each) for each in batch.chunks(np.zeros(len(batch))))

    @exclusive
    def predict_proba(self, pairs: TuplesLike) -> Floats:
        """How likely each pair is not alike, and alike: columns as in ``classes_``.

        It is calibrated by what was said of the last 512 alike pairs and the last 512 others before
        they were learned, at the share that alike pairs have in the stream.
        """
        alike = self.likelihood()(self.pair_distance(pairs) ** 2)
        return np.column_stack([1.0 - alike, alike])

    @when_fitted
    def likelihood(self) -> probability.Curve:
        """How likely a pair is alike, by its squared distance; it does not change any more."""
        return self._kept("likelihood", self._calibrated)

    def _calibrated(self) -> probability.Curve:
        sample = probability.sample(self.engine_.experts.scores)
        return probability.curve(sample).of_squares(self.mu_)

    def _cut_ratio(self) -> float:
        goal, least = probability.check_goal(getattr(self, "threshold", "accuracy"))
        if goal == "accuracy":
            return 1.0  # what is learned along counts errors
        found = probability.sample(self.engine_.experts.scores)
        known = found.alike.any() and found.others.any()
        return probability.cut(found, goal, least) if known else 1.0

    def _committee(self) -> list[active.Expert]:
        """All experts that are active, by their trust."""
        p, mu = self.engine_.experts.weights, self.engine_.experts.mu
        return self._kept(
            "committee",
            lambda: [
                active.Expert(self._components_of(j), float(mu[j]), float(p[j]))
                for j in range(len(p))
            ],
        )

    def _components_of(self, expert: int) -> Floats:
        """L of what one expert has learned."""
        raise NotImplementedError

    def _exploration(self) -> float:
        changed = self.engine_.last_change
        return active.exploration(self.engine_.n_pairs - changed if changed else np.inf)

    def _standing(self) -> Floats:
        return np.array([float(self.engine_.last_change)])

    @property
    @when_fitted
    def last_change_(self) -> int:
        """The pair, counted from 1, at which losses were last found to have risen; 0: none."""
        return self.engine_.last_change


class LinearEnsemble(EnsembleLearner, LinearLearner):
    """The same, of learners whose metrics are matrices on the points' features."""

    def _committee(self) -> list[active.Expert]:
        by_hand = "components" in self.set_by_hand_
        return LinearLearner._committee(self) if by_hand else super()._committee()

    def _components_of(self, expert: int) -> Floats:
        components, start = self.engine_.metric(expert).components(), self._start_of()
        return components if start is None else components @ start.root
