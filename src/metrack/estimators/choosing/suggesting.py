"""Which pairs to judge next; see `active` for how they are chosen."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.linear import squared_distances
from metrack.estimators.bases.online_embedding import OnlineEmbedding
from metrack.estimators.bases.pair_classifier import PairClassifier
from metrack.estimators.bases.threads import exclusive, when_fitted
from metrack.estimators.choosing import active
from metrack.estimators.inputs import (
    PairBatch,
    Points,
    PointsLike,
    TuplesLike,
    check_preprocessor,
    points_for,
    points_of,
)
from metrack.estimators.inputs.settings import Seed, whole


class Asking(OnlineEmbedding, PairClassifier):
    """Questions to those who judge, of every online learner of pairs."""

    @exclusive
    def suggest_pairs(
        self,
        X: PointsLike,
        n_pairs: int,
        random_state: Seed = None,
        return_weights: bool = False,
    ) -> Any:
        """Choose pairs of points that are worth judging next; nothing is learned or changed.

        Pairs are drawn by `informativeness`, so that some of them are near the threshold, some are
        those on which experts disagree, and a share is random: a tenth, and up to half after a
        change was noticed, when the metric cannot be relied on. A point is asked about once, as
        long as there are enough. Candidates are the neighbours of some points among some others,
        and random pairs: the work does not grow with the number of points.

        Before the first judgement, pairs are chosen by what `observe_points` has seen, else by
        plain distance. `metrack.ActiveTracker` asks by this, and keeps what was judged.

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

        Returns
        -------
        array (n_pairs, 2)
            Rows of X, the most informative pair first; and, if asked for, weights (n_pairs,).

        Examples
        --------
        >>> import numpy as np
        >>> from metrack import MetricTracker
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> tracker = MetricTracker()
        >>> for i in range(20):
        ...     rows = tracker.suggest_pairs(X, 10, random_state=i)
        ...     alike = np.abs(X[rows[:, 0], 0] - X[rows[:, 1], 0]) < 0.5
        ...     tracker = tracker.partial_fit(X[rows], np.where(alike, 1, -1))
        >>> tracker.top_features(n=1)[0][0]
        0
        """
        if started := hasattr(self, "engine_"):
            points = points_for(self, X)
        else:
            points = points_of(X, check_preprocessor(self.preprocessor), None)
        n_points = points.shape[0]
        if whole("n_pairs", n_pairs) > n_points * (n_points - 1) // 2:
            raise ValueError(
                f"n_pairs={n_pairs}: {n_points} points have {n_points * (n_points - 1) // 2} pairs;"
                " ask for fewer, or pass more points"
            )
        has_learned = started and self.engine_.n_pairs > 0
        known = has_learned or (started and self.points_ is not None)
        rng = check_random_state(random_state)
        explored = self._exploration() if has_learned else active.exploration(np.inf)
        found = active.suggest(
            self._as_seen(points) if known else points,
            n_pairs,
            self._on_features() if known else None,
            self._committee() if has_learned else (),
            explored,
            rng,
        )
        return (found.rows, found.weights) if return_weights else found.rows

    @when_fitted
    def informativeness(self, pairs: TuplesLike) -> Floats:
        """How much there is to learn from a judgement of each pair, from 0 to 1.

        It is 1 where the learner's experts, weighed half by trust, are evenly divided or all near
        their thresholds, and 0 where they are sure of the same thing.

        Parameters
        ----------
        pairs : array (n_pairs, 2, n_features), or row numbers (n_pairs, 2) with a preprocessor
        """
        batch = PairBatch(pairs, self.preprocessor_, self.n_features_in_)
        committee = self._committee()
        scores = [
            active.doubt([squared_distances(each.components, u) for each in committee], committee)
            for u in self._pieces(batch)
        ]
        return np.concatenate(scores)

    def _as_seen(self, points: Points) -> Any:
        """What the metric is one of: the points, or features of them."""
        return points

    def _on_features(self) -> Floats:
        """L of the metric on these."""
        raise NotImplementedError

    def _pieces(self, batch: PairBatch) -> Iterator[Any]:
        """Differences of these, piece by piece."""
        return batch.pieces()

    def _committee(self) -> list[active.Expert]:
        """Those who judge."""
        raise NotImplementedError

    def _exploration(self) -> float:
        return active.exploration(np.inf)
