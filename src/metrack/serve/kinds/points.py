"""Learners of points with classes."""

from typing import Any

import numpy as np

from metrack.checks import Floats
from metrack.estimators.bases.linear import StaticEmbedding
from metrack.estimators.drift_knn import DriftKNN
from metrack.estimators.from_labels import FromLabels
from metrack.serve.kinds.kind import Examples
from metrack.serve.kinds.pairs import outcome_of
from metrack.serve.kinds.reading import Reading, linear
from metrack.serve.plain_distance import unknown
from metrack.serve.series import Outcome


class Points:
    """Points with classes, which a metric tracks: pairs of them are drawn."""

    example: str = "points"
    members: int = 1
    sides: tuple[str, ...] = ("x",)
    by_copy = False
    in_their_units = True

    def learn(self, learner: FromLabels, some: Examples, room: int) -> tuple[int, Outcome]:
        """Learn the first point; losses are errors on the pairs that were drawn for it."""
        inner: Any = learner.learner_
        seen = inner.n_pairs_seen_
        alike_before = inner.engine_.experts.scores.seen[0]
        learner.teach(some.points[0], some.labels[:1])
        n_pairs = inner.n_pairs_seen_ - seen
        # In which order they were drawn does not matter here.
        alike = np.arange(n_pairs) < inner.engine_.experts.scores.seen[0] - alike_before
        outcome = outcome_of(inner, np.zeros(n_pairs), alike)
        return 1, outcome._replace(losses=1.0 - outcome.right)

    def forget(self, learner: Any, points: Floats) -> None:
        """Points are not taken back."""

    def inner(self, learner: FromLabels) -> Any:
        """The learner of pairs."""
        return learner.learner_

    def counted(self, learner: FromLabels) -> int:
        """Points."""
        return int(learner.buffer_.clock[0])

    def threshold(self, learner: FromLabels) -> float | None:
        """Of the learner of pairs."""
        return float(learner.learner_.threshold_)

    def read(self, learner: FromLabels, n_features: int) -> Reading:
        """A matrix."""
        return linear(learner.learner_, n_features, self.threshold(learner))


class NeighbourClasses(Points):
    """Points with classes, which are predicted: read from a copy, as it remembers points."""

    by_copy = True
    in_their_units = False

    def learn(self, learner: DriftKNN, some: Examples, room: int) -> tuple[int, Outcome]:
        """Learn the first of some points; losses are errors."""
        n = min(room, len(some.y))
        labels: list[Any] = list(some.labels[:n])
        predicted = learner.follow(some.points[:n, 0], labels)
        right = np.array([a == b for a, b in zip(predicted, labels, strict=True)], dtype=float)
        nothing = unknown(n)
        return n, Outcome(1.0 - right, nothing, right, nothing, np.ones(n, dtype=bool))

    def inner(self, learner: DriftKNN) -> Any:
        """The learner of pairs within."""
        return learner.metric_.learner_

    def counted(self, learner: DriftKNN) -> int:
        """Points."""
        return int(learner.votes_.n_points)

    def threshold(self, learner: DriftKNN) -> float | None:
        """Neighbours vote; no pair is called alike."""
        return None

    def read(self, learner: DriftKNN, n_features: int) -> Reading:
        """The copy, and a matrix on features as they come."""
        metric = StaticEmbedding(learner.metric_.components_ * learner.votes_.units)
        return Reading(metric, metric, metric, None, None, learner)
