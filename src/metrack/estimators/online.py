"""Learners that take pairs one after another."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.online.targets import DenseMetric
from metrack.estimators import active, probability, unlabelled
from metrack.estimators.asking import Asking
from metrack.estimators.base import StaticEmbedding, check_calibration
from metrack.estimators.dense_settings import TargetSettings
from metrack.estimators.embedding import aligned, leading, orthogonal
from metrack.estimators.inputs import (
    LabelsLike,
    PairBatch,
    Points,
    PointsLike,
    TuplesLike,
    check_judgements,
    check_labels,
    check_preprocessor,
    hand_names,
    points_for,
    points_of,
    take_names,
    take_names_of_pairs,
)
from metrack.estimators.margin_settings import EnsembleSettings
from metrack.estimators.progress import Fitting
from metrack.estimators.settings import at_most_features
from metrack.estimators.threads import exclusive
from metrack.estimators.tracker_settings import TrackerSettings


class OnlineLearner(Asking):
    """Learners of pairs behind scikit-learn's and metric-learn's interface."""

    resolved_: EnsembleSettings | TrackerSettings | TargetSettings
    engine_: Ensemble | DenseMetric

    @exclusive
    def fit(
        self,
        pairs: TuplesLike,
        y: LabelsLike,
        calibration_params: dict[str, Any] | None = None,
        sample_weight: ArrayLike | None = None,
        verbose: int = 0,
    ) -> Self:
        """Forget everything, then learn the pairs in order.

        Parameters
        ----------
        pairs : array (n_pairs, 2, n_features), or row numbers (n_pairs, 2) with a preprocessor
            Or `Differences`; so in every method that takes pairs.
        y : array (n_pairs,)
            +1 alike, -1 not alike; or 1 and 0, or booleans.
        calibration_params : dict, optional
            Arguments for `calibrate_threshold` on these pairs; without it the threshold is the one
            learned along.
        sample_weight : array (n_pairs,), optional
            As in `observe`.
        verbose : int
            As in `observe`.
        """
        batch, labels, preprocessor = self._check(pairs, y, None, sample_weight)
        if calibration_params is not None:
            check_calibration(check_labels(y, len(batch)), **calibration_params)
        with self._telling(batch, verbose):
            self.start(batch.n_features, preprocessor)
            take_names_of_pairs(self, batch.names)
            self.observe_batch(batch, labels)
        if calibration_params is not None:
            self.calibrate_threshold(pairs, y, **calibration_params)
        return self

    def partial_fit(
        self,
        pairs: TuplesLike,
        y: LabelsLike,
        classes: Any = None,
        sample_weight: ArrayLike | None = None,
        graded: bool = False,
        verbose: int = 0,
    ) -> Self:
        """Go on learning: `observe`, returning self. ``classes`` is for scikit-learn's sake."""
        self.observe(pairs, y, sample_weight, graded, verbose)
        return self

    @exclusive
    def observe(
        self,
        pairs: TuplesLike,
        y: LabelsLike,
        sample_weight: ArrayLike | None = None,
        graded: bool = False,
        verbose: int = 0,
    ) -> Floats:
        """Test, then train: the loss suffered on each pair before it is learned from.

        Calls of any sizes give the same state, bit for bit, as one call with all pairs. Threads
        may share a learner: their calls are learned one after another.

        Parameters
        ----------
        pairs : array (n_pairs, 2, n_features), or row numbers (n_pairs, 2) with a preprocessor
            Or `Differences`; so in every method that takes pairs.
        y : array (n_pairs,)
            +1 alike, -1 not alike; or 1 and 0, or booleans.
        sample_weight : array (n_pairs,), optional
            How much each pair counts, from 0: its loss, and by that the learners' rates, are
            multiplied by it. A pair of weight 0 is counted, and teaches nothing. To choose whom to
            trust, a weight above 1 counts as 1.
        graded : bool
            Answers y are from -1 to +1, as sure as they are large: the sign is the label, the size
            is a weight, and 0 means unsure. Without it a 0 is a label, as in data with 1 and 0.
        verbose : int
            With 1, a bar on a terminal where this takes more than a second; with 2, lines.
        """
        fitted = hasattr(self, "engine_")
        known = self.n_features_in_ if fitted else None
        batch, labels, preprocessor = self._check(pairs, y, known, sample_weight, graded)
        with self._telling(batch, verbose):
            if not fitted:
                self.start(batch.n_features, preprocessor)
            take_names_of_pairs(self, batch.names)
            return self.observe_batch(batch, labels)

    def _telling(self, batch: PairBatch, verbose: int) -> Fitting:
        """Shows how much of a batch is learned."""
        fitting = Fitting(type(self).__name__, verbose, len(batch), "pairs")
        if verbose:
            batch.reports = fitting.report
        return fitting

    def learn_one(self, x: Any, z: Any, y: int) -> Self:
        """Learn a single pair: two points, or two row numbers with a preprocessor."""
        self.observe([[x, z]], [y])
        return self

    @exclusive
    def predict(self, pairs: TuplesLike) -> Ints:
        """+1 (alike) where the distance is at most ``threshold_``, else -1."""
        return super().predict(pairs)

    @exclusive
    def observe_points(self, X: PointsLike) -> Self:
        """Learn from points without judgements, any number of them, before pairs or in between.

        Directions in which points differ much, but neighbours little, tend to carry meaning. What
        is known of them when the first pair comes decides where learning starts: a fifth of the
        way from plain distance to what the points say; but not of `MetricTracker`, some of whose
        experts see features in their own units, and with ``regularizer="l1"``: both are about
        single features. And until some pairs are known to be alike (10 have half a say, 25
        nearly all), the metric that is put out rests in part on the points; without any pair,
        altogether. Best called before the first pair: pairs learned earlier are taken for alike
        ones.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features), or row numbers with a preprocessor
            In calls of any sizes; all but the last 100,000 points fade.

        Examples
        --------
        >>> import numpy as np
        >>> from metrack import MetricTracker
        >>> X = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 5.0, 1.0]
        >>> MetricTracker().observe_points(X).top_features(n=1)[0][0]
        1
        """
        fitted = hasattr(self, "engine_")
        preprocessor = self.preprocessor_ if fitted else check_preprocessor(self.preprocessor)
        points = points_for(self, X) if fitted else points_of(X, preprocessor, None)
        n_features = points.shape[1]
        if not self.takes_points(n_features):
            raise ValueError(
                "observe_points keeps the covariance of all features: it is for metrics of full "
                f"rank (n_components=None), and up to {unlabelled.WIDEST:,} features; got "
                f"{n_features:,}. Project the points first, such as by PCA"
            )
        if not fitted:
            self.start(n_features, preprocessor)
        seen = self.points_ or unlabelled.no_points(n_features, self.engine_.n_pairs)
        self._forget_read_outs()
        self.points_ = unlabelled.take(seen, points)
        return self

    def takes_points(self, n_features: int) -> bool:
        """Whether `observe_points` can be of use: the covariance of so many features is kept."""
        return n_features <= unlabelled.WIDEST and getattr(self, "n_components", None) is None

    @exclusive
    def forget(self, pairs: TuplesLike) -> int:
        """Replay judgements of these pairs no more, such as those that were given by mistake.

        Steps that were taken stay, and fade as learning goes on: replays, which repeat a
        pair many times, are what makes a mistake last. To be exactly as before a
        judgement, save before it and load that state; the undo of ``metrack judge`` does so.

        Parameters
        ----------
        pairs : array (n_pairs, 2, n_features), or row numbers (n_pairs, 2) with a preprocessor
            In either order of their points.

        Returns
        -------
        int
            How many judgements were found among those that may be replayed: of `MetricTracker` the
            last 1,024, and up to 1,024 of each kind from all the past. None where nothing is
            replayed.
        """
        check_is_fitted(self)
        return self._forget(PairBatch(pairs, self.preprocessor_, self.n_features_in_))

    def _forget(self, batch: PairBatch) -> int:
        """Of a learner that replays nothing."""
        return 0

    def _check(
        self,
        pairs: TuplesLike,
        y: LabelsLike,
        n_features: int | None,
        sample_weight: ArrayLike | None = None,
        graded: bool = False,
    ) -> tuple[PairBatch, Floats, Any]:
        if n_features is None:
            preprocessor = check_preprocessor(self.preprocessor)
        else:
            preprocessor = self.preprocessor_
        batch = PairBatch(pairs, preprocessor, n_features)
        if n_features is None:  # a stream that may grow wider comes another way
            self.check_components(batch.n_features)
        return batch, check_judgements(y, len(batch), sample_weight, graded), preprocessor

    def check_components(self, n_features: int) -> None:
        """Refuse more directions than there are features."""
        at_most_features(getattr(self, "n_components", None), n_features)

    @exclusive
    def observe_batch(self, batch: PairBatch, y: Floats) -> Floats:
        """What `observe` does, with pairs and labels that have been checked; it is started."""
        self._forget_read_outs()
        if self.points_ is not None:
            self.points_ = self._before_pairs(self.points_, y)
        engine, start = self.engine_, self._start_of()
        chunks = batch.chunks(y) if start is None else map(start.as_learned, batch.chunks(y))
        return np.concatenate(
            [engine.observe(pairs, self._draws(len(pairs.y))) for pairs in chunks]
        )

    def _before_pairs(self, points: unlabelled.Points, y: Floats) -> unlabelled.Points:
        """Settle the start, if no pair came before; count those that are alike."""
        if self.engine_.n_pairs == 0 and not self._is_of_features():
            points = unlabelled.settled(points)
        points.moments.counts[1] += int(np.sum(y > 0.0))
        return points

    def _is_of_features(self) -> bool:
        """Whether single features matter, so that pairs must not be turned."""
        return getattr(self, "regularizer", None) == "l1"

    def _start_of(self) -> unlabelled.Start | None:
        """Where learning started, if not from plain distance."""
        return self.points_ and self.points_.start

    def _put_out(self) -> Factored:
        return self._with_points(self._metric())

    def _with_points(self, metric: Factored) -> Factored:
        """What was learned, together with what points without judgements say."""
        if self.points_ is None:
            return metric
        return unlabelled.on_points(metric, self.points_, self._mu(), self.engine_.n_pairs)

    def _draws(self, n_pairs: int) -> Floats:
        return np.empty(0)

    def _mu(self) -> float:
        return float(self.engine_.mu[0])

    @property
    def n_pairs_seen_(self) -> int:
        """How many pairs have been learned from."""
        check_is_fitted(self)
        return self.engine_.n_pairs

    @property
    @exclusive
    def mu_(self) -> float:
        """Learned threshold on the squared distance."""
        check_is_fitted(self)
        return self._mu()

    @property
    @exclusive
    def threshold_(self) -> float:  # type: ignore[override]
        """Distance up to which `predict` calls a pair alike: sqrt(mu_) unless it was set."""
        check_is_fitted(self)
        if "threshold" in self.set_by_hand_:
            return float(self.set_by_hand_["threshold"])
        return float(np.sqrt(self.mu_ * self._cut_ratio()))

    def _cut_ratio(self) -> float:
        """Square of the threshold, over mu."""
        return 1.0

    @exclusive
    def _set_threshold(self, value: float) -> None:
        self.set_by_hand_["threshold"] = value

    @exclusive
    def neighbour_components(self) -> Floats:
        """L of the metric for neighbours and clusters; see `for_neighbours`."""
        check_is_fitted(self)
        return self.components_

    @exclusive
    def for_neighbours(self) -> StaticEmbedding:
        """The embedding of this moment for neighbours and clusters.

        Pairs tell which distances are large and which small; among near neighbours, what counts is
        how much points of the same class differ in each direction. Where `MetricTracker` has
        several kinds of experts, this metric is therefore a geometric mean of the one of
        `transform` and of the inverse covariance of the latest similar pairs. For all other
        learners it is the one of `transform`.

        Returns
        -------
        StaticEmbedding
            With ``transform``, ``components_``, ``get_metric`` and ``pair_distance``; it does not
            change when learning goes on.
        """
        found = StaticEmbedding(self.neighbour_components(), self.preprocessor_)
        hand_names(self, found)
        return found

    @exclusive
    def aligned_components(self, for_neighbours: bool = False) -> Floats:
        """L with M = L'L, Procrustes-aligned with a fixed position: it moves no more than M does.

        Parameters
        ----------
        for_neighbours : bool
            M is the metric of `for_neighbours`, not of `transform`.

        Returns
        -------
        array (n_columns, n_features)
            As many rows as features, or as ``n_components`` asks for.
        """
        check_is_fitted(self)
        name = "aligned for neighbours" if for_neighbours else "aligned"
        if name not in self._computed:
            by_hand = "components" in self.set_by_hand_
            other = for_neighbours and not by_hand
            rows = self.neighbour_components() if other else self._rows()
            width = self._most_directions(self.n_features_in_)
            self._computed[name] = aligned(leading(rows, width), width)
        components: Floats = self._computed[name]
        return components

    def transform_aligned(self, points: Points) -> Floats:
        """Embed points for neighbours, by `aligned_components`."""
        found: Floats = points @ self.aligned_components(for_neighbours=True).T
        return np.asarray(found)

    def _directions(self) -> Floats:
        if getattr(self, "n_components", None) is None:
            return self.components_
        if "directions" not in self._computed:
            width = self._most_directions(self.n_features_in_)
            rows = leading(self._rows(), width)
            self._computed["directions"] = np.pad(rows, ((0, width - len(rows)), (0, 0)))
        directions: Floats = self._computed["directions"]
        return directions

    def _rows(self) -> Floats:
        """Components whose rows are orthogonal; those that were learned are."""
        return (
            orthogonal(self.components_) if "components" in self.set_by_hand_ else self.components_
        )

    def _most_directions(self, n_features: int) -> int:
        return min(getattr(self, "n_components", None) or n_features, n_features)

    @exclusive
    def widen(self, n_features: int) -> Self:
        """Go on with more features; those of all pairs so far were 0.

        What "auto" stands for is found anew: the learner is one of the new width.
        """
        check_is_fitted(self)
        if n_features < self.n_features_in_:
            raise ValueError(
                f"n_features={n_features}; it has {self.n_features_in_} already, and forgets none"
            )
        resolved = self.resolve(n_features)
        engine: Any = resolved.build()
        engine.continue_from(self.engine_)
        points = self.points_ and unlabelled.widen(self.points_, n_features)
        self.restore(resolved, engine, self.rng_, self.preprocessor_)
        take_names(self, None)  # those there were are too few
        self.points_ = points
        return self


class EnsembleLearner(OnlineLearner):
    """A learner of pairs, or several, whose engine is an ensemble."""

    resolved_: EnsembleSettings | TrackerSettings
    engine_: Ensemble

    def _committee(self) -> list[active.Expert]:
        """All experts that are active, by their trust."""
        if "components" in self.set_by_hand_:
            return super()._committee()
        if "committee" not in self._computed:
            engine = self.engine_
            experts, start = engine.experts, self._start_of()
            p, mu = experts.weights, experts.mu
            metrics = [engine.metric(j).components() for j in range(len(p))]
            if start is not None:
                metrics = [components @ start.root for components in metrics]
            self._computed["committee"] = [
                active.Expert(components, float(mu[j]), float(p[j]))
                for j, components in enumerate(metrics)
            ]
        committee: list[active.Expert] = self._computed["committee"]
        return committee

    def _forget(self, batch: PairBatch) -> int:
        return sum(self.engine_.forget(each) for each in batch.chunks(np.zeros(len(batch))))

    @exclusive
    def predict_proba(self, pairs: TuplesLike) -> Floats:
        """How likely each pair is not alike, and alike: columns as in ``classes_``.

        It is calibrated by what was said of the last 512 alike pairs and the last 512 others before
        they were learned, at the share that alike pairs have in the stream.
        """
        alike = self.likelihood()(self.pair_distance(pairs) ** 2)
        return np.column_stack([1.0 - alike, alike])

    @exclusive
    def likelihood(self) -> probability.Curve:
        """How likely a pair is alike, by its squared distance; it does not change any more."""
        check_is_fitted(self)
        if "likelihood" not in self._computed:
            curve = probability.curve(probability.sample(self.engine_.experts.scores))
            self._computed["likelihood"] = curve.of_squares(self.mu_)
        found: probability.Curve = self._computed["likelihood"]
        return found

    def _cut_ratio(self) -> float:
        goal, least = probability.check_goal(getattr(self, "threshold", "accuracy"))
        found = probability.sample(self.engine_.experts.scores)
        if goal == "accuracy" or not (found.alike.any() and found.others.any()):
            return 1.0  # what is learned along counts errors
        return probability.cut(found, goal, least)

    def _exploration(self) -> float:
        changed = self.engine_.last_change
        return active.exploration(self.engine_.n_pairs - changed if changed else np.inf)

    def resolve(self, n_features: int) -> EnsembleSettings | TrackerSettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        raise NotImplementedError

    @property
    @exclusive
    def last_change_(self) -> int:
        """The pair, counted from 1, at which losses were last found to have risen; 0: none."""
        check_is_fitted(self)
        return self.engine_.last_change
