"""FromLabels: learn a metric from points with class labels."""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.batch import BatchLearner
from metrack.estimators.bases.linear import FrozenMetric
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.bases.threads import exclusive
from metrack.estimators.bases.unchanged import unchanged_on_error
from metrack.estimators.choosing.constraints import check_classes, pairs_from_labels
from metrack.estimators.choosing.pairing import PairBuffer
from metrack.estimators.inputs import (
    LabelsLike,
    Points,
    PointsLike,
    TuplesLike,
    check_labelled,
    check_points,
    hand_names,
    restore_names,
)
from metrack.estimators.inputs.settings import Configurable, Seed, whole
from metrack.estimators.metric_tracker import MetricTracker
from metrack.estimators.states import persistence

F = TypeVar("F", bound=Callable[..., Any])

online: Callable[[F], F] = available_if(lambda self: not isinstance(self.learner, BatchLearner))


class FromLabels(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Configurable):
    """Any pair learner, on points with class labels; an online one also on a stream of them.

    For an online learner, each new point is paired with points of a bounded buffer: similar where
    their labels are equal, dissimilar where they are not, as many of one kind as of the other.
    Points are taken in the order given; batches of any sizes give the same metric, bit for bit, as
    one by one. For a learner that takes all pairs at once, such as `ITML` or `MMC`, pairs are drawn
    from all points, and there is `fit` alone.

    Classes are found among neighbours: where the learner has a metric for these, as `MetricTracker`
    has (`MetricTracker.for_neighbours`), it is the one of all read-outs here.

    Parameters
    ----------
    learner : OnlineLearner or BatchLearner, optional
        The pair learner, such as `MetricTracker` (the default), `COMID` or `ITML`; a copy of it is
        fitted.
    buffer_size : int
        Number of points remembered.
    recent : float in [0, 1]
        Share of the buffer for the most recent points; the rest is a uniform sample of all before
        them. How far back partners come from is learned, from the latest point to all of these.
    pairs_per_point : int
        Most pairs drawn for a new point; fewer where the buffer lacks partners. A batch learner
        gets this many times the number of points.
    random_state : int, RandomState or None
        For what is drawn, and for the learner where it has none of its own.

    Attributes
    ----------
    learner_ : OnlineLearner or BatchLearner
        The fitted learner, with all its read-outs.
    components_ : array (rank, n_features)
        L with M = L'L.
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
    >>> from metrack import FromLabels, MetricTracker
    >>> X, y = shuffle(*load_wine(return_X_y=True), random_state=0)
    >>> metric = FromLabels(MetricTracker(), random_state=0)
    >>> model = make_pipeline(StandardScaler(), metric, KNeighborsClassifier())
    >>> bool(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    learner_: OnlineLearner | BatchLearner
    buffer_: PairBuffer
    n_features_in_: int

    def __init__(
        self,
        learner: OnlineLearner | BatchLearner | None = None,
        buffer_size: int = 1024,
        recent: float = 0.5,
        pairs_per_point: int = 4,
        random_state: Seed = None,
    ) -> None:
        self.learner = learner
        self.buffer_size = buffer_size
        self.recent = recent
        self.pairs_per_point = pairs_per_point
        self.random_state = random_state

    @exclusive
    def fit(self, X: PointsLike, y: LabelsLike) -> Self:
        """Forget everything, then learn the points in order.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features)
        y : array (n_points,)
            Class labels of any kind; two classes or more, one of them with two points or more.
        """
        return self._learn(X, y, anew=True, complete=True)

    @online
    @exclusive
    def partial_fit(self, X: PointsLike, y: LabelsLike) -> Self:
        """Go on learning, with points and labels as in `fit`; new classes may come at any time.

        A batch may have one class alone: its points are remembered until others come.
        """
        return self._learn(X, y, anew=not hasattr(self, "learner_"))

    @online
    @exclusive
    def observe_points(self, X: PointsLike) -> Self:
        """Learn from points without labels; see `MetricTracker.observe_points`.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features)
        """
        anew = not hasattr(self, "learner_")
        with unchanged_on_error(self):
            points = validate_data(self, X, reset=anew, accept_sparse="csr", dtype=np.float64)
            if anew:
                self.start(self.n_features_in_)
            self.learner_.observe_points(check_points(points))
        return self

    @online
    @exclusive
    def save(self, path: str | Path) -> None:
        """Write all that was learned into a folder, from which `metrack.load` brings it back.

        What is loaded goes on exactly as this would: the learner, the points that are remembered
        and what is drawn are part of it. Labels must be text or numbers. See `MetricTracker.save`.

        Parameters
        ----------
        path : path of a folder
            Made if missing; must hold nothing but states.
        """
        persistence.save(self, path)

    def transform(self, X: PointsLike) -> Floats:
        """Embed points where the Euclidean distance is the learned one.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features)

        Returns
        -------
        array (n_points, n_columns)
            As many columns as features, or as the learner's ``n_components``, whatever the rank.
            With an online learner the embedding turns no more than the metric changes, so that what
            was embedded a moment ago can be compared with what is embedded now; with a batch
            learner it is ``X @ components_.T``. float32 where X is.
        """
        check_is_fitted(self)
        types = [np.float64, np.float32]
        points = validate_data(self, X, reset=False, accept_sparse="csr", dtype=types)
        return self._embed(points).astype(points.dtype, copy=False)

    def pair_distance(self, pairs: TuplesLike) -> Floats:
        """Learned distance between the two points of each pair, (n_pairs, 2, n_features)."""
        distances: Floats = self._view().pair_distance(pairs)
        return distances

    def pair_score(self, pairs: TuplesLike) -> Floats:
        """Similarity of each pair: the negative of its distance."""
        return -self.pair_distance(pairs)

    def get_mahalanobis_matrix(self) -> Floats:
        """The matrix M, (n_features, n_features)."""
        matrix: Floats = self._view().get_mahalanobis_matrix()
        return matrix

    def get_metric(self) -> FrozenMetric:
        """The distance as a function of two points; it does not change when learning goes on."""
        metric: FrozenMetric = self._view().get_metric()
        return metric

    @property
    def components_(self) -> Floats:
        """L with M = L'L, (rank, n_features); rows by falling weight."""
        components: Floats = self._view().components_
        return components

    @components_.setter
    def components_(self, value: Any) -> None:
        check_is_fitted(self)
        self.learner_.components_ = value

    @property
    def _n_features_out(self) -> int:
        return int(self._embed(np.zeros((1, self.n_features_in_))).shape[1])

    def _view(self) -> Any:
        """What points are embedded by: classes are found among neighbours."""
        check_is_fitted(self)
        if isinstance(self.learner_, OnlineLearner):
            return self.learner_.for_neighbours()
        return self.learner_

    def _embed(self, points: Points) -> Floats:
        if isinstance(self.learner_, OnlineLearner):
            return self.learner_.transform_aligned(points)
        L = self.learner_.components_
        lacking = max(self.n_features_in_ - len(L), 0)
        return np.pad(np.asarray(points @ L.T), ((0, 0), (0, lacking)))

    def _learn(self, X: PointsLike, y: LabelsLike, anew: bool, complete: bool = False) -> Self:
        with unchanged_on_error(self):
            points, labels = self._check(X, y, anew)
            if complete:
                check_classes(labels)
            if isinstance(self.learner, BatchLearner):
                self.learner_ = self._fit_batch(points, labels)
                return self
            if anew:
                self.start(self.n_features_in_)
        self.teach(points, labels)
        return self

    def teach(self, points: Points, labels: Sequence[Hashable]) -> None:
        """What `partial_fit` does, with points and labels that have been checked; it is started."""
        self.buffer_.teach(self.learner_, points, labels)

    def widen(self, n_features: int) -> None:
        """Give points more features, which have been 0 so far."""
        self.learner_.widen(n_features)
        self.buffer_.widen(n_features)
        self.n_features_in_ = n_features

    def rescale(self, factors: Floats) -> None:
        """Go on in other units: those of the points to come are these factors times the earlier."""
        self.buffer_.rescale(factors)

    def _fit_batch(self, points: Points, labels: list[Any]) -> BatchLearner:
        learner: BatchLearner = clone(self.learner)
        self._check_learner(learner)
        n_pairs = whole("pairs_per_point", self.pairs_per_point) * len(labels)
        pairs, y = pairs_from_labels(labels, n_pairs, self.random_state)
        learner.set_params(preprocessor=points).fit(pairs, y)
        learner.preprocessor = learner.preprocessor_ = None  # the points are not its own to keep
        hand_names(self, learner)
        return learner

    def _check(self, X: PointsLike, y: LabelsLike, anew: bool) -> tuple[Points, list[Any]]:
        points, labels = check_labelled(
            self, X, y, reset=anew, accept_sparse="csr", multi_output=False
        )
        return points, labels.tolist()

    def start(self, n_features: int) -> None:
        """Forget everything, and be ready for points of so many features."""
        learner = MetricTracker() if self.learner is None else clone(self.learner)
        self._check_learner(learner)
        rng = check_random_state(self.random_state)
        if learner.random_state is None:
            learner.set_params(random_state=rng.randint(2**31 - 1))
        learner.check_components(n_features)
        buffer = PairBuffer(self.buffer_size, self.recent, self.pairs_per_point, rng)
        learner.start(n_features)
        hand_names(self, learner)
        self.learner_, self.buffer_, self.n_features_in_ = learner, buffer, n_features

    def restore(
        self, learner: OnlineLearner, rng: Any, pairing: Any, arrays: Any, names: Any
    ) -> Self:
        """Go on from a learner and a buffer that were saved."""
        n_features = learner.n_features_in_
        if self.buffer_size != len(arrays["labels"]):  # before it is allocated
            raise ValueError(f"{len(arrays['labels'])} labels in a buffer of {self.buffer_size!r}")
        buffer = PairBuffer(self.buffer_size, self.recent, self.pairs_per_point, rng)
        buffer.unpack(pairing, arrays, n_features)
        restore_names(self, names, n_features)
        hand_names(self, learner)
        self.learner_, self.buffer_, self.n_features_in_ = learner, buffer, n_features
        return self

    def _check_learner(self, learner: Any) -> None:
        if not isinstance(learner, OnlineLearner | BatchLearner):
            raise ValueError(
                f"learner={learner!r}; it must be a pair learner, such as MetricTracker()"
            )
        if learner.preprocessor is not None:
            raise ValueError("the learner has a preprocessor; leave it None, as X holds the points")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
