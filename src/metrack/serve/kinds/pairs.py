"""Learners of judged pairs."""

from typing import Any

from metrack.checks import Floats
from metrack.estimators.bases.ensemble_learner import EnsembleLearner
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.kernel_tracker import KernelTracker
from metrack.estimators.reading.probability import latest_ratios
from metrack.serve.kinds.kind import Examples
from metrack.serve.kinds.reading import Reading, linear
from metrack.serve.plain_distance import unknown
from metrack.serve.series import Outcome


class Pairs:
    """Pairs, alike or not."""

    example: str = "pairs"
    members: int = 2
    sides: tuple[str, ...] = ("x", "z")
    by_copy = False
    in_their_units = True

    def learn(self, learner: OnlineLearner, some: Examples, room: int) -> tuple[int, Outcome]:
        """Learn the first of some pairs."""
        n = min(room, len(some.y))
        y = some.y[:n].astype(float)
        losses = learner.observe(some.points[:n], y)
        return n, outcome_of(learner, losses, y > 0.0)

    def forget(self, learner: OnlineLearner, points: Floats) -> None:
        """Replay judgements of these pairs no more."""
        learner.forget(points)

    def inner(self, learner: OnlineLearner) -> OnlineLearner:
        """Itself."""
        return learner

    def counted(self, learner: OnlineLearner) -> int:
        """Pairs."""
        return learner.n_pairs_seen_

    def threshold(self, learner: OnlineLearner) -> float | None:
        """As `predict` has it."""
        return learner.threshold_

    def read(self, learner: Any, n_features: int) -> Reading:
        """A matrix."""
        return linear(learner, n_features, learner.threshold_)


class KernelPairs(Pairs):
    """The same, of a metric that is no matrix on the features: it is read from a copy."""

    by_copy = True

    def read(self, learner: KernelTracker, n_features: int) -> Reading:
        """The copy itself."""
        near = learner.for_neighbours()
        return Reading(learner, learner, near, learner.threshold_, learner.likelihood())


def outcome_of(learner: Any, losses: Floats, alike: Any) -> Outcome:
    """What was said of the pairs learned last, before they were learned."""
    nothing = unknown(len(losses))
    if not isinstance(learner, EnsembleLearner):
        return Outcome(losses, nothing, nothing, nothing, alike)
    ratios = latest_ratios(learner.engine_.experts.scores, alike)
    return Outcome(losses, nothing, ((ratios <= 1.0) == alike).astype(float), ratios, alike)
