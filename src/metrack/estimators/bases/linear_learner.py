"""Online learners of pairs whose metric is a matrix on the points' features."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases import unlabelled
from metrack.estimators.bases.linear import FrozenMetric, StaticEmbedding
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.bases.online_linear import OnlineLinearEmbedding
from metrack.estimators.bases.threads import exclusive, when_fitted
from metrack.estimators.choosing import active
from metrack.estimators.inputs import (
    PairBatch,
    Points,
    PointsLike,
    check_preprocessor,
    hand_names,
    points_for,
    points_of,
    take_names,
)
from metrack.estimators.inputs.settings import Seed
from metrack.estimators.reading.alignment import aligned, leading, orthogonal


class LinearLearner(OnlineLearner, OnlineLinearEmbedding):
    """Learners of pairs with a matrix; points without judgements say where learning starts."""

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
            if preprocessor is None:
                take_names(self, X)
        seen = self.points_ or unlabelled.no_points(n_features, self.engine_.n_pairs)
        self._forget_read_outs()
        self.points_ = unlabelled.take(seen, points)
        return self

    def takes_points(self, n_features: int) -> bool:
        """Whether `observe_points` can be of use: the covariance of so many features is kept."""
        return n_features <= unlabelled.WIDEST and getattr(self, "n_components", None) is None

    def _chunks(self, batch: PairBatch, y: Floats) -> Iterator[Any]:
        if self.points_ is not None:
            if self.engine_.n_pairs == 0 and not self._is_of_features():
                self.points_ = unlabelled.settled(self.points_)
            self.points_.moments.counts[1] += int(np.sum(y > 0.0))
        start = self._start_of()
        return batch.chunks(y) if start is None else map(start.as_learned, batch.chunks(y))

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

    @when_fitted
    def widen(self, n_features: int) -> Self:
        """Go on with more features; those of all pairs, and of all points, so far were 0."""
        points = self.points_
        super().widen(n_features)
        self.points_ = points and unlabelled.widen(points, n_features)
        return self

    def neighbour_components(self) -> Floats:
        """L of the metric for neighbours and clusters; see `for_neighbours`."""
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

    @when_fitted
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
        name = "aligned for neighbours" if for_neighbours else "aligned"
        return self._kept(name, lambda: self._aligned(for_neighbours))

    def _aligned(self, for_neighbours: bool) -> Floats:
        other = for_neighbours and "components" not in self.set_by_hand_
        rows = self.neighbour_components() if other else self._rows()
        width = self._most_directions(self.n_features_in_)
        return aligned(leading(rows, width), width)

    def transform_aligned(self, points: Points) -> Floats:
        """Embed points for neighbours, by `aligned_components`."""
        return np.asarray(points @ self.aligned_components(for_neighbours=True).T)

    def _directions(self) -> Floats:
        if getattr(self, "n_components", None) is None:
            return self.components_
        return self._kept("directions", self._leading_rows)

    def _leading_rows(self) -> Floats:
        width = self._most_directions(self.n_features_in_)
        rows = leading(self._rows(), width)
        return np.pad(rows, ((0, width - len(rows)), (0, 0)))

    def _rows(self) -> Floats:
        """Components whose rows are orthogonal; those that were learned are."""
        by_hand = "components" in self.set_by_hand_
        return orthogonal(self.components_) if by_hand else self.components_

    def _most_directions(self, n_features: int) -> int:
        return min(getattr(self, "n_components", None) or n_features, n_features)

    @when_fitted
    def change_since(
        self, then: FrozenMetric, X: PointsLike, random_state: Seed = None
    ) -> active.Change:
        """How many judgements the pairs since an earlier moment have changed: when to stop asking.

        As long as the question stays the same, later answers change no more than earlier ones. So
        compare with half as many answers ago: ``ahead`` says how much as many answers again
        will change at most.

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
            The share of judgements that differ, its 95 % interval, and what is ahead. Of all pairs
            that are called alike now or were then: others are nearly all, whatever was learned.

        Examples
        --------
        >>> import numpy as np
        >>> from metrack import MetricTracker
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> rows = np.random.default_rng(1).integers(500, size=(2000, 2))
        >>> y = np.where(np.abs(X[rows[:, 0], 0] - X[rows[:, 1], 0]) < 0.5, 1, -1)
        >>> tracker = MetricTracker().fit(X[rows[:1000]], y[:1000])
        >>> half_way = tracker.get_metric()
        >>> change = tracker.partial_fit(X[rows[1000:]], y[1000:]).change_since(half_way, X, 0)
        >>> change.low <= change.share <= change.high <= change.ahead < 0.3
        True
        """
        points = points_for(self, X)
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

    def _on_features(self) -> Floats:
        return self.components_

    def _committee(self) -> list[active.Expert]:
        """One, whose metric is put out."""
        return [active.Expert(self.components_, self._mu(), 1.0)]
