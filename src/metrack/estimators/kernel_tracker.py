"""KernelTracker: strongly adaptive tracking of what no linear metric can tell."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from metrack.engine.ensemble import landmarks
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.kernel_features import KernelFeatures
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import PointPairs
from metrack.estimators.bases.threads import exclusive, when_fitted
from metrack.estimators.bases.unchanged import unchanged_on_error
from metrack.estimators.bases.weighed import WeighedLearner
from metrack.estimators.inputs import (
    PairBatch,
    Points,
    PointsLike,
    Preprocessor,
    TuplesLike,
    hand_names,
)
from metrack.estimators.inputs.settings import Seed, choice, positive, whole
from metrack.estimators.reading.kernel_embedding import (
    FrozenKernelMetric,
    KernelEmbedding,
    Seen,
    SpacesMetric,
)
from metrack.estimators.reading.probability import Goal, check_goal
from metrack.estimators.resolved.auto import units
from metrack.estimators.resolved.kernel import (
    AUTO_GAMMAS,
    MOST_GAMMAS,
    MOST_LANDMARKS,
    RELATIVE,
    KernelSettings,
)
from metrack.estimators.resolved.tables import BASIS, kernel_learners, learners_for


class Landmark(NamedTuple):
    """A point that others are told by.

    Attributes
    ----------
    point : array (n_features,)
    share : float
        Of all landmarks' squared distances from their mean: how far it is from what is common.
    """

    point: Floats
    share: float


class KernelTracker(WeighedLearner):
    """Strongly adaptive tracking beyond linear metrics: by a kernel, with landmarks of the stream.

    "Is this digit below 5?" has no good Mahalanobis metric. Here learners also work on features of
    the points, by which a point is told by how near it is to some others, its landmarks
    (Nystroem's features of a kernel). Landmarks are taken from the stream itself: no
    points are needed beforehand, and they follow where points go, while what was learned is carried
    over. Linear learners stand beside those of the kernel, under one combiner: where a
    linear metric suffices, they are trusted; ``experts_`` says which are.

    The metric is no matrix on the points' features: ``components_``, ``get_mahalanobis_matrix`` and
    their like are absent. All else is as in `MetricTracker`.

    Parameters
    ----------
    n_landmarks : int
        Most points that all others are told by; as many features a bandwidth. Time and memory grow
        a little faster than in proportion.
    kernel : str or callable
        "rbf", "poly" (or "polynomial"), "cosine" and "linear" are compiled. Any other name that
        `sklearn.metrics.pairwise.pairwise_kernels` knows, or a function of two points that
        returns a number, works too, three to ten times slower, and a function takes seconds
        whenever landmarks are drawn; with one, nothing can be saved.
    gamma : float, sequence of float or "auto"
        Of "rbf", "poly" and other kernels that have one. Of several, learners of each stand side by
        side. "auto" follows the scale of the data: 1 and 3 over the median squared distance of
        points for "rbf", 1 over the median squared length for "poly", and for others what
        scikit-learn takes.
    degree : int
        Of "poly".
    coef0 : float
        Of "poly" and "sigmoid"; not below 0.
    n_components : int or None
        Columns of `transform`: the directions in which landmarks spread most, as the best such
        embedding of the landmarks has them. What is learned does not depend on it. None: as many as
        there are.
    threshold
        As in `MetricTracker`.
    scale
        As in `MetricTracker`, of the linear learners.
    preprocessor, random_state
        As in `MetricTracker`.

    Attributes
    ----------
    scales_, weights_, effective_window_
        As in `MetricTracker`.
    experts_ : list of Expert
        Kind, memory length, learning rate, weight and space of every learner: "as they come" or
        "own" units, or the kernel with its gamma.
    landmarks_ : array (n, n_features)
        The landmarks of the moment.
    gammas_ : array
        Of the kernel, one for each of its spaces, in units of the data.
    mu_, threshold_, n_pairs_seen_, last_change_, resolved_
        As in `MetricTracker`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_circles
    >>> from metrack import KernelTracker, MetricTracker
    >>> X, ring = make_circles(400, noise=0.05, factor=0.5, random_state=0)
    >>> rows = np.random.default_rng(0).integers(400, size=(1000, 2))
    >>> y = np.where(ring[rows[:, 0]] == ring[rows[:, 1]], 1, -1)
    >>> pairs = X[rows]
    >>> tracker = KernelTracker(n_landmarks=64).fit(pairs[:600], y[:600])
    >>> tracker.score(pairs[600:], y[600:]) > 0.99
    True
    >>> MetricTracker().fit(pairs[:600], y[:600]).score(pairs[600:], y[600:]) < 0.7
    True
    >>> max(tracker.experts_, key=lambda expert: expert.weight).space.startswith("rbf")
    True
    """

    resolved_: KernelSettings
    engine_: Ensemble

    def __init__(
        self,
        n_landmarks: int = 256,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | Sequence[float] | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        threshold: Goal = "accuracy",
        scale: str | None = "auto",
        preprocessor: Preprocessor = None,
        random_state: Seed = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.threshold = threshold
        self.scale = scale
        self.preprocessor = preprocessor
        self.random_state = random_state

    def resolve(self, n_features: int) -> KernelSettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        whole("n_features", n_features)
        n_landmarks = whole("n_landmarks", self.n_landmarks, most=MOST_LANDMARKS)
        check_goal(self.threshold)
        if not callable(self.kernel):
            choice("kernel", self.kernel, PAIRWISE_KERNEL_FUNCTIONS)
        relative = isinstance(self.gamma, str) and self.kernel in RELATIVE
        gammas = self._gammas(relative)
        if self.n_components is not None:
            whole("n_components", self.n_components, most=n_features + len(gammas) * n_landmarks)
        return KernelSettings(
            n_features,
            units(self.scale),
            learners=learners_for(n_features) + kernel_learners(n_landmarks, len(gammas)),
            basis=BASIS,
            kernel=self.kernel,
            degree=float(whole("degree", self.degree)),
            coef0=positive("coef0", self.coef0, or_zero=True),
            n_landmarks=n_landmarks,
            relative=relative,
            gammas=gammas,
        )

    def _gammas(self, relative: bool) -> tuple[float, ...]:
        if isinstance(self.gamma, str):
            choice("gamma", self.gamma, {"auto": None})
            if not relative:
                return (0.0,)
            return AUTO_GAMMAS if self.kernel == "rbf" else AUTO_GAMMAS[:1]
        given: Any = self.gamma if isinstance(self.gamma, list | tuple) else [self.gamma]
        if not 1 <= len(given) <= MOST_GAMMAS:
            raise ValueError(f"gamma={self.gamma!r}; give 1 to {MOST_GAMMAS} numbers, or 'auto'")
        return tuple(positive("gamma", each) for each in given)

    def check_components(self, n_features: int) -> None:
        """There may be more columns than features; `resolve` knows how many."""

    @exclusive
    def observe_batch(self, batch: PairBatch, y: Floats) -> Floats:
        """What `observe` does, with pairs and labels that have been checked; it is started."""
        with unchanged_on_error(self):
            if (rule := _features(self.engine_).rule).code is None:
                # A user's function, which may fail at any pair.
                self.engine_ = deepcopy(self.engine_, {id(rule): rule})
            return super().observe_batch(batch, y)

    def _chunks(self, batch: PairBatch, y: Floats) -> Iterator[PointPairs]:
        return batch.point_chunks(y)

    def _spaces(self) -> list[str]:
        kernel, gammas = self.resolved_.kernel, self.gammas_
        name = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "kernel")
        kernels = (f"{name} {gamma:.3g}" if gamma else name for gamma in gammas)
        return [*super()._spaces(), *kernels]

    @property
    @when_fitted
    def landmarks_(self) -> Floats:
        """The points that all others are told by, of this moment."""
        found = _features(self.engine_).landmarks
        return found.points[:, : found.used[0]].T.copy()

    @property
    @when_fitted
    def gammas_(self) -> Floats:
        """Of the kernel, one for each of its spaces; 0 where it has none."""
        features = _features(self.engine_)
        return np.array(landmarks.gammas_of(features.rule, features.landmarks))

    @exclusive
    def top_landmarks(self, n: int = 10) -> list[Landmark]:
        """The landmarks that the metric tells most from others.

        Parameters
        ----------
        n : int
            How many; fewer where there are no more.
        """
        spread = self._view().spread()
        total = spread.sum()
        order = np.argsort(-spread, kind="stable")[: whole("n", n)]
        points = self.landmarks_
        return [Landmark(points[i], float(spread[i] / total) if total else 0.0) for i in order]

    @exclusive
    def _embed(self, X: PointsLike) -> Floats:
        return self._frozen("view").transform(X)

    @exclusive
    def pair_distance(self, pairs: TuplesLike) -> Floats:
        """Learned distance (not squared) between the two points of each pair."""
        return self._frozen("view").pair_distance(pairs)

    @exclusive
    def get_metric(self) -> FrozenKernelMetric:
        """The distance as a function of two points; it does not change when learning goes on."""
        return FrozenKernelMetric(self._view(), self.threshold_)

    def for_neighbours(self) -> KernelEmbedding:
        """The embedding for neighbours and clusters; see `MetricTracker.for_neighbours`."""
        return self._frozen("neighbours")

    @exclusive
    def transform_aligned(self, points: Points) -> Floats:
        """Embed points for neighbours, so that the embedding moves no more than the metric."""
        return self._view("neighbours").root(points)

    def _frozen(self, name: str) -> KernelEmbedding:
        found = KernelEmbedding(self._view(name), self.preprocessor_)
        hand_names(self, found)
        return found

    @when_fitted
    def _view(self, name: str = "view") -> SpacesMetric:
        """The metric of the moment, or the one for neighbours; computed when it is asked for."""
        engine, p = self.engine_, self.weights_

        def found() -> SpacesMetric:
            if name == "view":
                return self._on_spaces(engine.mixture(p), engine.of_kernel(p))
            return self._on_spaces(engine.neighbours(p), engine.neighbours_of_kernel(p))

        return self._kept(name, found)

    @property
    def _n_features_out(self) -> int:
        return self._frozen("view")._n_features_out

    def _as_seen(self, points: Points) -> Seen:
        return Seen(self._view(), points)

    def _on_features(self) -> Floats:
        return self._view().components()

    def _pieces(self, batch: PairBatch) -> Iterator[Floats]:
        everything = slice(None)
        for pairs in batch.ranges():
            x, z = (self._as_seen(batch.member(i, *pairs))[everything] for i in range(2))
            yield x - z

    def _components_of(self, expert: int) -> Floats:
        alone = np.eye(1, len(self.weights_), expert)[0]
        engine = self.engine_
        return self._on_spaces(engine.mixture(alone), engine.of_kernel(alone)).components()

    def _on_spaces(self, of_points: Factored, of_kernel: Sequence[Factored]) -> SpacesMetric:
        features = _features(self.engine_)
        metrics = [of_points, *of_kernel]
        return SpacesMetric(features.rule, features.landmarks, metrics, self.n_components)


def _features(engine: Ensemble) -> KernelFeatures:
    """Those of the kernel, which every ensemble of a `KernelTracker` has."""
    assert engine.kernel is not None
    return engine.kernel
