"""A metric on the features of a kernel that was read out of a learner, and learns no more."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from metrack.engine.ensemble.kernel_rule import KernelRule, as_dense
from metrack.engine.ensemble.landmarks import Landmarks, features
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.base import Embedding
from metrack.estimators.bases.linear import squared_distances
from metrack.estimators.inputs import (
    Lookup,
    PairBatch,
    Points,
    PointsLike,
    TuplesLike,
    check_points,
    float_type,
    points_for,
)

NOTHING = 1e-12  # a share of the largest spread that may be rounding's


class SpacesMetric:
    """Sum of Mahalanobis metrics, of points and of their features by a kernel.

    Parameters
    ----------
    rule : KernelRule
    landmarks : Landmarks
        By which points have features; it is kept without the latest points, which change.
    metrics : sequence of Factored
        Of the points, and of the features of each bandwidth.
    n_components : int, optional
        Columns of the embedding: those in which the landmarks spread most.
    """

    def __init__(
        self,
        rule: KernelRule,
        landmarks: Landmarks,
        metrics: Sequence[Factored],
        n_components: int | None = None,
    ) -> None:
        self.rule = rule
        self.landmarks = landmarks._replace(latest=np.empty((0, len(landmarks.points))))
        self.metrics = tuple(metrics)
        self.n_components = n_components

    def features(self, points: Points) -> list[Any]:
        """Points as each space sees them."""
        return [points, *features(self.rule, self.landmarks, points)]

    def squares(self, x: Points, z: Points) -> Floats:
        """Squared distances of pairs of rows."""
        total = np.zeros(x.shape[0])
        for metric, a, b in zip(self.metrics, self.features(x), self.features(z), strict=True):
            if metric.values.any() or metric.outside > 0.0:
                total += _squares(metric, a - b)
        return total

    def embed(self, points: Points) -> Floats:
        """Points where Euclidean distance is the learned one, the widest spread first."""
        columns = self._columns(points)
        return columns[:, self._order] if self._turn is None else columns @ self._turn

    def root(self, points: Points) -> Floats:
        """The same by the symmetric roots of the metrics: it moves no more than these do."""
        if self.n_components is not None:
            return self.embed(points)
        each = zip(self.features(points), self.metrics, strict=True)
        return np.hstack([np.asarray(seen @ _root(metric)) for seen, metric in each])

    def components(self) -> Floats:
        """L of the whole metric, on the features of all spaces side by side."""
        found: Floats = sp.block_diag([each.components() for each in self.metrics]).toarray()
        return found

    def spread(self) -> Floats:
        """How far each landmark is from their mean, squared, in the embedding."""
        embedded = self._of_landmarks
        found: Floats = np.einsum("ij,ij->i", embedded, embedded)
        return found

    def _columns(self, points: Points) -> Floats:
        """The embedding, space by space."""
        each = zip(self.metrics, self.features(points), strict=True)
        return np.hstack([_embedded(metric, seen) for metric, seen in each])

    @cached_property
    def _of_landmarks(self) -> Floats:
        """The landmarks' embedding, centred."""
        used = int(self.landmarks.used[0])
        found = self._columns(self.landmarks.points[:, :used].T)
        return found - found.mean(axis=0) if used else found

    @cached_property
    def _order(self) -> Any:
        spreads = np.einsum("ij,ij->j", self._of_landmarks, self._of_landmarks)
        return np.argsort(-spreads, kind="stable")

    @cached_property
    def _turn(self) -> Floats | None:
        """The directions that are asked for; the last are 0 where there are fewer."""
        if self.n_components is None:
            return None
        embedded = self._of_landmarks
        _, spreads, rows = np.linalg.svd(embedded, full_matrices=False)
        kept = min(int(np.sum(spreads > NOTHING * spreads.max(initial=0.0))), self.n_components)
        rows = rows[:kept] * np.sign(rows[range(kept), np.abs(rows[:kept]).argmax(axis=1)])[:, None]
        return np.pad(rows, ((0, self.n_components - kept), (0, 0))).T


def _squares(metric: Factored, u: Any) -> Floats:
    if isinstance(u, np.ndarray):
        return metric.squared_distances(u)
    return squared_distances(metric.components(), u)


def _embedded(metric: Factored, points: Any) -> Floats:
    if isinstance(points, np.ndarray):
        return metric.embed(points)
    return np.asarray(points @ metric.components().T)


def _root(metric: Factored) -> Floats:
    roots = Factored(np.sqrt(metric.values), metric.vectors, float(np.sqrt(metric.outside)))
    return roots.matrix()


class FrozenKernelMetric:
    """A learned distance between two points, detached from its learner.

    Parameters
    ----------
    metric : SpacesMetric
    threshold : float
        Distance up to which the learner called a pair alike.
    """

    def __init__(self, metric: SpacesMetric, threshold: float) -> None:
        self.metric = metric
        self.threshold = threshold

    def __call__(self, x: Any, z: Any, squared: bool = False) -> float:
        """Distance between two points, each (n_features,) or (1, n_features)."""
        n = len(self.metric.landmarks.points)
        a, b = (np.reshape(np.asarray(each, dtype=np.float64), (1, -1)) for each in (x, z))
        if a.shape != (1, n) or b.shape != (1, n):
            raise ValueError(f"x and z must be points with {n} features each")
        square = float(self.metric.squares(check_points(a, "x"), check_points(b, "z"))[0])
        return square if squared else float(np.sqrt(square))


class KernelEmbedding(Embedding):
    """The embedding of a moment; it does not change when learning goes on.

    Parameters
    ----------
    metric : SpacesMetric
    preprocessor : array, CSR matrix or callable, optional
        Points that row numbers refer to.
    """

    def __init__(self, metric: SpacesMetric, preprocessor: Lookup = None) -> None:
        self.metric = metric
        self.preprocessor = preprocessor
        self.preprocessor_ = preprocessor
        self.n_features_in_ = len(metric.landmarks.points)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """There is nothing to fit; for pipelines."""
        return self

    def _embed(self, X: PointsLike) -> Floats:
        return self.metric.embed(points_for(self, X)).astype(float_type(self, X), copy=False)

    def pair_distance(self, pairs: TuplesLike) -> Floats:
        """Learned distance (not squared) between the two points of each pair."""
        batch = PairBatch(pairs, self.preprocessor_, self.n_features_in_)
        x, z = (batch.member(i, 0, len(batch)) for i in range(2))
        return np.sqrt(self.metric.squares(x, z))

    @property
    def _n_features_out(self) -> int:
        return int(self.metric.embed(np.zeros((1, self.n_features_in_))).shape[1])


class Seen:
    """Points as all spaces see them, side by side: of rows that are asked for, not of all.

    Parameters
    ----------
    metric : SpacesMetric
    points : array or CSR matrix (n_points, n_features)
    """

    def __init__(self, metric: SpacesMetric, points: Points) -> None:
        self.metric = metric
        self.points = points

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the points."""
        return self.points.shape

    def __getitem__(self, rows: Any) -> Floats:
        """Features of some points, one a row."""
        seen = self.metric.features(self.points[rows])
        return np.hstack([as_dense(each) for each in seen])
