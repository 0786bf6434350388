"""DriftKNN: nearest neighbours that follow drift."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from metrack.engine.ensemble.units import own_units
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.online.neighbour_votes import NeighbourVotes, Parts
from metrack.estimators.bases.linear import FrozenMetric
from metrack.estimators.bases.threads import exclusive, one_blas_thread, when_fitted
from metrack.estimators.bases.unchanged import unchanged_on_error
from metrack.estimators.choosing.pairing import LABELS, is_refresh, next_refresh
from metrack.estimators.from_labels import FromLabels
from metrack.estimators.inputs import (
    LARGEST,
    LabelsLike,
    PointsLike,
    check_labelled,
    check_points,
    restore_names,
)
from metrack.estimators.inputs.settings import Configurable, Seed, whole
from metrack.estimators.reading.neighbour_report import (
    NeighbourReport,
    TrustHistory,
    plain,
    trusted_by,
)
from metrack.estimators.reading.plotting import axes
from metrack.estimators.states import persistence

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DriftKNN(ClassifierMixin, Configurable):
    """Nearest neighbours for streams that drift: the metric, the window and k follow it.

    Experts look for 1 to 31 neighbours in windows of several lengths: under the metric that
    `FromLabels` tracks, under plain distance with features in their own units, and in the units
    given. They are weighed by their recent Brier scores, with a regret bounded on every stretch of
    time against each of them. There is nothing to tune. One pass over the longest window serves all
    experts of a metric.

    Memory is bounded: the latest points, and a fifth as many that have left the window, of all
    classes alike, so that no class is forgotten because others have come more often. Points are
    taken in the order given; calls of any sizes give the same model, bit for bit.

    Parameters
    ----------
    window : int
        Points of the longest window; each shorter one has a fifth of the next.
    random_state : int, RandomState or None
        For the pairs from which the metric is learned.

    Attributes
    ----------
    classes_ : array
        All classes known, sorted.
    metric_ : FromLabels
        What tracks the metric, on features in their own units.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import DriftKNN
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 10)) * [1000, 1, 1, 1, 1, 1, 1, 1, 1, 0.001]
    >>> y = np.where(np.append(X[:1000, 0] > 0, X[1000:, 9] > 0), "up", "down")
    >>> model = DriftKNN(random_state=0)
    >>> wrong = model.observe(X, y) != y  # predicts each point, then learns it
    >>> bool(wrong[900:1000].mean() < 0.2 < wrong[1000:1100].mean())
    True
    >>> bool(wrong[1900:].mean() < 0.2)
    True
    >>> int(model.drift_report().features[0])
    9
    """

    metric_: FromLabels
    votes_: NeighbourVotes
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _codes: dict[Any, int]  # of labels, in the order in which they came

    def __init__(self, window: int = 5000, random_state: Seed = None) -> None:
        self.window = window
        self.random_state = random_state

    @exclusive
    def fit(self, X: PointsLike, y: LabelsLike) -> Self:
        """Forget everything, then learn the points in order.

        Parameters
        ----------
        X : array (n_points, n_features)
        y : array (n_points,)
            Class labels of any kind.
        """
        self._learn(X, y, None, anew=True)
        return self

    @exclusive
    def partial_fit(self, X: PointsLike, y: LabelsLike, classes: LabelsLike | None = None) -> Self:
        """Go on learning; new classes may come at any time.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array, optional
            Classes that are to have a column in `predict_proba` before their first point comes.
        """
        self._learn(X, y, classes, anew=not hasattr(self, "votes_"))
        return self

    @exclusive
    def observe(self, X: PointsLike, y: LabelsLike) -> NDArray[Any]:
        """Test, then train, point by point: predict each, then learn it.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        array (n_points,)
            Classes, each as predicted before its point was learned. Where no class was known, at
            the first point of all, None, which no label equals.
        """
        return np.array(self._learn(X, y, None, anew=not hasattr(self, "votes_")))

    @when_fitted
    def predict_proba(self, X: PointsLike) -> Floats:
        """Probability of each class, (n_points, n_classes), in the order of ``classes_``."""
        points: Any = check_points(validate_data(self, X, reset=False, dtype=np.float64))
        return self.shares(points)[:, np.argsort(self._order())]

    def predict(self, X: PointsLike) -> NDArray[Any]:
        """The most probable class of each point, (n_points,)."""
        found: NDArray[Any] = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return found

    @property
    def classes_(self) -> NDArray[Any]:
        """All classes known, sorted."""
        check_is_fitted(self)
        return np.array(sorted(self._codes))

    @when_fitted
    def drift_report(self, since: FrozenMetric | None = None) -> NeighbourReport:
        """What is trusted now, when errors last rose, and which features gained or lost.

        Parameters
        ----------
        since : FrozenMetric, optional
            The metric of an earlier moment, as ``metric_.learner_.get_metric()`` gave it then;
            None: the metric without any preference, in which all features have the same share.
        """
        found = self.metric_.learner_.drift_report(since)
        windows, neighbours, metrics = map(plain, trusted_by(self.votes_, self.votes_.weights))
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        return NeighbourReport(
            windows,
            neighbours,
            metrics,
            points_since_change=self.votes_.n_points - int(self.votes_.noticed[0]),
            features=names[found.features],
            change=found.change[found.features],
            errors=self._errors(),
        )

    @when_fitted
    def trust_history(self) -> TrustHistory:
        """What was trusted along the stream, in at most 256 stretches."""
        past = self.votes_.past()
        windows, neighbours, metrics = trusted_by(self.votes_, past.weights)
        return TrustHistory(past.stops, windows, neighbours, metrics, past.errors, past.changes)

    def plot_trust(self, ax: "Axes | None" = None) -> "Axes":
        """Draw how much each window was trusted along the stream.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Drawn on a new figure without.
        """
        past, ax = self.trust_history(), axes(ax)
        starts = np.concatenate([[0], past.stops])
        names, trusts = map(str, past.windows), np.array(list(past.windows.values()))
        trusts = np.hstack([trusts, trusts[:, -1:]])  # a step lasts until the next one
        ax.stackplot(starts, trusts, labels=names, step="post")
        ax.set(xlabel="points", ylabel="trust in windows", ylim=(0, 1), xlim=(0, starts[-1]))
        ax.legend(title="window", loc="upper left", bbox_to_anchor=(1, 1), reverse=True)
        return ax

    @exclusive
    def save(self, path: str | Path) -> None:
        """Write all that was learned into a folder, from which `metrack.load` brings it back.

        What is loaded goes on exactly as this would. Labels must be text or numbers. See
        `MetricTracker.save`.

        Parameters
        ----------
        path : path of a folder
            Made if missing; must hold nothing but states.
        """
        persistence.save(self, path)

    def restore(
        self, metric: FromLabels, parts: Parts, n_points: int, labels: list[Any], names: Any
    ) -> Self:
        """Go on from what was saved."""
        votes = NeighbourVotes(metric.n_features_in_, whole("window", self.window))
        votes.unpack(parts, n_points)
        codes = {label: code for code, label in enumerate(labels)}
        own = all(isinstance(label, LABELS) for label in labels)
        if not own or len(codes) < len(labels) or votes.memory.codes.max() >= len(labels):
            raise ValueError("the points do not have a class each, with a name of its own")
        restore_names(self, names, metric.n_features_in_)
        self.metric_, self.votes_, self._codes = metric, votes, codes
        self.n_features_in_ = metric.n_features_in_
        return self

    def shares(self, points: Floats) -> Floats:
        """Probabilities of the classes, as `labels` has them, for points that have been checked."""
        return self.votes_.predict_proba(points, len(self._codes))

    def labels(self) -> list[Any]:
        """The classes, in the order in which they came."""
        return list(self._codes)

    def _learn(
        self, X: PointsLike, y: LabelsLike, classes: LabelsLike | None, anew: bool
    ) -> list[Any]:
        """Learn the points, and return the classes that were predicted before."""
        with unchanged_on_error(self):
            points, found, more = self._check(X, y, classes, anew)
            if anew:
                self.start(self.n_features_in_)
        self._encode(more)
        return self.follow(points, found)

    def follow(self, points: Floats, labels: list[Any]) -> list[Any]:
        """What `observe` does, with points and labels that have been checked; it is started."""
        predicted: list[Any] = []
        with one_blas_thread():
            while len(predicted) < len(labels):
                start, seen = len(predicted), self.votes_.n_points
                stop = start + next_refresh(seen, self.n_features_in_) - seen
                predicted += self._follow(points[start:stop], labels[start:stop])
        return predicted

    def _check(
        self, X: PointsLike, y: LabelsLike, classes: LabelsLike | None, anew: bool
    ) -> tuple[Floats, list[Any], list[Any]]:
        points, labels = check_labelled(self, X, y, reset=anew, multi_output=False)
        known = [] if classes is None else np.unique(np.asarray(classes)).tolist()
        return points, labels.tolist(), known

    def start(self, n_features: int) -> None:
        """Forget everything, and be ready for points of so many features."""
        metric = FromLabels(random_state=self.random_state)
        votes = NeighbourVotes(n_features, whole("window", self.window))
        metric.start(n_features)
        self.metric_, self.votes_, self._codes = metric, votes, {}
        self.n_features_in_ = n_features

    def widen(self, n_features: int) -> None:
        """Give points more features, which have been 0 so far."""
        self.metric_.widen(n_features)
        self.votes_.widen(n_features)
        self.n_features_in_ = n_features

    def _follow(self, points: Floats, labels: list[Any]) -> list[Any]:
        """Predict and learn points up to where the metric is read next, and no more."""
        codes = self._encode(labels)
        found = self.votes_.observe(points, codes, self._order())
        names = [*self._codes, None]  # the last where no class was known
        measured = np.clip(points * self.votes_.units, -LARGEST, LARGEST)
        self.metric_.teach(measured, labels)
        if is_refresh(self.votes_.n_points, self.n_features_in_):
            self._refresh()
        return [names[code] for code in found]

    def _refresh(self) -> None:
        """Look at the points by the metric and the units of this moment."""
        votes = self.votes_
        units = own_units(votes.memory.points[votes.filled])
        self.metric_.rescale(units / votes.units)
        votes.notice(self.metric_.learner_.last_change_)
        votes.look(units, (self.metric_.components_ * units).T)
        if len(self._codes) > 2 * len(votes.memory.codes):
            self._forget_classes()

    def _forget_classes(self) -> None:
        """Those of which no point is remembered."""
        kept = np.unique(self.votes_.memory.codes[self.votes_.filled])
        names = list(self._codes)
        self.votes_.renumber(kept)
        self._codes = {names[code]: i for i, code in enumerate(kept)}

    def _encode(self, labels: list[Any]) -> Ints:
        """Numbers in place of labels, in the order in which classes came."""
        for label in labels:
            self._codes.setdefault(label, len(self._codes))
        return np.fromiter(map(self._codes.__getitem__, labels), np.int64, len(labels))

    def _order(self) -> Ints:
        """The place of each class among all, sorted."""
        order = np.empty(len(self._codes), np.int64)
        order[[self._codes[label] for label in _in_order(self._codes)]] = np.arange(len(order))
        return order

    def _errors(self) -> dict[Any, float]:
        memory, filled = self.votes_.memory, self.votes_.filled
        points = np.bincount(memory.codes[filled], minlength=len(self._codes))
        missed = np.bincount(memory.codes[filled], memory.missed[filled], len(self._codes))
        return {
            label: float(missed[self._codes[label]] / points[self._codes[label]])
            for label in _in_order(self._codes)
            if points[self._codes[label]]
        }


def _in_order(labels: Iterable[Any]) -> list[Any]:
    """Labels sorted; such as are of different types, which only River's may be, by their names."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, repr(label)))
