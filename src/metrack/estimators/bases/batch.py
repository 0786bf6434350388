"""Learners that take all pairs at once."""

from typing import Any, ClassVar, NamedTuple, Self

import scipy.sparse as sp

from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.linear import LinearEmbedding
from metrack.estimators.bases.pair_classifier import PairClassifier, check_calibration
from metrack.estimators.bases.progress import warn_not_converged
from metrack.estimators.inputs import (
    LabelsLike,
    PairBatch,
    TuplesLike,
    check_labels,
    check_preprocessor,
    take_names,
    take_names_of_pairs,
)


class Solution(NamedTuple):
    """What a fit has found; nothing of it is in the learner yet."""

    components: Floats
    n_iter: int
    converged: bool
    more: dict[str, Any]  # further fitted attributes


class BatchLearner(PairClassifier, LinearEmbedding):
    """A metric learned from a set of pairs, and a threshold calibrated on the same pairs.

    A subclass solves for the metric and says what it waits for.
    """

    preprocessor: Any
    max_iter: int
    tol: float
    n_iter_: int
    _goal: ClassVar[str]

    def _solve(self, batch: PairBatch, y: Floats, **options: Any) -> Solution:
        raise NotImplementedError

    def _fit(
        self, pairs: TuplesLike, y: LabelsLike, calibration: dict[str, Any] | None, **options: Any
    ) -> Self:
        preprocessor = check_preprocessor(self.preprocessor)
        batch = PairBatch(pairs, preprocessor, None)
        labels = check_labels(y, len(batch))
        check_calibration(labels, **(calibration or {}))
        solution = self._solve(batch, labels, **options)
        take_names(self, self.preprocessor)
        take_names_of_pairs(self, batch.names)
        self.preprocessor_ = preprocessor
        self.n_features_in_ = batch.n_features
        self.components_ = solution.components
        self.n_iter_ = solution.n_iter
        for name, value in solution.more.items():
            setattr(self, name, value)
        self.calibrate_threshold(pairs, y, **(calibration or {}))
        if not solution.converged:
            name = type(self).__name__
            warn_not_converged(name, self.n_iter_, self.max_iter, self._goal, self.tol, "")
        return self


def dense_differences(batch: PairBatch) -> Floats:
    """Rows x - z of all pairs."""
    u = batch.differences(0, len(batch))
    dense: Floats = u.toarray() if sp.issparse(u) else u
    return dense
