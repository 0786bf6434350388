"""Learners that take pairs one after another."""

from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.numerics.kernels import Floats
from metrack.engine.numerics.pairs import PointPairs
from metrack.engine.online.targets import DenseMetric
from metrack.estimators.bases.course import Course
from metrack.estimators.bases.pair_classifier import check_calibration
from metrack.estimators.bases.progress import Fitting
from metrack.estimators.bases.threads import exclusive, one_blas_thread, when_fitted
from metrack.estimators.bases.unchanged import unchanged_on_error
from metrack.estimators.choosing.suggesting import Asking
from metrack.estimators.inputs import (
    LabelsLike,
    PairBatch,
    Points,
    PointsLike,
    TuplesLike,
    check_judgements,
    check_labels,
    check_one_each,
    check_preprocessor,
    take_names,
    take_names_of_pairs,
)
from metrack.estimators.inputs.settings import at_most_features
from metrack.estimators.reading import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class OnlineLearner(Asking):
    """Learners of pairs behind scikit-learn's and metric-learn's interface."""

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
        pairs, y, sample_weight, verbose
            As in `observe`.
        calibration_params : dict, optional
            Arguments for `calibrate_threshold` on these pairs; without it the threshold is the one
            learned along.
        """
        with unchanged_on_error(self):
            self._learn(
                pairs, y, sample_weight, False, verbose, anew=True, calibration=calibration_params
            )
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
        anew = not hasattr(self, "engine_")
        with unchanged_on_error(self):
            return self._learn(pairs, y, sample_weight, graded, verbose, anew=anew)

    def _learn(
        self,
        pairs: TuplesLike,
        y: LabelsLike,
        sample_weight: ArrayLike | None,
        graded: bool,
        verbose: int,
        anew: bool,
        calibration: dict[str, Any] | None = None,
    ) -> Floats:
        preprocessor = check_preprocessor(self.preprocessor) if anew else self.preprocessor_
        batch = PairBatch(pairs, preprocessor, None if anew else self.n_features_in_)
        if anew:  # a stream that may grow wider comes another way
            self.check_components(batch.n_features)
        judgements = check_judgements(y, len(batch), sample_weight, graded)
        if calibration is not None:
            check_calibration(check_labels(y, len(batch)), **calibration)
        with Fitting(type(self).__name__, verbose, len(batch), "pairs") as fitting:
            if verbose:
                batch.reports = fitting.report
            if anew:
                self.start(batch.n_features, preprocessor)
            take_names_of_pairs(self, batch.names)
            return self.observe_batch(batch, judgements)

    def learn_one(self, x: Any, z: Any, y: int) -> Self:
        """Learn a single pair: two points, or two row numbers with a preprocessor."""
        self.observe([[x, z]], [y])
        return self

    def takes_points(self, n_features: int) -> bool:
        """Whether points without judgements can be of use, by `LinearLearner.observe_points`."""
        return False

    @when_fitted
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
        return self._forget(PairBatch(pairs, self.preprocessor_, self.n_features_in_))

    def _forget(self, batch: PairBatch) -> int:
        """Of a learner that replays nothing."""
        return 0

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
                part = chunk.part(start, stop)
                with one_blas_thread():
                    losses = self.engine_.observe(part, self._draws(stop - start))
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
    @when_fitted
    def mu_(self) -> float:
        """Learned threshold on the squared distance."""
        return self._mu()

    @property
    @when_fitted
    def threshold_(self) -> float:
        """Distance up to which `predict` calls a pair alike: sqrt(mu_) unless it was set."""
        if "threshold" in self.set_by_hand_:
            return float(self.set_by_hand_["threshold"])
        return float(np.sqrt(self.mu_ * self._cut_ratio()))

    @threshold_.setter
    @exclusive
    def threshold_(self, value: float) -> None:
        self.set_by_hand_["threshold"] = value

    def _cut_ratio(self) -> float:
        """Square of the threshold, over mu."""
        return 1.0

    @when_fitted
    def widen(self, n_features: int) -> Self:
        """Go on with more features; those of all pairs so far were 0.

        What "auto" stands for is found anew: the learner is one of the new width.
        """
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

    @exclusive
    def plot_loss(self, ax: "Axes | None" = None) -> "Axes":
        """Draw mean losses, each suffered before its pair was learned, along the stream.

        Blocks of 16 pairs at first, and of more as the stream goes on; since the learner was
        started or loaded. Dashed lines are where losses were found to have risen.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Drawn on a new figure without.
        """
        ends, losses, values = self._so_far()
        changes = np.unique(values[:, 0]) if values.shape[1] else np.empty(0)
        return plotting.loss(plotting.axes(ax), ends, losses, changes[changes > 0.0])

    @exclusive
    def plot_embedding(self, X: PointsLike, labels: Any = None, ax: "Axes | None" = None) -> "Axes":
        """Draw points in the two directions in which their embedding is spread most.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features), or row numbers with a preprocessor
        labels : array (n_points,), optional
            Classes, which get a colour each; or numbers, of which many differ.
        ax : matplotlib Axes, optional
            Drawn on a new figure without.
        """
        kinds = None if labels is None else np.asarray(labels)
        embedded: Any = self.for_neighbours().transform(X)
        if kinds is not None:
            check_one_each(kinds, "labels", "entry", len(embedded), "point")
        return plotting.scatter(plotting.axes(ax), plotting.flat(embedded), kinds)

    def _so_far(self) -> tuple[Floats, Floats, Floats]:
        """Ends, losses and values of all blocks."""
        check_is_fitted(self)
        if self.course_ is None:
            raise ValueError(
                "nothing has been learned since this tracker was started or loaded, so there is no "
                "course to draw; learn some pairs first"
            )
        return self.course_.so_far(self._standing)

    def _standing(self) -> Floats:
        """What is remembered of the end of each block of the course, beside losses."""
        return np.empty(0)

    def for_neighbours(self) -> Any:
        """The embedding of this moment for neighbours and clusters."""
        raise NotImplementedError

    def transform_aligned(self, points: Points) -> Floats:
        """Embed points for neighbours, so that the embedding moves no more than the metric."""
        raise NotImplementedError
