"""Learners that take pairs one after another."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble import replay
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.online.targets import DenseMetric
from metrack.estimators import active, closure, persistence, unlabelled
from metrack.estimators.base import (
    Embedding,
    FrozenMetric,
    MahalanobisLearner,
    StaticEmbedding,
    check_calibration,
)
from metrack.estimators.embedding import aligned, leading, orthogonal
from metrack.estimators.inputs import (
    LabelsLike,
    Lookup,
    PairBatch,
    Points,
    PointsLike,
    Preprocessor,
    TuplesLike,
    check_judgements,
    check_labels,
    check_preprocessor,
    points_of,
)
from metrack.estimators.resolved import Engine, EnsembleSettings, Resolved, TargetSettings
from metrack.estimators.settings import Seed, at_most_features, whole
from metrack.estimators.threads import exclusive


class OnlineEmbedding(Embedding):
    """A metric that is read out of a learner's state when it is asked for.

    A subclass says what its settings come to (`resolve`); from that all else is built.

    Attributes
    ----------
    resolved_ : NamedTuple
        What the settings came to: every choice, none of them "auto".
    engine_ : Ensemble, DenseMetric or DenseSimilarity
        All that is learned.
    rng_ : RandomState
    preprocessor_
        The preprocessor, checked.
    set_by_hand_ : dict
        What a user has set since learning last went on: "threshold" or "components".
    points_ : Points or None
        What points without judgements have shown.
    """

    preprocessor: Preprocessor
    random_state: Seed
    resolved_: Resolved
    engine_: Engine
    rng_: np.random.RandomState
    set_by_hand_: dict[str, Any]
    points_: unlabelled.Points | None

    def resolve(self, n_features: int) -> Resolved:
        """What the settings come to for so many features; nothing is learned or changed."""
        raise NotImplementedError

    @exclusive
    def start(self, n_features: int, preprocessor: Lookup = None) -> Self:
        """Forget everything, and be ready for points of so many features.

        Parameters
        ----------
        n_features : int
        preprocessor : optional
            As `check_preprocessor` returns it.
        """
        # What may refuse a setting comes before anything changes.
        rng, resolved = check_random_state(self.random_state), self.resolve(n_features)
        return self.restore(resolved, resolved.build(), rng, preprocessor)

    def restore(
        self,
        resolved: Resolved,
        engine: Engine,
        rng: np.random.RandomState,
        preprocessor: Lookup = None,
    ) -> Self:
        """Go on from what an engine knows, such as a saved one."""
        self.resolved_, self.engine_, self.rng_ = resolved, engine, rng
        self.preprocessor_ = preprocessor
        self.n_features_in_ = resolved.n_features
        self.points_ = None
        self._forget_read_outs()
        return self

    def _forget_read_outs(self) -> None:
        self._computed: dict[str, Any] = {}  # until learning goes on
        self.set_by_hand_ = {}

    @exclusive
    def save(self, path: str | Path) -> None:
        """Write all that was learned into a folder, from which `metrack.load` brings it back.

        What is loaded goes on exactly as this learner would. The folder keeps the last three
        states saved to it; a crash while saving harms none of them. The preprocessor is not
        saved: it is given again to `metrack.load`.

        Parameters
        ----------
        path : path of a folder
            Made if missing; must hold nothing but states.
        """
        persistence.save(self, path)

    def _metric(self) -> Factored:
        """The metric that stands for all that was learned."""
        return self.engine_.metric(0)

    def _put_out(self) -> Factored:
        return self._metric()

    def _read_metric(self) -> Factored:
        if "metric" not in self._computed:
            self._computed["metric"] = self._put_out()
        metric: Factored = self._computed["metric"]
        return metric

    @property
    @exclusive
    def components_(self) -> Floats:
        """L with M = L'L, (rank_, n_features); rows by falling weight."""
        check_is_fitted(self)
        if "components" in self.set_by_hand_:
            components: Floats = self.set_by_hand_["components"]
            return components
        if "components" not in self._computed:
            self._computed["components"] = self._read_metric().components()
            self._computed["components"].flags.writeable = False
        components = self._computed["components"]
        return components

    @components_.setter
    def components_(self, value: Any) -> None:
        """Use another L in all that is put out, until learning goes on."""
        check_is_fitted(self)
        given = np.array(value, dtype=np.float64, ndmin=2)
        if given.shape[1:] != (self.n_features_in_,) or not np.isfinite(given).all():
            raise ValueError(
                f"components_ must be finite numbers of shape (rank, {self.n_features_in_}); got "
                f"shape {given.shape}"
            )
        given.flags.writeable = False
        self._computed = {}
        self.set_by_hand_["components"] = given

    def _structured(self) -> Factored | None:
        """The metric, where it is plain but in a few directions: L takes longer than points do."""
        if "components" in self.set_by_hand_:
            return None
        metric = self._read_metric()
        return metric if metric.outside > 0.0 else None

    @exclusive
    def _turned(self, points: Points) -> Floats:
        if isinstance(points, np.ndarray) and getattr(self, "n_components", None) is None:
            metric = self._structured()
            if metric is not None:
                return metric.embed(points)
        return super()._turned(points)

    @exclusive
    def _squares(self, differences: Points) -> Floats:
        if isinstance(differences, np.ndarray):
            metric = self._structured()
            if metric is not None:
                return metric.squared_distances(differences)
        return super()._squares(differences)

    @property
    def rank_(self) -> int:
        """Rank of the metric."""
        return len(self.components_)


class OnlineLearner(OnlineEmbedding, MahalanobisLearner):
    """Learners of pairs behind scikit-learn's and metric-learn's interface."""

    resolved_: EnsembleSettings | TargetSettings
    engine_: Ensemble | DenseMetric

    @exclusive
    def fit(
        self,
        pairs: TuplesLike,
        y: LabelsLike,
        calibration_params: dict[str, Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Forget everything, then learn the pairs in order.

        Parameters
        ----------
        pairs : array (n_pairs, 2, n_features), or row numbers (n_pairs, 2) with a preprocessor
        y : array (n_pairs,)
            +1 alike, -1 not alike.
        calibration_params : dict, optional
            Arguments for `calibrate_threshold` on these pairs; without it the threshold is the one
            learned along.
        sample_weight : array (n_pairs,), optional
            As in `observe`.
        """
        batch, labels, preprocessor = self._check(pairs, y, None, sample_weight)
        if calibration_params is not None:
            check_calibration(check_labels(y, len(batch)), **calibration_params)
        self.start(batch.n_features, preprocessor)
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
    ) -> Self:
        """Go on learning: `observe`, returning self. ``classes`` is for scikit-learn's sake."""
        self.observe(pairs, y, sample_weight, graded)
        return self

    @exclusive
    def observe(
        self,
        pairs: TuplesLike,
        y: LabelsLike,
        sample_weight: ArrayLike | None = None,
        graded: bool = False,
    ) -> Floats:
        """Test, then train: the loss suffered on each pair before it is learned from.

        Calls of any sizes give the same state, bit for bit, as one call with all pairs. Threads
        may share a learner: their calls are learned one after another.

        Parameters
        ----------
        pairs : array (n_pairs, 2, n_features), or row numbers (n_pairs, 2) with a preprocessor
        y : array (n_pairs,)
            +1 alike, -1 not alike.
        sample_weight : array (n_pairs,), optional
            How much each pair counts, from 0: its loss, and by that the learners' rates, are
            multiplied by it. A pair of weight 0 is counted, and teaches nothing. To choose whom to
            trust, a weight above 1 counts as 1.
        graded : bool
            Answers y are from -1 to +1, as sure as they are large: the sign is the label, the size
            is a weight, and 0 means unsure. Without it a 0 is refused: it is more often a
            label of data with 1 and 0.
        """
        fitted = hasattr(self, "engine_")
        known = self.n_features_in_ if fitted else None
        batch, labels, preprocessor = self._check(pairs, y, known, sample_weight, graded)
        if not fitted:
            self.start(batch.n_features, preprocessor)
        return self.observe_batch(batch, labels)

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

        Directions in which points vary much tend to carry meaning. So until some pairs are known to
        be alike (14 have half a say, 50 nearly all), the metric that is put out rests in
        part on the covariance of the points; without any pair, altogether. What pairs
        teach is learned as without points. Best called before the first pair: pairs learned
        earlier are taken for alike ones.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features), or row numbers with a preprocessor
            In calls of any sizes; all but the last 100,000 points fade.

        Examples
        --------
        >>> import numpy as np
        >>> from metrack import SADL
        >>> X = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 5.0, 1.0]
        >>> SADL().observe_points(X).top_features(n=1)[0][0]
        1
        """
        fitted = hasattr(self, "engine_")
        preprocessor = self.preprocessor_ if fitted else check_preprocessor(self.preprocessor)
        points = points_of(X, preprocessor, self.n_features_in_ if fitted else None)
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
    def suggest_pairs(
        self,
        X: PointsLike,
        n_pairs: int,
        random_state: Seed = None,
        return_weights: bool = False,
        judged: tuple[ArrayLike, LabelsLike] | None = None,
    ) -> Any:
        """Choose pairs of points that are worth judging next; nothing is learned or changed.

        Pairs are drawn by `informativeness`, so that some of them are near the threshold, some are
        those on which experts disagree, and a share is random: a tenth, and up to half after a
        change was noticed, when the metric cannot be relied on. A point is asked about once, as
        long as there are enough. Candidates are the neighbours of some points among some others,
        and random pairs: the work does not grow with the number of points.

        Before the first judgement, pairs are chosen by what `observe_points` has seen, else by
        plain distance.

        Parameters
        ----------
        X : array or CSR matrix (n_points, n_features), or row numbers with a preprocessor
        n_pairs : int
        random_state : int, RandomState or None
            The same number gives the same pairs.
        return_weights : bool
            Also return how many random pairs each stands for, up to a factor. Judgements of
            suggested pairs are no random sample, and more of them are alike; what is
            averaged with these weights is not biased by the choice: the share of pairs
            that are alike, an error rate.
        judged : tuple (rows, y), optional
            Rows of X that were judged before, and their labels, all to the same question; for
            questions with few classes (a dozen at most), where alike is transitive. Most
            pairs are then a new point and one of the class that is nearest to it, so that
            much follows from few answers; learn that too, see `metrack.implied_pairs`.

        Returns
        -------
        array (n_pairs, 2)
            Rows of X, the most informative pair first; and, if asked for, weights (n_pairs,).

        Examples
        --------
        >>> import numpy as np
        >>> from metrack import SADL
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> tracker = SADL()
        >>> for i in range(20):
        ...     rows = tracker.suggest_pairs(X, 10, random_state=i)
        ...     alike = np.abs(X[rows[:, 0], 0] - X[rows[:, 1], 0]) < 0.5
        ...     tracker = tracker.partial_fit(X[rows], np.where(alike, 1, -1))
        >>> tracker.top_features(n=1)[0][0]
        0
        """
        if started := hasattr(self, "engine_"):
            points = points_of(X, self.preprocessor_, self.n_features_in_)
        else:
            points = points_of(X, check_preprocessor(self.preprocessor), None)
        n_points = points.shape[0]
        if judged is not None and return_weights:
            raise ValueError("return_weights with judged: pairs are then chosen, and not drawn")
        if whole("n_pairs", n_pairs) > n_points * (n_points - 1) // 2:
            raise ValueError(
                f"n_pairs={n_pairs}: {n_points} points have {n_points * (n_points - 1) // 2} pairs;"
                " ask for fewer, or pass more points"
            )
        has_learned = started and self.engine_.n_pairs > 0
        known = has_learned or (started and self.points_ is not None)
        rng = check_random_state(random_state)
        explored = self._exploration() if has_learned else active.exploration(np.inf)
        questions = np.empty((0, 2), np.int64)
        if judged is not None and has_learned:
            groups = closure.groups_of(*_judged_of(judged, n_points))
            most = rng.binomial(n_pairs, 1.0 - explored)
            questions = closure.next_questions(points, most, self.components_, groups, rng)
        found = active.suggest(
            points,
            n_pairs,
            self.components_ if known else None,
            self._committee() if has_learned else (),
            explored,
            rng,
        )
        rows = np.concatenate([questions, found.rows])[:n_pairs]
        return (rows, found.weights) if return_weights else rows

    @exclusive
    def informativeness(self, pairs: TuplesLike) -> Floats:
        """How much there is to learn from a judgement of each pair, from 0 to 1.

        It is 1 where the learner's experts, weighed half by trust, are evenly divided or all near
        their thresholds, and 0 where they are sure of the same thing.

        Parameters
        ----------
        pairs : array (n_pairs, 2, n_features), or row numbers (n_pairs, 2) with a preprocessor
        """
        check_is_fitted(self)
        batch, committee = (
            PairBatch(pairs, self.preprocessor_, self.n_features_in_),
            self._committee(),
        )
        scores = [
            active.doubt([_squares(each.components, u) for each in committee], committee)
            for u in batch.pieces()
        ]
        return np.concatenate(scores)

    @exclusive
    def change_since(
        self, then: FrozenMetric, X: PointsLike, random_state: Seed = None
    ) -> active.Change:
        """How many judgements the pairs since an earlier moment have changed: when to stop asking.

        Each further answer changes less than those before, as long as the question stays the same.
        So where few judgements have changed while the number of answers has doubled, as many
        answers again will mostly change no more (13 of 20 simulated streams; the threshold goes on
        moving a little).

        Parameters
        ----------
        then : FrozenMetric
            What `get_metric` gave at the earlier moment.
        X : array or CSR matrix (n_points, n_features), or row numbers with a preprocessor
            Points whose pairs are compared; some of the pairs.
        random_state : int, RandomState or None
            For which pairs are compared.

        Returns
        -------
        Change
            The share of judgements that differ, and its 95 % interval. Of all pairs that are
            called alike now or were then: others are nearly all, whatever was learned.

        Examples
        --------
        >>> import numpy as np
        >>> from metrack import SADL
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> rows = np.random.default_rng(1).integers(500, size=(1000, 2))
        >>> y = np.where(np.abs(X[rows[:, 0], 0] - X[rows[:, 1], 0]) < 0.5, 1, -1)
        >>> tracker = SADL().fit(X[rows[:500]], y[:500])
        >>> half_way = tracker.get_metric()
        >>> change = tracker.partial_fit(X[rows[500:]], y[500:]).change_since(half_way, X, 0)
        >>> change.low <= change.share <= change.high < 0.2
        True
        """
        check_is_fitted(self)
        points = points_of(X, self.preprocessor_, self.n_features_in_)
        if then.threshold is None or then.components.shape[1] != self.n_features_in_:
            raise ValueError(
                "then must be what get_metric() of this learner gave: a metric of "
                f"{self.n_features_in_} features, with a threshold"
            )
        if points.shape[0] < 2:
            raise ValueError("X has 1 point; pairs need 2 or more")
        limits = [float(np.copysign(t * t, t)) for t in (self.threshold_, then.threshold)]
        now = active.Expert(self.components_, limits[0], 1.0)
        before = active.Expert(then.components, limits[1], 1.0)
        return active.change(points, now, before, check_random_state(random_state))

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
            How many judgements were found among those that may be replayed; 0 where none are.
        """
        check_is_fitted(self)
        batch = PairBatch(pairs, self.preprocessor_, self.n_features_in_)
        return sum(self._forget(u) for u in batch.pieces())

    def _forget(self, u: Points) -> int:
        """Of a learner that replays nothing."""
        return 0

    def _committee(self) -> list[active.Expert]:
        """Those who judge; here one, whose metric is put out."""
        return [active.Expert(self.components_, self._mu(), 1.0)]

    def _exploration(self) -> float:
        return active.exploration(np.inf)

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
            at_most_features(getattr(self, "n_components", None), batch.n_features)
        return batch, check_judgements(y, len(batch), sample_weight, graded), preprocessor

    @exclusive
    def observe_batch(self, batch: PairBatch, y: Floats) -> Floats:
        """What `observe` does, with pairs and labels that have been checked; it is started."""
        self._forget_read_outs()
        if self.points_ is not None:
            self.points_.counts[1] += int(np.sum(y > 0.0))
        engine = self.engine_
        return np.concatenate(
            [engine.observe(pairs, self._draws(len(pairs.y))) for pairs in batch.chunks(y)]
        )

    def _put_out(self) -> Factored:
        return self._with_points(self._metric())

    def _with_points(self, metric: Factored) -> Factored:
        """A metric together with what points without judgements say, as long as that counts."""
        if self.points_ is None:
            return metric
        return unlabelled.with_prior(metric, self.points_, self._mu(), self.engine_.n_pairs)

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
        return float(np.sqrt(self.mu_))

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
        how much points of the same class differ in each direction. Where `SADL` has several kinds
        of experts, half of this metric is therefore the one of `transform`, and the other half the
        inverse covariance of the latest similar pairs. For all other learners it is the one of
        `transform`.

        Returns
        -------
        StaticEmbedding
            With ``transform``, ``components_``, ``get_metric`` and ``pair_distance``; it does not
            change when learning goes on.
        """
        return StaticEmbedding(self.neighbour_components(), self.preprocessor_)

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
        self.points_ = points
        return self


def _judged_of(judged: tuple[ArrayLike, LabelsLike], n_points: int) -> tuple[Ints, Floats]:
    """Rows that were judged before, and labels."""
    rows, y = closure.check_judged(*judged)
    if rows.size and not (rows.min() >= 0 and rows.max() < n_points):
        raise ValueError(f"judged has row numbers outside of 0 to {n_points - 1}, the rows of X")
    return rows, y


def _squares(components: Floats, u: Any) -> Floats:
    """Squared lengths of differences."""
    embedded = np.asarray(u @ components.T)
    found: Floats = np.einsum("ij,ij->i", embedded, embedded)
    return found


class EnsembleLearner(OnlineLearner):
    """A learner of pairs, or several, whose engine is an ensemble."""

    resolved_: EnsembleSettings
    engine_: Ensemble

    def _committee(self) -> list[active.Expert]:
        """All experts that are active, by their trust."""
        if "components" in self.set_by_hand_:
            return super()._committee()
        if "committee" not in self._computed:
            engine = self.engine_
            p, mu = engine.weights, engine.mu
            self._computed["committee"] = [
                active.Expert(engine.metric(j).components(), float(mu[j]), float(p[j]))
                for j in range(len(p))
            ]
        committee: list[active.Expert] = self._computed["committee"]
        return committee

    def _forget(self, u: Points) -> int:
        return replay.forget(self.engine_.recent, u.toarray() if sp.issparse(u) else u)

    def _exploration(self) -> float:
        changed = self.engine_.last_change
        return active.exploration(self.engine_.n_pairs - changed if changed else np.inf)

    def resolve(self, n_features: int) -> EnsembleSettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        raise NotImplementedError

    @property
    @exclusive
    def last_change_(self) -> int:
        """The pair, counted from 1, at which losses were last found to have risen; 0: none."""
        check_is_fitted(self)
        return self.engine_.last_change
