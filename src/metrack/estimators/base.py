"""What every learned metric can tell: distances, scores, predictions, the embedding."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from metrack.engine.kernels import Floats, Ints
from metrack.estimators.inputs import PairBatch, check_labels, points_of
from metrack.estimators.settings import choice, is_number, positive, whole


class FrozenMetric:
    """A learned distance between two points, detached from its learner.

    Parameters
    ----------
    components : array (rank, n_features)
        L with M = L'L.
    """

    def __init__(self, components: Floats) -> None:
        self.components = components.copy()

    def __call__(self, x: Any, z: Any, squared: bool = False) -> float:
        """Distance between two points."""
        a, b = np.asarray(x, dtype=np.float64), np.asarray(z, dtype=np.float64)
        n_features = self.components.shape[1]
        if a.shape != (n_features,) or b.shape != (n_features,):
            raise ValueError(f"x and z must be points with {n_features} features each")
        embedded = self.components @ (a - b)
        square = float(embedded @ embedded)
        return square if squared else float(np.sqrt(square))


class Embedding(BaseEstimator):
    """Read-outs of a metric M = L'L, whatever it was learned from.

    A subclass provides, once fitted, ``components_`` (L), ``n_features_in_`` and ``preprocessor_``
    (the preprocessor, checked).
    """

    components_: Floats
    n_features_in_: int
    preprocessor_: Any

    def get_mahalanobis_matrix(self) -> Floats:
        """The matrix M, (n_features, n_features)."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def get_metric(self) -> FrozenMetric:
        """The distance as a function of two points; it does not change when learning goes on."""
        check_is_fitted(self)
        return FrozenMetric(self.components_)

    def transform(self, X: Any) -> Floats:
        """Embed points where the Euclidean distance is the learned one.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features), or row numbers with a preprocessor

        Returns
        -------
        array (n_points, rank)
            Directions that matter most come first.
        """
        check_is_fitted(self)
        points = points_of(X, self.preprocessor_, self.n_features_in_)
        return np.asarray(points @ self.components_.T)

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
            Such as the words behind word counts; by default features have numbers.

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
        named = list(range(self.n_features_in_) if names is None else names)
        if len(named) != self.n_features_in_:
            raise ValueError(
                f"names has {len(named)} names for {self.n_features_in_} features; give one each"
            )
        row = components[component]
        order = np.argsort(-np.abs(row), kind="stable")[: whole("n", n)]
        return [(named[i], float(row[i])) for i in order.tolist() if row[i] != 0.0]

    def pair_distance(self, pairs: Any) -> Floats:
        """Learned distance (not squared) between the two points of each pair."""
        check_is_fitted(self)
        batch = PairBatch(pairs, self.preprocessor_, self.n_features_in_)
        embedded = np.asarray(batch.differences(0, len(batch)) @ self.components_.T)
        squares: Floats = np.einsum("ij,ij->i", embedded, embedded)
        return np.sqrt(squares)

    def pair_score(self, pairs: Any) -> Floats:
        """Similarity of each pair: the negative of its distance."""
        return -self.pair_distance(pairs)


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

    def decision_function(self, pairs: Any) -> Floats:
        """The same as `pair_score`: larger means more alike."""
        return self.pair_score(pairs)

    def predict(self, pairs: Any) -> Ints:
        """+1 (alike) where the distance is at most ``threshold_``, else -1."""
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    def score(self, pairs: Any, y: Any) -> float:
        """Area under the ROC curve of `decision_function`."""
        scores = self.decision_function(pairs)
        return float(roc_auc_score(check_labels(y, len(scores)), scores))

    def set_threshold(self, threshold: float) -> Self:
        """Use a given distance as the threshold of `predict`; learning more pairs sets it anew."""
        check_is_fitted(self)
        if not (is_number(threshold) and threshold >= 0.0):
            raise ValueError(f"threshold must be a distance of at least 0, got {threshold!r}")
        self._set_threshold(float(threshold))
        return self

    def _set_threshold(self, value: float) -> None:
        self.threshold_ = value

    def calibrate_threshold(
        self,
        pairs_valid: Any,
        y_valid: Any,
        strategy: str = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Choose the threshold on labelled pairs that were not learned from.

        Parameters
        ----------
        pairs_valid, y_valid : pairs and their labels
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}
            What to maximise: accuracy; the F score; the true positive rate where the true negative
            rate is at least ``min_rate``; or the true negative rate where the true positive rate
            is.
        min_rate : float in [0, 1]
        beta : float
            Weight of recall in the F score.
        """
        distances = self.pair_distance(pairs_valid)
        y = check_labels(y_valid, len(distances))
        check_calibration(y, strategy, min_rate, beta)
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
    y: Floats, strategy: str = "accuracy", min_rate: Any = None, beta: float = 1.0
) -> None:
    """Refuse what `MahalanobisLearner.calibrate_threshold` cannot work with."""
    choice("strategy", strategy, dict.fromkeys(("accuracy", "f_beta", "max_tpr", "max_tnr"), 0))
    if strategy == "f_beta":
        positive("beta", beta, or_zero=True)
    if strategy.startswith("max") and not (is_number(min_rate) and 0.0 <= min_rate <= 1.0):
        raise ValueError(f"strategy {strategy!r} needs a min_rate in [0, 1], got {min_rate!r}")
    if strategy != "accuracy" and not (y > 0.0).any():
        raise ValueError(f"strategy {strategy!r} needs pairs with label +1; there are none")
    if strategy.startswith("max") and not (y < 0.0).any():
        raise ValueError(f"strategy {strategy!r} needs pairs with label -1; there are none")


def _best_threshold(
    distances: Floats, y: Floats, strategy: str, min_rate: float | None, beta: float
) -> float:
    """The best of all distances, and of one below them; the smallest where several are equal."""
    cuts = np.unique(distances)
    if cuts[0] > 0.0:
        cuts = np.concatenate([[np.nextafter(cuts[0], 0.0)], cuts])
    alike, other = np.sort(distances[y > 0.0]), np.sort(distances[y < 0.0])
    hits = np.searchsorted(alike, cuts, side="right")
    alarms = np.searchsorted(other, cuts, side="right")
    if strategy == "accuracy":
        return float(cuts[np.argmax(hits - alarms)])
    if strategy == "f_beta":
        weight = beta * beta
        bottom = weight * alike.size + hits + alarms
        f = np.divide((1.0 + weight) * hits, bottom, where=bottom > 0.0, out=np.zeros(cuts.size))
        return float(cuts[np.argmax(f)])
    # Rates by one division each: 1 - 0.9 would miss a min_rate of 0.1.
    rates = hits / alike.size, (other.size - alarms) / other.size
    wanted, kept = rates if strategy == "max_tpr" else rates[::-1]
    # Where a distance is 0, true negatives may not reach min_rate: then the most there can be.
    enough = np.minimum(kept, float(min_rate or 0.0))
    return float(cuts[np.lexsort((-cuts, kept, wanted, enough))[-1]])
