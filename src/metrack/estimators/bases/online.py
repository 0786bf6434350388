"""Learners that take pairs one after another."""

from collections.abc import Iterator
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.pairs import PointPairs
from metrack.engine.online.targets import DenseMetric
from metrack.estimators.bases.course import Course
from metrack.estimators.bases.pair_classifier import check_calibration
from metrack.estimators.bases.progress import Fitting
from metrack.estimators.bases.threads import exclusive
from metrack.estimators.bases.unchanged import unchanged_on_error
from metrack.estimators.choosing.suggesting import Asking
from metrack.estimators.inputs import (
    LabelsLike,
    PairBatch,
    Points,
    TuplesLike,
    check_judgements,
    check_labels,
    check_preprocessor,
    take_names,
    take_names_of_pairs,
)
from metrack.estimators.inputs.settings import at_most_features
from metrack.estimators.reading.plotting import Plots
from metrack.estimators.resolved.dense import TargetSettings
from metrack.estimators.resolved.margin import EnsembleSettings
from metrack.estimators.resolved.tracker import TrackerSettings


class OnlineLearner(Plots, Asking):
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
        with unchanged_on_error(self):
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
        with unchanged_on_error(self), self._telling(batch, verbose):
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

    def takes_points(self, n_features: int) -> bool:
        """Whether points without judgements can be of use, by `LinearLearner.observe_points`."""
        return False

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
            last 4,096 (1,024 above 64 features), and up to 1,024 of each kind from all the past.
            None where nothing is replayed.
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
        course = copy(self.course_) or Course(len(self._standing()))  # learning may fail
        found = [np.empty(0)]
        for chunk in self._chunks(batch, y):
            weights, start = np.abs(chunk.u.y if isinstance(chunk, PointPairs) else chunk.y), 0
            while start < len(weights):
                stop = min(start + course.room, len(weights))
                losses = self.engine_.observe(chunk.part(start, stop), self._draws(stop - start))
                # There each pair counts the same, whatever its weight.
                own = weights[start:stop]
                course.take(losses / np.where(own > 0.0, own, 1.0), self._standing)
                found.append(losses)
                start = stop
        self.course_ = course
        return np.concatenate(found)

    def _chunks(self, batch: PairBatch, y: Floats) -> Iterator[Any]:
        """A batch in pieces, as the engine learns them."""
        return batch.chunks(y)

    def _draws(self, n_pairs: int) -> Floats:
        """Random numbers that learning takes."""
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
        course = self.course_
        self.restore(resolved, engine, self.rng_, self.preprocessor_)
        take_names(self, None)  # those there were are too few
        self.course_ = course
        return self

    def for_neighbours(self) -> Any:
        """The embedding of this moment for neighbours and clusters."""
        raise NotImplementedError

    def transform_aligned(self, points: Points) -> Floats:
        """Embed points for neighbours, so that the embedding moves no more than the metric."""
        raise NotImplementedError
