"""What can be read of a learner at a moment; it does not change when learning goes on."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from metrack.checks import Floats
from metrack.estimators.bases.linear import StaticEmbedding
from metrack.estimators.reading.probability import Curve


class Embedding(Protocol):
    """Points where Euclidean distance is a learned one."""

    n_features_in_: int

    def transform(self, X: Any) -> Floats:
        """Embed points."""

    def pair_distance(self, pairs: Any) -> Floats:
        """Distances of pairs of points."""


class Classes(Protocol):
    """Says how likely points are of each class."""

    def labels(self) -> Sequence[str]:
        """The classes, in the order of `shares`."""

    def shares(self, points: Floats) -> Floats:
        """Probabilities, (n_points, n_classes)."""


class Reading(NamedTuple):
    """What can be read of a learner.

    Attributes
    ----------
    metric, embedding, neighbours : Embedding
        Of pairs, as the learner's own ``transform``, and for neighbours.
    threshold : float or None
        Distance up to which a pair is called alike.
    likelihood : Curve or None
        How likely a pair is alike, by squared distance.
    classes : Classes or None
    """

    metric: Embedding
    embedding: Embedding
    neighbours: Embedding
    threshold: float | None
    likelihood: Curve | None
    classes: Classes | None = None


def linear(learner: Any, n_features: int, threshold: float | None) -> Reading:
    """Of a learner whose metric is a matrix."""
    metric = StaticEmbedding(learner.components_)
    embedding = metric
    if getattr(learner, "n_components", None) is not None:
        embedding = StaticEmbedding(learner.transform(np.eye(n_features)).T)
    near = learner.for_neighbours() if hasattr(learner, "for_neighbours") else metric
    curve = learner.likelihood() if hasattr(learner, "likelihood") else None
    return Reading(metric, embedding, near, threshold, curve)
