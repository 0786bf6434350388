"""What every learned metric can tell: distances, scores, predictions, the embedding."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import roc_auc_score
from sklearn.utils import ClassifierTags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.estimators.inputs import (
    LabelsLike,
    Lookup,
    PairBatch,
    Points,
    PointsLike,
    TuplesLike,
    are_ids,
    check_labels,
    float_type,
    points_for,
)
from metrack.estimators.probability import Goal, check_goal, cut, sample_of
from metrack.estimators.settings import Configurable, choice, is_number, whole

STRATEGIES = ("accuracy", "f1", "f_beta", "max_tpr", "max_tnr")
F = TypeVar("F", bound=Callable[..., Any])


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


fitted_to_points: Callable[[F], F] = available_if(
    lambda self: get_tags(self).input_tags.two_d_array
)


class _FitTransform:
    """``fit_transform`` where ``fit`` takes points, as ``transform`` does, and not pairs of them.

    It is apart because scikit-learn wraps what a transformer's own class defines, and so would
    always show it.
    """

    @fitted_to_points
    def fit_transform(self, X: PointsLike, y: LabelsLike | None = None, **fit_params: Any) -> Any:
        """Fit to points, then embed them."""
        return super().fit_transform(X, y, **fit_params)  # type: ignore[misc]


class Embedding(_FitTransform, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Configurable):
    """Read-outs of a metric M = L'L, whatever it was learned from.

    A subclass provides, once fitted, ``components_`` (L), ``n_features_in_`` and ``preprocessor_``
    (the preprocessor, checked); and ``feature_names_in_``, where that is a DataFrame.
    """

    components_: Floats
    n_features_in_: int
    preprocessor_: Lookup

    def get_mahalanobis_matrix(self) -> Floats:
        """The matrix M, (n_features, n_features)."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def get_metric(self) -> FrozenMetric:
        """The distance as a function of two points; it does not change when learning goes on."""
        check_is_fitted(self)
        return FrozenMetric(self.components_)

    def transform(self, X: PointsLike) -> Floats:
        """Embed points where the Euclidean distance is the learned one.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features), or row numbers with a preprocessor

        Returns
        -------
        array (n_points, rank)
            Directions that matter most come first. With an ``n_components`` setting there are that
            many columns: the last are 0 where the metric has fewer directions, and the least are
            left out where it has more. float32 where the points are.
        """
        check_is_fitted(self)
        return self._embed(X)

    def _embed(self, X: PointsLike) -> Floats:
        points: Any = points_for(self, X)
        given = getattr(self, "preprocessor", None) if are_ids(X, self.preprocessor_) else X
        kind = float_type(given)
        return np.asarray(self._turned(points.astype(kind, copy=False))).astype(kind, copy=False)

    def _turned(self, points: Points) -> Floats:
        """Points times the directions."""
        found: Floats = points @ self._directions().T
        return found

    def _directions(self) -> Floats:
        """Rows onto which `transform` projects."""
        return self.components_

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
        check_is_fitted(self)
        weight = np.array(self._directions())
        return Linear(weight, np.zeros(len(weight)))

    @property
    def _n_features_out(self) -> int:
        return len(self._directions())

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
        check_is_fitted(self)
        components = self.components_
        if not (is_number(component) and component in range(len(components))):
            raise ValueError(
                f"component={component!r}; the metric has {len(components)} directions, from 0"
            )
        named = self._named_features(names).tolist()
        row = components[component]
        order = np.argsort(-np.abs(row), kind="stable")[: whole("n", n)]
        return [(named[i], float(row[i])) for i in order.tolist() if row[i] != 0.0]

    def _named_features(self, names: Any = None) -> NDArray[Any]:
        """The features by given names, else by those that are known, else by number."""
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        if names is None:
            return np.arange(self.n_features_in_)
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"names has {len(names)} names for {self.n_features_in_} features; give one each"
            )
        return np.array(names, dtype=object)

    def pair_distance(self, pairs: TuplesLike) -> Floats:
        """Learned distance (not squared) between the two points of each pair."""
        check_is_fitted(self)
        batch = PairBatch(pairs, self.preprocessor_, self.n_features_in_)
        return np.sqrt(self._squares(batch.differences(0, len(batch))))

    def _squares(self, differences: Points) -> Floats:
        """Squared distances."""
        embedded = np.asarray(differences @ self.components_.T)
        squares: Floats = np.einsum("ij,ij->i", embedded, embedded)
        return squares

    def pair_score(self, pairs: TuplesLike) -> Floats:
        """Similarity of each pair: the negative of its distance."""
        return -self.pair_distance(pairs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class StaticEmbedding(Embedding):
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


class MahalanobisLearner(Embedding):
    """A metric and a threshold learned from pairs, which tell whether two points are alike.

    A subclass provides, once fitted, ``threshold_`` beside what an `Embedding` needs.
    """

    threshold_: float

    @property
    def classes_(self) -> Ints:
        """The two labels of a pair."""
        check_is_fitted(self)
        return np.array([-1, 1])

    def get_metric(self) -> FrozenMetric:
        """The distance as a function of two points; it does not change when learning goes on."""
        check_is_fitted(self)
        return FrozenMetric(self.components_, self.threshold_)

    def decision_function(self, pairs: TuplesLike) -> Floats:
        """The same as `pair_score`: larger means more alike."""
        return self.pair_score(pairs)

    def predict(self, pairs: TuplesLike) -> Ints:
        """+1 (alike) where the distance is at most ``threshold_``, else -1."""
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    def score(self, pairs: TuplesLike, y: LabelsLike) -> float:
        """Area under the ROC curve of `decision_function`; labels as `fit` takes them."""
        scores = self.decision_function(pairs)
        return float(roc_auc_score(check_labels(y, len(scores)), scores))

    def set_threshold(self, threshold: float) -> Self:
        """Use a given distance as the threshold of `predict`; learning more pairs sets it anew.

        A negative one calls no pair alike, not even a point and itself.
        """
        check_is_fitted(self)
        if not is_number(threshold) or np.isnan(threshold):
            raise ValueError(f"threshold must be a number, a distance; got {threshold!r}")
        self._set_threshold(float(threshold))
        return self

    def _set_threshold(self, value: float) -> None:
        self.threshold_ = value

    def calibrate_threshold(
        self,
        pairs_valid: TuplesLike,
        y_valid: LabelsLike,
        strategy: Goal = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Choose the threshold on labelled pairs that were not learned from.

        Parameters
        ----------
        pairs_valid, y_valid : pairs and their labels
            Some of each kind.
        strategy : {"accuracy", "f1", "f_beta", "max_tpr", "max_tnr"} or dict
            What to maximise: accuracy; the F score; the true positive rate where the true negative
            rate is at least ``min_rate``; or the true negative rate where the true positive rate
            is. {"precision": 0.95}: pairs called alike, where so many of them are;
            {"recall": 0.9}: those not called so, where so many of the alike ones are.
        min_rate : float in [0, 1]
        beta : float
            Weight of recall in the F score; its sign does not count.
        """
        distances = self.pair_distance(pairs_valid)
        y = check_labels(y_valid, len(distances))
        check_calibration(y, strategy, min_rate, beta)
        if isinstance(strategy, Mapping):
            return self.set_threshold(cut(sample_of(distances, y > 0.0), *check_goal(strategy)))
        return self.set_threshold(_best_threshold(distances, y, strategy, min_rate, beta))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"  # folds are stratified by the pairs' labels
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def check_calibration(
    y: Floats, strategy: Goal = "accuracy", min_rate: Any = None, beta: float = 1.0
) -> None:
    """Refuse what `MahalanobisLearner.calibrate_threshold` cannot work with."""
    if isinstance(strategy, Mapping):
        check_goal(strategy, "strategy")
    else:
        choice("strategy", strategy, dict.fromkeys(STRATEGIES))
    if strategy == "f_beta" and not (is_number(beta) and np.isfinite(beta)):
        raise ValueError(f"strategy 'f_beta' needs a finite number as beta, got {beta!r}")
    if strategy in ("max_tpr", "max_tnr") and not (is_number(min_rate) and 0.0 <= min_rate <= 1.0):
        raise ValueError(f"strategy {strategy!r} needs a min_rate in [0, 1], got {min_rate!r}")
    if (y == y[0]).all():
        raise ValueError(
            f"all pairs have label {y[0]:+.0f}: a threshold needs pairs that are alike (+1) and "
            f"pairs that are not (-1); add some with label {-y[0]:+.0f}"
        )


def _best_threshold(
    distances: Floats, y: Floats, strategy: Goal, min_rate: float | None, beta: float
) -> float:
    """The best of all distances, and of one below them; the smallest where several are equal."""
    cuts = np.unique(distances)
    below = np.nextafter(cuts[0], 0.0) if cuts[0] > 0.0 else -1.0
    cuts = np.concatenate([[below], cuts])
    alike, other = np.sort(distances[y > 0.0]), np.sort(distances[y < 0.0])
    hits = np.searchsorted(alike, cuts, side="right")
    alarms = np.searchsorted(other, cuts, side="right")
    if strategy == "accuracy":
        return float(cuts[np.argmax(hits - alarms)])
    if strategy in ("f1", "f_beta"):
        beta = 1.0 if strategy == "f1" else beta
        weight = beta * beta
        bottom = weight * alike.size + hits + alarms
        f = np.divide((1.0 + weight) * hits, bottom, where=bottom > 0.0, out=np.zeros(cuts.size))
        return float(cuts[np.argmax(f)])
    # Rates by one division each: 1 - 0.9 would miss a min_rate of 0.1.
    rates = hits / alike.size, (other.size - alarms) / other.size
    wanted, kept = rates if strategy == "max_tpr" else rates[::-1]
    enough = np.minimum(kept, float(min_rate or 0.0))
    return float(cuts[np.lexsort((-cuts, kept, wanted, enough))[-1]])
