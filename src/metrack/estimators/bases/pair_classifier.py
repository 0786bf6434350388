"""Whether two points are alike: a distance and a threshold, as a classifier of pairs."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.estimators.bases.base import Embedding
from metrack.estimators.bases.threads import exclusive
from metrack.estimators.inputs import LabelsLike, TuplesLike, check_labels
from metrack.estimators.inputs.settings import choice, is_number
from metrack.estimators.reading.probability import Goal, check_goal, cut, sample_of

STRATEGIES = ("accuracy", "f1", "f_beta", "max_tpr", "max_tnr")


class PairClassifier(Embedding):
    """A metric and a threshold, which tell whether two points are alike.

    A subclass provides, once fitted, ``threshold_`` beside what an `Embedding` needs.
    """

    threshold_: float

    @property
    def classes_(self) -> Ints:
        """The two labels of a pair."""
        check_is_fitted(self)
        return np.array([-1, 1])

    def decision_function(self, pairs: TuplesLike) -> Floats:
        """The same as `pair_score`: larger means more alike."""
        return self.pair_score(pairs)

    @exclusive
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
        self.threshold_ = float(threshold)
        return self

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
    """Refuse what `PairClassifier.calibrate_threshold` cannot work with."""
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
