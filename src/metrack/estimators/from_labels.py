"""FromLabels: learn a metric from points with class labels."""

from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from metrack.engine.kernels import Floats
from metrack.estimators.base import FrozenMetric
from metrack.estimators.inputs import Points, check_points
from metrack.estimators.online import OnlineLearner
from metrack.estimators.pairing import PairMemory
from metrack.estimators.sadl import SADL


class FromLabels(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Any online pair learner, on a stream of points with class labels.

    Each new point is paired with points of a bounded memory: similar where their labels are equal,
    dissimilar where they are not, as many of one kind as of the other. Points are taken in the
    order given; batches of any sizes give the same metric, bit for bit, as one by one.

    Parameters
    ----------
    learner : OnlineLearner, optional
        The pair learner, such as `SADL` (the default) or `COMID`; a copy of it is fitted.
    memory : int
        Number of points remembered.
    recent : float in [0, 1]
        Share of the memory for the most recent points; the rest is a uniform sample of all before
        them. With 1 the labels' meaning may change from one moment to the next, with 0 nothing is
        expected to change.
    pairs_per_point : int
        Most pairs drawn for a new point; fewer where the memory lacks partners.
    random_state : int, RandomState or None
        For what is drawn, and for the learner where it has none of its own.

    Attributes
    ----------
    learner_ : OnlineLearner
        The fitted learner, with all its read-outs.
    components_ : array (rank, n_features)
        L with M = L'L, of the learner.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.utils import shuffle
    >>> from metrack import SADL, FromLabels
    >>> X, y = shuffle(*load_wine(return_X_y=True), random_state=0)
    >>> metric = FromLabels(SADL(), random_state=0)
    >>> model = make_pipeline(StandardScaler(), metric, KNeighborsClassifier())
    >>> bool(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    def __init__(
        self,
        learner: OnlineLearner | None = None,
        memory: int = 256,
        recent: float = 0.5,
        pairs_per_point: int = 4,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.memory = memory
        self.recent = recent
        self.pairs_per_point = pairs_per_point
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn the points in order.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features)
        y : array (n_points,)
            Class labels of any kind.
        """
        return self._learn(X, y, anew=True)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Go on learning, with points and labels as in `fit`; new classes may come at any time."""
        return self._learn(X, y, anew=not hasattr(self, "learner_"))

    def transform(self, X: Any) -> Floats:
        """Embed points where the Euclidean distance is the learned one.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features)

        Returns
        -------
        array (n_points, n_columns)
            As many columns as features, or as the learner's ``n_components``, whatever the rank.
            The embedding turns no more than the metric changes, so that what was embedded a moment
            ago can be compared with what is embedded now.
        """
        check_is_fitted(self)
        points = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return np.asarray(points @ self.learner_._steady_components().T)

    def pair_distance(self, pairs: Any) -> Floats:
        """Learned distance between the two points of each pair, (n_pairs, 2, n_features)."""
        check_is_fitted(self)
        return self.learner_.pair_distance(pairs)

    def get_mahalanobis_matrix(self) -> Floats:
        """The matrix M, (n_features, n_features)."""
        check_is_fitted(self)
        return self.learner_.get_mahalanobis_matrix()

    def get_metric(self) -> FrozenMetric:
        """The distance as a function of two points; it does not change when learning goes on."""
        check_is_fitted(self)
        return self.learner_.get_metric()

    @property
    def components_(self) -> Floats:
        """L with M = L'L, (rank, n_features); rows by falling weight."""
        check_is_fitted(self)
        return self.learner_.components_

    @property
    def _n_features_out(self) -> int:
        return len(self.learner_._steady_components())

    def _learn(self, X: Any, y: Any, anew: bool) -> Self:
        before = self.__dict__.copy()
        try:
            points, labels = self._check(X, y, anew)
            if anew:
                self._start()
        except Exception:
            self.__dict__ = before
            raise
        self.memory_.teach(self.learner_, points, labels)
        return self

    def _check(self, X: Any, y: Any, anew: bool) -> tuple[Points, list[Any]]:
        X, y = validate_data(
            self, X, y, reset=anew, accept_sparse="csr", dtype=np.float64, multi_output=False
        )
        check_classification_targets(y)
        return check_points(X), y.tolist()

    def _start(self) -> None:
        learner = SADL() if self.learner is None else clone(self.learner)
        if not isinstance(learner, OnlineLearner):
            raise ValueError(
                f"learner={learner!r}; it must be one of metrack's online pair learners, such as "
                "SADL()"
            )
        if learner.preprocessor is not None:
            raise ValueError("the learner has a preprocessor; leave it None, as X holds the points")
        rng = check_random_state(self.random_state)
        if learner.random_state is None:
            learner.set_params(random_state=rng.randint(2**31 - 1))
        memory = PairMemory(self.memory, self.recent, self.pairs_per_point, rng)
        learner._start(self.n_features_in_, None)
        self.learner_, self.memory_ = learner, memory

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
