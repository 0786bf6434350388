"""The trackers as River estimators: dict in, dict out; needs the extra ``river``."""

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from metrack.engine.numerics.kernels import Floats
from metrack.estimators import comid, drift_knn, kernel_tracker, metric_tracker
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.bases.threads import exclusive
from metrack.estimators.choosing.pairing import PairBuffer
from metrack.estimators.inputs import LARGEST
from metrack.estimators.inputs.settings import whole

try:
    from river import base
except ImportError as error:
    raise ImportError(
        'metrack.river needs River, which is not installed: pip install "metrack[river]"'
    ) from error

__all__ = ["COMID", "DriftKNN", "KernelTracker", "MetricTracker"]


class ByName:
    """Points as dicts, in the columns of a model that grows wider as features come.

    A subclass says how it starts (`_start`) and grows (`_widen`), each to a number of features.
    """

    max_features: int
    _columns: dict[base.typing.FeatureName, int]

    def _start(self, n_features: int) -> None:
        raise NotImplementedError

    def _widen(self, n_features: int) -> None:
        raise NotImplementedError

    @property
    def features(self) -> list[base.typing.FeatureName]:
        """The features seen so far, in the order of the learner's columns."""
        return list(self._columns)

    def _point(self, x: dict[base.typing.FeatureName, Any]) -> Floats:
        """A row with a column for each feature, also for those that are new."""
        names, values = list(x), _numbers(x)
        if not x.keys() <= self._columns.keys():
            self._add_columns([name for name in names if name not in self._columns])
        return self._row(names, values)

    def _known_point(self, x: dict[base.typing.FeatureName, Any]) -> Floats:
        """A row with a column for each feature seen so far; others are left out."""
        known = {name: value for name, value in x.items() if name in self._columns}
        return self._row(list(known), _numbers(known))

    def _row(self, names: list[base.typing.FeatureName], values: Floats) -> Floats:
        point = np.zeros((1, len(self._columns)))
        point[0, [self._columns[name] for name in names]] = values
        return point

    def _add_columns(self, names: list[base.typing.FeatureName]) -> None:
        # In an order of their own: that of a dict's keys means nothing.
        names.sort(key=lambda name: (str(name), str(type(name))))
        columns = {name: i for i, name in enumerate([*self._columns, *names])}
        if len(columns) > self.max_features:
            raise ValueError(
                f"x brings {len(names)} new features such as {names[0]!r}, which makes "
                f"{len(columns)}; at most max_features={self.max_features} are learned: select or "
                "hash features first, or set max_features"
            )
        (self._widen if self._columns else self._start)(len(columns))
        self._columns = columns


# A Transformer too: River's pipelines (0.26) hand what comes after a mere SupervisedTransformer the
# features as they were before it.
class MetricTransformer(ByName, base.SupervisedTransformer, base.Transformer):
    """A pair learner behind River's interface; see `MetricTracker` and `COMID`."""

    _kind: ClassVar[type[OnlineLearner]]

    def __init__(
        self,
        buffer_size: int = 1024,
        recent: float = 0.5,
        pairs_per_point: int = 4,
        seed: int | None = None,
        max_features: int = 4096,
        **settings: Any,
    ) -> None:
        for name in ("preprocessor", "random_state"):
            if name in settings:
                raise TypeError(f"{name} is no setting here: points come as dicts, and seed is set")
        self.buffer_size = buffer_size
        self.recent = recent
        self.pairs_per_point = pairs_per_point
        self.seed = seed
        self.max_features = whole("max_features", max_features)
        self.settings = settings
        rng = np.random.RandomState(seed)
        self._tracker = self._kind(**settings, random_state=rng.randint(2**31 - 1))
        self._buffer = PairBuffer(buffer_size, recent, pairs_per_point, rng)
        self._columns: dict[base.typing.FeatureName, int] = {}

    @property
    def tracker(self) -> OnlineLearner:
        """The learner behind, with all its read-outs; ``features`` names its columns."""
        return self._tracker

    @exclusive
    def learn_one(  # type: ignore[override]
        self, x: dict[base.typing.FeatureName, Any], y: Hashable
    ) -> None:
        """Pair a point with remembered ones and learn from the pairs.

        Parameters
        ----------
        x
            Numbers. A feature that is missing counts as 0; a new one widens the metric, up to
            ``max_features``.
        y
            Class label of any kind.
        """
        point = self._point(x)
        if point.size:
            self._buffer.teach(self._tracker, point, [y])

    @exclusive
    def observe_one(self, x: dict[base.typing.FeatureName, Any]) -> None:
        """Learn from a point without a label; see `metrack.MetricTracker.observe_points`.

        Parameters
        ----------
        x
            Numbers, as in `learn_one`.
        """
        point = self._point(x)
        if point.size:
            self._tracker.observe_points(point)

    @exclusive
    def transform_one(
        self, x: dict[base.typing.FeatureName, Any]
    ) -> dict[base.typing.FeatureName, Any]:
        """Embed a point where the Euclidean distance is the learned one for neighbours.

        Parameters
        ----------
        x
            Numbers. Features that have never been learned from are left out.

        Returns
        -------
        dict
            ``metric0``, ``metric1``, ...: as many as there are features, or as ``n_components``
            asks for. The embedding turns no more than the metric changes, so that what a model
            further down the pipeline remembers stays of use.
        """
        if not self._columns:
            return {}
        known = {name: value for name, value in x.items() if name in self._columns}
        values, columns = _numbers(known), [self._columns[name] for name in known]
        embedded = self._embedded(values, columns)
        return {f"metric{i}": value for i, value in enumerate(embedded.tolist())}

    def _embedded(self, values: Floats, columns: list[int]) -> Floats:
        """A point, of which all other columns are 0."""
        embedded: Floats = (
            self._tracker.aligned_components(for_neighbours=True)[:, columns] @ values
        )
        return embedded

    def _start(self, n_features: int) -> None:
        self._tracker.start(n_features)

    def _widen(self, n_features: int) -> None:
        self._tracker.widen(n_features)
        self._buffer.widen(n_features)


class MetricTracker(MetricTransformer):
    """Metric tracking in a River pipeline.

    Each labelled point is paired with points of a bounded buffer, similar where the labels are
    equal; `metrack.MetricTracker` learns from the pairs, and `transform_one` gives its embedding.
    Features may appear and disappear: a metric that has never seen a feature is the one that has
    always seen it as 0. Where so many features ask for another kind of learner than before, the
    tracker goes on as one of that kind, from the metrics that it has.

    Parameters
    ----------
    buffer_size
        Number of points remembered.
    recent
        Share of them that are the most recent ones; the rest is a uniform sample of all before.
    pairs_per_point
        Most pairs drawn for a new point.
    seed
        Same seed, same metric.
    max_features
        Most features that a stream may bring; a point with more is refused.
    settings
        Settings of `metrack.MetricTracker`, such as ``n_components``.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, neighbors, preprocessing
    >>> from metrack.river import MetricTracker
    >>> model = preprocessing.StandardScaler() | MetricTracker(seed=0) | neighbors.KNNClassifier()
    >>> accuracy = metrics.Accuracy()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, accuracy)
    Accuracy: ...
    >>> accuracy.get() > 0.85
    True
    """

    _kind = metric_tracker.MetricTracker


class COMID(MetricTransformer):
    """Metric learning by composite objective mirror descent in a River pipeline.

    Like `MetricTracker`, with the single learner of `metrack.COMID`.

    Parameters
    ----------
    buffer_size
        Number of points remembered.
    recent
        Share of them that are the most recent ones; the rest is a uniform sample of all before.
    pairs_per_point
        Most pairs drawn for a new point.
    seed
        Same seed, same metric.
    max_features
        Most features that a stream may bring; a point with more is refused.
    settings
        Settings of `metrack.COMID`, such as ``learning_rate`` or ``n_components``.

    Examples
    --------
    >>> from metrack.river import COMID
    >>> metric = COMID(seed=0)
    >>> for i in range(100):
    ...     metric.learn_one({"size": i % 2, "noise": i % 7}, "big" if i % 2 else "small")
    >>> here, there = ({"size": size, "noise": 3} for size in (0, 1))
    >>> gap = [metric.transform_one(there)[k] - v for k, v in metric.transform_one(here).items()]
    >>> sum(each**2 for each in gap) > 1
    True
    """

    _kind = comid.COMID


class KernelTracker(MetricTransformer):
    """Tracking beyond linear metrics in a River pipeline.

    Like `MetricTracker`, with the linear and kernel learners of `metrack.KernelTracker`. There are
    as many ``metric0``, ``metric1``, ... as features of the points and of the kernel, or as
    ``n_components`` asks for.

    Parameters
    ----------
    buffer_size
        Number of points remembered.
    recent
        Share of them that are the most recent ones; the rest is a uniform sample of all before.
    pairs_per_point
        Most pairs drawn for a new point.
    seed
        Same seed, same metric.
    max_features
        Most features that a stream may bring.
    settings
        Settings of `metrack.KernelTracker`, such as ``n_landmarks``.

    Examples
    --------
    >>> from metrack.river import KernelTracker
    >>> model = KernelTracker(seed=0, n_landmarks=16)
    >>> for i in range(40):
    ...     model.learn_one({"x": i % 7, "y": i % 5}, (i % 7) * (i % 5) > 6)
    >>> len(model.transform_one({"x": 1, "y": 2}))
    34
    """

    _kind = kernel_tracker.KernelTracker

    def _embedded(self, values: Floats, columns: list[int]) -> Floats:
        point = np.zeros((1, len(self._columns)))
        point[0, columns] = values
        embedded: Floats = self._tracker.transform_aligned(point)[0]
        return embedded


class DriftKNN(ByName, base.Classifier):
    """Nearest neighbours that follow drift; see `metrack.DriftKNN`.

    Features may appear and disappear, in whatever units they come: one that is missing counts as 0.

    Parameters
    ----------
    window
        Points of the longest window.
    seed
        Same seed, same model.
    max_features
        Most features that a stream may bring; a point with more is refused.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from metrack.river import DriftKNN
    >>> accuracy = metrics.Accuracy()
    >>> evaluate.progressive_val_score(datasets.Phishing(), DriftKNN(seed=0), accuracy)
    Accuracy: ...
    >>> accuracy.get() > 0.88
    True
    """

    def __init__(
        self, window: int = 5000, seed: int | None = None, max_features: int = 4096
    ) -> None:
        self.window = window
        self.seed = seed
        self.max_features = whole("max_features", max_features)
        self._model = drift_knn.DriftKNN(window, seed)
        self._columns: dict[base.typing.FeatureName, int] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def model(self) -> drift_knn.DriftKNN:
        """The `metrack.DriftKNN` behind, with its reports; ``features`` names its columns."""
        return self._model

    @exclusive
    def learn_one(self, x: dict[base.typing.FeatureName, Any], y: Hashable) -> None:
        """Learn a point.

        Parameters
        ----------
        x
            Numbers.
        y
            Class label of any kind.
        """
        point = self._point(x)
        if point.size:
            self._model.follow(point, [y])

    def predict_proba_one(
        self, x: dict[base.typing.FeatureName, Any], **kwargs: Any
    ) -> dict[Any, float]:
        """Probability of each class; features that have never been learned from are left out.

        Parameters
        ----------
        x
            Numbers.
        """
        if not self._columns:
            return {}
        found = self._model.shares(self._known_point(x))[0]
        return dict(zip(self._model.labels(), found.tolist(), strict=True))

    def _start(self, n_features: int) -> None:
        self._model.start(n_features)

    def _widen(self, n_features: int) -> None:
        self._model.widen(n_features)


def _numbers(x: dict[base.typing.FeatureName, Any]) -> Floats:
    """The values of a point, checked."""
    try:
        values = np.array([value + 0.0 for value in x.values()], dtype=np.float64)
        fine = not values.size or bool(np.abs(values).max() <= LARGEST)
    except (TypeError, ValueError, OverflowError):
        fine = False
    if fine:
        return values
    name = next(name for name, value in x.items() if not _is_number(value))
    raise ValueError(
        f"x[{name!r}] is {x[name]!r}; features must be numbers of at most {LARGEST:g}: "
        "encode text, and impute or drop what is missing"
    )


def _is_number(value: Any) -> bool:
    try:
        return bool(abs(value + 0.0) <= LARGEST)
    except (TypeError, ValueError, OverflowError):
        return False
