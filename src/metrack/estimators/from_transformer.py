"""FromTransformer: the read-outs of a learned metric for scikit-learn's linear transformers."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.linear import LinearEmbedding
from metrack.estimators.bases.pair_classifier import PairClassifier
from metrack.estimators.choosing.constraints import pairs_from_labels
from metrack.estimators.inputs import LabelsLike, PointsLike, TuplesLike, check_points, take_names
from metrack.estimators.inputs.settings import Seed

N_PAIRS = 2_000  # drawn from labels to calibrate the threshold
N_TESTED = 20  # points on which a transformer must be linear


class FromTransformer(PairClassifier, LinearEmbedding):
    """Any linear transformer of scikit-learn as a learned metric.

    NCA, LDA and PCA, a pipeline of scalers and such, and `LMNN` as well: whatever transforms points
    by a matrix and a shift. The metric is the Euclidean distance of what is transformed, with the
    read-outs of the other learners.

    Parameters
    ----------
    transformer : estimator
        A copy of it is fitted.
    random_state : int, RandomState or None
        For the pairs that the threshold is calibrated on.

    Attributes
    ----------
    transformer_ : estimator
        The fitted transformer.
    components_ : array (n_columns, n_features)
        L with M = L'L, as read off the transformer.
    threshold_ : float
        Distance up to which a pair is called alike: with labels, that of best accuracy on pairs
        drawn from them. Without, `calibrate_threshold` or `set_threshold` sets it.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import NeighborhoodComponentsAnalysis
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from metrack import FromTransformer
    >>> X, y = load_wine(return_X_y=True)
    >>> nca = NeighborhoodComponentsAnalysis(2, random_state=0)
    >>> metric = FromTransformer(make_pipeline(StandardScaler(), nca), random_state=0).fit(X, y)
    >>> metric.get_mahalanobis_matrix().shape
    (13, 13)
    >>> metric.predict([X[[0, 1]], X[[0, 100]]])  # of the same class, of two
    array([ 1, -1])
    """

    def __init__(self, transformer: Any, random_state: Seed = None) -> None:
        self.transformer = transformer
        self.random_state = random_state

    def fit(self, X: PointsLike, y: LabelsLike | None = None) -> Self:
        """Fit the transformer, and with labels the threshold.

        Parameters
        ----------
        X : array (n_points, n_features)
        y : array (n_points,), optional
            Class labels, where the transformer needs them.
        """
        points = check_points(X)
        check_consistent_length(points, y)
        transformer = clone(self.transformer)
        # What is fitted to names warns of points without; the matrix is read off with such points.
        transformer.fit(points if hasattr(X, "columns") else X, y)
        components = _matrix_of(transformer, points)
        drawn = None if y is None else pairs_from_labels(y, N_PAIRS, self.random_state)
        self.transformer_, self.components_ = transformer, components
        take_names(self, X)
        self.preprocessor_ = None
        self.n_features_in_ = points.shape[1]
        self.__dict__.pop("threshold_", None)
        if drawn is not None:
            rows, labels = drawn
            pairs = _dense(points[rows.ravel()]).reshape(-1, 2, self.n_features_in_)
            self.calibrate_threshold(pairs, labels)
        return self

    def predict(self, pairs: TuplesLike) -> Any:
        """+1 (alike) where the distance is at most ``threshold_``, else -1."""
        check_is_fitted(self)
        if not hasattr(self, "threshold_"):
            raise ValueError(
                "there is no threshold, as fit got no labels: call calibrate_threshold with pairs "
                "and their labels, or set_threshold"
            )
        return super().predict(pairs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True  # fit and transform take points; predict, pairs
        tags.target_tags.required = False
        return tags


def _matrix_of(transformer: Any, points: Any) -> Floats:
    """L of a transformer that takes x to Lx and a shift."""
    n_features = points.shape[1]
    some = _dense(points[:: max(1, points.shape[0] // N_TESTED)])
    unit = float(np.sqrt(np.mean(some * some))) or 1.0
    there = _transform(transformer, np.vstack([np.zeros(n_features), unit * np.eye(n_features)]))
    components: Floats = np.ascontiguousarray((there[1:] - there[0]).T) / unit
    expected, found = some @ components.T + there[0], _transform(transformer, some)
    size = np.abs(there).max() + np.abs(found).max()
    if not np.allclose(found, expected, rtol=1e-6, atol=1e-6 * size):
        raise ValueError(
            f"{type(transformer).__name__} does not transform by a matrix and a shift, so there is "
            "no such metric; use its transform with the Euclidean distance"
        )
    return components


def _transform(transformer: Any, points: Floats) -> Floats:
    return np.asarray(_dense(transformer.transform(points)), dtype=np.float64)


def _dense(points: Any) -> Any:
    sparse: bool = sp.issparse(points)
    return points.toarray() if sparse else points
