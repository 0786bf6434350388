"""MetricTracker: learners of several kinds, weighed by how well each has done recently."""

from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.ensemble_learner import LinearEnsemble
from metrack.estimators.bases.threads import when_fitted
from metrack.estimators.bases.weighed import WeighedLearner
from metrack.estimators.inputs import Preprocessor
from metrack.estimators.inputs.settings import Seed, at_most_features, whole
from metrack.estimators.reading.drift_report import ReportsDrift
from metrack.estimators.reading.probability import Goal, check_goal
from metrack.estimators.resolved.auto import units
from metrack.estimators.resolved.tables import BASIS, learners_for
from metrack.estimators.resolved.tracker import TrackerSettings


class MetricTracker(ReportsDrift, WeighedLearner, LinearEnsemble):
    """Metric tracking with nothing to tune: it follows switches and drift of any speed.

    Many learners see every pair, and a combiner weighs them by their recent regret, which is
    bounded on every stretch of time against each of them. The number of pairs need not be known.

    The learners are of several kinds: target learners (ITML's steps, which multiply), additive
    learners, moment learners (closed forms of covariances), and linear embeddings by gradient
    descent on minibatches of all the past, at several rates and memory lengths; and plain distance.
    Some see differences as they come, some each feature in its own units, so that features may come
    in any.

    There are two outputs. `transform`, `pair_distance` and `predict` judge pairs; `for_neighbours`
    gives the embedding in which to look for neighbours and clusters.

    Parameters
    ----------
    n_components : int or None
        Columns of `transform`: the best metric of that rank near the mean; `observe` judges the
        mean itself. None: as many as there are features.
    threshold : {"accuracy", "f1"} or dict
        What `predict` is to reach, followed along the stream: fewest errors; the largest F1 score;
        or {"precision": 0.95}, as many alike pairs as can be found where at least so many of those
        that are called alike are; or {"recall": 0.9}, as few pairs as can be called alike where at
        least so many of the alike ones are.
    scale
        As in `COMID`.
    preprocessor
        As in `COMID`.
    random_state : int, RandomState or None
        Nothing here is random; for `FromLabels` and others that draw pairs, as in `COMID`.

    Attributes
    ----------
    scales_ : array
        Memory lengths of the learners.
    weights_ : array
        Their normalised weights: where the trust lies tells how fast things drift.
    experts_ : list of Expert
        Kind, memory length, learning rate, weight and space of every learner.
    effective_window_ : float
        How many of the most recent pairs the metric rests on.
    components_, mu_, threshold_, rank_, n_pairs_seen_, last_change_, resolved_
        As in `COMID`, of the output.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import MetricTracker
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(2000, 2, 5))
    >>> gap = np.abs(pairs[:, 0] - pairs[:, 1])
    >>> y = np.where(gap[:, 0] < 1, 1, -1)
    >>> y[1000:] = np.where(gap[1000:, 1] < 1, 1, -1)  # now the second feature counts
    >>> tracker = MetricTracker().fit(pairs[:1000], y[:1000])
    >>> before = tracker.get_metric()
    >>> report = tracker.partial_fit(pairs[1000:], y[1000:]).drift_report(since=before)
    >>> sorted(report.features[:2].tolist())
    [0, 1]
    >>> sorted({expert.kind for expert in tracker.experts_})
    ['additive', 'gradient', 'moment', 'plain', 'target']
    """

    resolved_: TrackerSettings

    def __init__(
        self,
        n_components: int | None = None,
        threshold: Goal = "accuracy",
        scale: str | None = "auto",
        preprocessor: Preprocessor = None,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.threshold = threshold
        self.scale = scale
        self.preprocessor = preprocessor
        self.random_state = random_state

    def resolve(self, n_features: int) -> TrackerSettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        at_most_features(self.n_components, whole("n_features", n_features))
        check_goal(self.threshold)
        return TrackerSettings(n_features, units(self.scale), learners_for(n_features), BASIS)

    @when_fitted
    def neighbour_components(self) -> Floats:
        """L of the metric for neighbours and clusters; see `for_neighbours`."""
        if "components" in self.set_by_hand_:
            return super().neighbour_components()
        components = self._kept("neighbours", self._neighbours)
        components.flags.writeable = False
        return components

    def _neighbours(self) -> Floats:
        metric = self._with_points(self.engine_.neighbours(self.weights_))
        return self._cut(metric).components()

    def _is_of_features(self) -> bool:
        return True  # in their own units: of turned pairs they would be those of rounding errors

    def _metric(self) -> Factored:
        return self._cut(self.engine_.mixture(self.weights_))

    def _cut(self, metric: Factored) -> Factored:
        """The directions that ``n_components`` asks for."""
        return metric if self.n_components is None else metric.leading(self.n_components)
