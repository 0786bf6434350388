"""SlidingWindow: any learner, fitted again and again to the latest of a stream."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.estimators.bases.linear import LinearEmbedding
from metrack.estimators.bases.threads import exclusive
from metrack.estimators.bases.unchanged import unchanged_on_error
from metrack.estimators.inputs import (
    LabelsLike,
    PairBatch,
    PointsLike,
    TripletBatch,
    TuplesLike,
    are_ids,
    check_class_labels,
    check_labels,
    check_one_each,
    check_preprocessor,
    points_of,
    take_names,
)
from metrack.estimators.inputs.settings import whole

F = TypeVar("F", bound=Callable[..., Any])

PAIRS, TRIPLETS, POINTS = "pairs", "triplets", "points"


class Items(NamedTuple):
    """Pairs, triplets or points, and their labels where they have any."""

    given: Any  # points, or row numbers
    y: Any

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.given.shape[0])

    def cut(self, start: int, stop: int) -> "Items":
        """A range of them, as a copy: the arrays may be the caller's."""
        y = None if self.y is None else self.y[start:stop].copy()
        return Items(self.given[start:stop].copy(), y)


def _kind(learner: Any) -> str:
    """What a learner's ``fit`` takes."""
    tags = get_tags(learner)
    if tags.input_tags.two_d_array:
        return POINTS
    return PAIRS if tags.target_tags.required else TRIPLETS


def _where_learner_has(name: str) -> Callable[[F], F]:
    """A read-out that is there if the learner has it."""
    decorate: Callable[[F], F] = available_if(lambda self: hasattr(type(self.learner), name))
    return decorate


judged: Callable[[F], F] = available_if(lambda self: _kind(self.learner) != POINTS)


class SlidingWindow(LinearEmbedding):
    """Any learner on a stream, refitted to the latest items as the stream goes.

    An item is what the learner takes: a judged pair (`ITML`, `MMC`, and all online pair learners),
    a labelled point (`LMNN`) or a triplet (`OASIS`). After every ``every`` new items the learner is
    fitted to the last ``window``, or to all while they are fewer. Calls of any sizes give the same
    metric as one, bit for bit where the learner's ``fit`` is deterministic.

    Parameters
    ----------
    learner : estimator
        A copy of it is fitted. One that has a ``warm_start`` setting starts each refit from where
        the last one ended.
    window : int
        Number of latest items that a fit rests on.
    every : int
        Number of new items between two fits.

    Attributes
    ----------
    learner_ : estimator
        The learner as last fitted, with all its read-outs; the usual ones are there on the window
        itself. There is none before the first fit.
    components_, threshold_, preprocessor_, n_features_in_
        As of the learner.
    n_seen_ : int
        How many items there have been.
    n_fits_ : int
        How often the learner has been fitted.

    Notes
    -----
    While all labels in the window are the same, a refit is left out: there is nothing to tell
    apart.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import LEGO, SlidingWindow
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(2000, 2, 5))
    >>> gap = np.abs(pairs[:, 0] - pairs[:, 1])
    >>> y = np.where(gap[:, 0] < 1, 1, -1)
    >>> y[1000:] = np.where(gap[1000:, 1] < 1, 1, -1)  # now the second feature counts
    >>> latest = SlidingWindow(LEGO(), window=500, every=100)
    >>> losses = latest.observe(pairs, y)
    >>> latest.n_fits_
    20
    >>> int(np.argmax(np.abs(latest.components_[0])))
    1
    """

    _held: list[Items]
    _n_held: int
    _n_new: int

    def __init__(self, learner: Any, window: int = 1000, every: int = 100) -> None:
        self.learner = learner
        self.window = window
        self.every = every

    def fit(self, X: PointsLike, y: LabelsLike | None = None) -> Self:
        """Forget everything, then fit the learner to the last ``window`` items of these.

        Parameters
        ----------
        X, y
            Pairs, points or triplets and their labels, as the learner's own ``fit`` takes them.
        """
        self._learn(X, y, anew=True)
        return self

    def partial_fit(self, X: PointsLike, y: LabelsLike | None = None) -> Self:
        """Take new items, and refit whenever there have been ``every``; X and y as in `fit`."""
        self._learn(X, y)
        return self

    @judged
    def observe(self, X: PointsLike, y: LabelsLike | None = None) -> Floats:
        """Test, then train: the loss on each pair or triplet by the metric before it came.

        For pairs it is the hinge of the squared distance in units of the squared threshold,
        max(0, 1 - y (1 - d^2 / threshold^2)), with d = 0 before the first fit. For triplets it is
        max(0, 1 - `decision_function`), which is 1 before the first fit.
        """
        losses: list[Floats] = []
        self._learn(X, y, losses=losses)
        return np.concatenate(losses)

    def _fitted(self) -> Any:
        """The learner as last fitted."""
        check_is_fitted(self)
        return self.learner_

    @property
    def components_(self) -> Floats:
        """L with M = L'L, of the learner."""
        components: Floats = self._fitted().components_
        return components

    @components_.setter
    def components_(self, value: Any) -> None:
        self._fitted().components_ = value

    def _directions(self) -> Floats:
        if isinstance(self.learner_, LinearEmbedding):
            directions: Floats = self.learner_._directions()
            return directions
        return self.components_

    @property
    def threshold_(self) -> float:
        """Distance up to which `predict` calls a pair alike, of the learner."""
        return float(self._fitted().threshold_)

    def pair_score(self, pairs: TuplesLike) -> Floats:
        """Similarity of each pair, as the learner gives it: larger is more alike."""
        scores: Floats = self._fitted().pair_score(pairs)
        return scores

    @_where_learner_has("decision_function")
    def decision_function(self, X: PointsLike) -> Floats:
        """Decision values of the learner."""
        values: Floats = self._fitted().decision_function(X)
        return values

    @_where_learner_has("predict")
    def predict(self, X: PointsLike) -> Ints:
        """Predictions of the learner."""
        predicted: Ints = self._fitted().predict(X)
        return predicted

    @_where_learner_has("score")
    def score(self, X: PointsLike, y: LabelsLike | None = None) -> float:
        """Score of the learner."""
        return float(self._fitted().score(X, y))

    @_where_learner_has("set_threshold")
    def set_threshold(self, threshold: float) -> Self:
        """Use a given distance as the threshold of `predict`, up to the next fit."""
        self._fitted().set_threshold(threshold)
        return self

    @_where_learner_has("calibrate_threshold")
    def calibrate_threshold(
        self, pairs_valid: TuplesLike, y_valid: LabelsLike, **settings: Any
    ) -> Self:
        """Choose the threshold on pairs that were not learned from, up to the next fit."""
        self._fitted().calibrate_threshold(pairs_valid, y_valid, **settings)
        return self

    @exclusive
    def _learn(
        self,
        X: PointsLike,
        y: LabelsLike | None,
        anew: bool = False,
        losses: list[Floats] | None = None,
    ) -> None:
        with unchanged_on_error(self):
            if anew or not hasattr(self, "_held"):
                self._start()
            items = self._check(X, y)
            self._held = [*self._held]  # so that what was before can be had again
            if anew:
                self._hold(items.cut(0, items.size))
                self._refit()
                return
            start = 0
            while start < items.size:
                part = items.cut(start, start + self._every - self._n_new)
                if losses is not None:
                    losses.append(self._judge(part))
                self._hold(part)
                start += part.size
                if self._n_new == self._every:
                    labels, self._n_new = self._trim().y, 0
                    if labels is None or (labels != labels[0]).any():
                        self._refit()

    def _start(self) -> None:
        if not hasattr(self.learner, "fit") or isinstance(self.learner, type):
            raise ValueError(f"learner={self.learner!r}; it must be an estimator, such as LMNN()")
        self._window, self._every = whole("window", self.window), whole("every", self.every)
        self.preprocessor_ = check_preprocessor(getattr(self.learner, "preprocessor", None))
        take_names(self, getattr(self.learner, "preprocessor", None))
        self._held = []
        self._n_held = self._n_new = self.n_seen_ = self.n_fits_ = 0
        for name in ("learner_", "n_features_in_"):
            self.__dict__.pop(name, None)

    def _check(self, X: PointsLike, y: LabelsLike | None) -> Items:
        known = self.__dict__.get("n_features_in_")
        kind = _kind(self.learner)
        if kind == POINTS:
            points = points_of(X, self.preprocessor_, known)
            if not are_ids(X, self.preprocessor_):
                take_names(self, X, reset=known is None)
            labels: Any = np.asarray(y)
            check_one_each(labels, "y", "label", points.shape[0], "point")
            check_class_labels(labels)
            check_classification_targets(labels)
            self.n_features_in_ = points.shape[1]
            return Items(points, labels)
        make = PairBatch if kind == PAIRS else TripletBatch
        batch = make(X, self.preprocessor_, known)
        self.n_features_in_ = batch.n_features
        labels = check_labels(y, len(batch)) if kind == PAIRS else None
        given = batch.points if batch.rows is None else np.asarray(X)
        if self._held and self._held[-1].given.ndim != given.ndim:
            raise ValueError(
                f"some {kind} are row numbers and some are points; go on with one of them, or call "
                "fit to start anew"
            )
        return Items(given, labels)

    def _hold(self, items: Items) -> None:
        """Remember items; those that have left the window are forgotten now and then."""
        self._held.append(items)
        self._n_held += items.size
        self._n_new += items.size
        self.n_seen_ += items.size
        if self._n_held >= 2 * self._window:
            self._trim()

    def _trim(self) -> Items:
        """All items in the window, and no others."""
        parts, labels = zip(*self._held, strict=True)
        is_sparse = any(map(sp.issparse, parts))
        given = sp.vstack(parts, format="csr") if is_sparse else np.concatenate(parts)
        items = Items(given, None if labels[0] is None else np.concatenate(labels))
        items = items.cut(max(items.size - self._window, 0), items.size)
        self._held, self._n_held = [items], items.size
        return items

    def _refit(self) -> None:
        learner = self.__dict__.get("learner_")
        if learner is None:
            learner = clone(self.learner)
            if "warm_start" in learner.get_params():
                learner.set_params(warm_start=True)
        learner.fit(*self._trim())
        self.learner_ = learner
        self.n_fits_ += 1
        self._n_new = 0

    def _judge(self, items: Items) -> Floats:
        """Losses by the metric as it is."""
        learner = self.__dict__.get("learner_")
        if _kind(self.learner) == TRIPLETS:
            margins = np.zeros(items.size)
            if learner is not None:
                margins = learner.decision_function(items.given)
        else:
            squares, mu = np.zeros(items.size), 1.0
            if learner is not None:
                squares = learner.pair_distance(items.given) ** 2
                mu = learner.threshold_ * abs(learner.threshold_)
            margins = items.y * (mu - squares) / (mu if mu > 0.0 else 1.0)
        losses: Floats = np.maximum(0.0, 1.0 - margins)
        return losses

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.learner)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.input_tags = inner.input_tags
        tags.target_tags = inner.target_tags
        return tags
