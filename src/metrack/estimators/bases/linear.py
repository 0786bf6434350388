"""Metrics that are a matrix on the points' features: M = L'L, and all that is read off L."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.base import Embedding
from metrack.estimators.bases.threads import when_fitted
from metrack.estimators.inputs import (
    PairBatch,
    Points,
    PointsLike,
    TuplesLike,
    float_type,
    points_for,
)
from metrack.estimators.inputs.settings import is_number, whole


class FrozenMetric:
    """A learned distance between two points, detached from its learner.

    Parameters
    ----------
    components : array (rank, n_features)
        L with M = L'L.
    threshold : float, optional
        Distance up to which the learner called a pair alike.
    """

    def __init__(self, components: Floats, threshold: float | None = None) -> None:
        self.components: Floats = np.array(components, ndmin=2)
        self.threshold = threshold

    def __call__(self, x: Any, z: Any, squared: bool = False) -> float:
        """Distance between two points, each (n_features,) or (1, n_features)."""
        a, b = (np.atleast_1d(np.squeeze(np.asarray(each, dtype=np.float64))) for each in (x, z))
        n_features = self.components.shape[1]
        if a.shape != (n_features,) or b.shape != (n_features,):
            raise ValueError(f"x and z must be points with {n_features} features each")
        embedded = self.components @ (a - b)
        square = float(embedded @ embedded)
        return square if squared else float(np.sqrt(square))


class Linear(NamedTuple):
    """A linear layer: points times the weight's rows, and a shift."""

    weight: Floats
    bias: Floats


class LinearEmbedding(Embedding):
    """Read-outs of a metric M = L'L; a subclass provides ``components_`` (L), once fitted."""

    components_: Floats

    @when_fitted
    def get_mahalanobis_matrix(self) -> Floats:
        """The matrix M, (n_features, n_features)."""
        return self.components_.T @ self.components_

    @when_fitted
    def get_metric(self) -> FrozenMetric:
        """The distance as a function of two points; it does not change when learning goes on."""
        return FrozenMetric(self.components_, getattr(self, "threshold_", None))

    def _embed(self, X: PointsLike) -> Floats:
        points: Any = points_for(self, X)
        kind = float_type(self, X)
        return np.asarray(self._turned(points.astype(kind, copy=False))).astype(kind, copy=False)

    def _turned(self, points: Points) -> Floats:
        """Points times the directions."""
        found: Floats = points @ self._directions().T
        return found

    def _directions(self) -> Floats:
        """Rows onto which `transform` projects."""
        return self.components_

    @when_fitted
    def to_linear(self) -> Linear:
        """The embedding as a linear layer of any other library, such as a last layer of an encoder.

        `transform` is ``X @ weight.T + bias``. It does not change when learning goes on.

        Returns
        -------
        weight : array (n_columns, n_features)
        bias : array (n_columns,)
            Zeros: distances do not depend on a shift. Layers ask for it.

        Examples
        --------
        >>> import numpy as np
        >>> from metrack import MetricTracker
        >>> pairs = np.random.default_rng(0).normal(size=(300, 2, 3))
        >>> y = np.where(np.abs(pairs[:, 0, 1] - pairs[:, 1, 1]) < 1, 1, -1)
        >>> tracker = MetricTracker(n_components=2).fit(pairs, y)
        >>> weight, bias = tracker.to_linear()
        >>> weight.shape, bias.shape
        ((2, 3), (2,))
        >>> X = pairs[:, 0]
        >>> bool(np.allclose(X @ weight.T + bias, tracker.transform(X)))
        True
        """
        weight = np.array(self._directions())
        return Linear(weight, np.zeros(len(weight)))

    @property
    def _n_features_out(self) -> int:
        return len(self._directions())

    @when_fitted
    def top_features(
        self, component: int = 0, n: int = 10, names: Any = None
    ) -> list[tuple[Any, float]]:
        """The features that a direction of the embedding rests on most, and their weights.

        Parameters
        ----------
        component : int
            Row of ``components_``; 0 is the direction that matters most.
        n : int
            How many to name; fewer where the others have no weight at all.
        names : sequence (n_features,), optional
            Such as the words behind word counts; by default those of the DataFrame that the
            points came in, else numbers.

        Returns
        -------
        list of (name, weight)
            Features with weights of the same sign move a point to the same side.

        Examples
        --------
        >>> import numpy as np
        >>> from metrack import COMID
        >>> pairs = np.random.default_rng(0).normal(size=(300, 2, 3))
        >>> y = np.where(np.abs(pairs[:, 0, 1] - pairs[:, 1, 1]) < 1, 1, -1)
        >>> COMID().fit(pairs, y).top_features(names=["red", "round", "ripe"], n=1)[0][0]
        'round'
        """
        components = self.components_
        if not (is_number(component) and component in range(len(components))):
            raise ValueError(
                f"component={component!r}; the metric has {len(components)} directions, from 0"
            )
        named = self._named_features(names).tolist()
        row = components[component]
        order = np.argsort(-np.abs(row), kind="stable")[: whole("n", n)]
        return [(named[i], float(row[i])) for i in order.tolist() if row[i] != 0.0]

    def pair_distance(self, pairs: TuplesLike) -> Floats:
        """Learned distance (not squared) between the two points of each pair."""
        check_is_fitted(self)
        batch = PairBatch(pairs, self.preprocessor_, self.n_features_in_)
        return np.sqrt(self._squares(batch.differences(0, len(batch))))

    def _squares(self, differences: Points) -> Floats:
        return squared_distances(self.components_, differences)


def squared_distances(components: Floats, differences: Any) -> Floats:
    """|L u|^2 of each row u."""
    embedded = np.asarray(differences @ components.T)
    squares: Floats = np.einsum("ij,ij->i", embedded, embedded)
    return squares


class StaticEmbedding(LinearEmbedding):
    """A metric that was read out of a learner, and learns no more.

    Parameters
    ----------
    components : array (rank, n_features)
        L with M = L'L.
    preprocessor : array, CSR matrix or callable, optional
        Points that row numbers refer to.
    """

    def __init__(self, components: Floats, preprocessor: Any = None) -> None:
        self.components = components
        self.preprocessor = preprocessor
        self.components_, self.preprocessor_ = components, preprocessor
        self.n_features_in_ = components.shape[1]

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """There is nothing to fit; for pipelines."""
        return self
