"""Learners that take pairs one after another."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.online.targets import DenseMetric
from metrack.estimators.base import Embedding, MahalanobisLearner, check_calibration
from metrack.estimators.embedding import leading, orthogonal, steady
from metrack.estimators.inputs import PairBatch, check_labels, check_preprocessor
from metrack.estimators.settings import at_most_features
from metrack.estimators.threads import exclusive


class OnlineEmbedding(Embedding):
    """A metric that is read out of a learner's state when it is asked for.

    A subclass makes that state. Fitted are ``bank_`` (all that is learned), ``rng_`` and
    ``preprocessor_``.
    """

    preprocessor: Any
    random_state: Any
    bank_: Any

    def _make_bank(self, n_features: int) -> Any:
        raise NotImplementedError

    def _start(self, n_features: int, preprocessor: Any) -> None:
        # The two that may refuse a setting come before anything changes.
        rng, bank = check_random_state(self.random_state), self._make_bank(n_features)
        self._go_on(bank, rng, n_features, preprocessor)

    def _go_on(self, bank: Any, rng: Any, n_features: int, preprocessor: Any) -> None:
        """Start from a bank, new or saved."""
        self.bank_, self.rng_ = bank, rng
        self.preprocessor_ = preprocessor
        self.n_features_in_ = n_features
        self._read: dict[str, Any] = {}

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
        from metrack.estimators.persistence import save

        if "by_hand" in self.__dict__.get("_read", {}):
            raise ValueError(
                "components_ was set by hand, and a state holds what was learned: keep that matrix "
                "yourself, and save before setting it or after learning more"
            )
        save(self, path)

    def _metric(self) -> Factored:
        """The metric that stands for the bank."""
        metric: Factored = self.bank_.metric(0)
        return metric

    @property
    @exclusive
    def components_(self) -> Floats:
        """L with M = L'L, (rank_, n_features); rows by falling weight."""
        check_is_fitted(self)
        if "components" not in self._read:
            self._read["components"] = self._metric().components()
            self._read["components"].flags.writeable = False  # read again until learning goes on
        components: Floats = self._read["components"]
        return components

    @components_.setter
    def components_(self, value: Any) -> None:
        """Use another L in all that is read out, until learning goes on."""
        check_is_fitted(self)
        given = np.array(value, dtype=np.float64, ndmin=2)
        if given.shape[1:] != (self.n_features_in_,) or not np.isfinite(given).all():
            raise ValueError(
                f"components_ must be finite numbers of shape (rank, {self.n_features_in_}); got "
                f"shape {given.shape}"
            )
        given.flags.writeable = False
        for name in ("steady", "directions"):
            self._read.pop(name, None)
        self._read |= {"components": given, "by_hand": True}

    @property
    def rank_(self) -> int:
        """Rank of the metric."""
        return len(self.components_)


class OnlineLearner(OnlineEmbedding, MahalanobisLearner):
    """Learners of pairs behind scikit-learn's and metric-learn's interface."""

    bank_: Ensemble | DenseMetric

    @exclusive
    def fit(self, pairs: Any, y: Any, calibration_params: dict[str, Any] | None = None) -> Self:
        """Forget everything, then learn the pairs in order.

        Parameters
        ----------
        pairs : array (n_pairs, 2, n_features), or row numbers (n_pairs, 2) with a preprocessor
        y : array (n_pairs,)
            +1 alike, -1 not alike.
        calibration_params : dict, optional
            Arguments for `calibrate_threshold` on these pairs; without it the threshold is the one
            learned along.
        """
        batch, labels, preprocessor = self._check(pairs, y, None)
        if calibration_params is not None:
            check_calibration(labels, **calibration_params)
        self._start(batch.n_features, preprocessor)
        self._observe(batch, labels)
        if calibration_params is not None:
            self.calibrate_threshold(pairs, y, **calibration_params)
        return self

    def partial_fit(self, pairs: Any, y: Any, classes: Any = None) -> Self:
        """Go on learning: `observe`, returning self. ``classes`` is for scikit-learn's sake."""
        self.observe(pairs, y)
        return self

    @exclusive
    def observe(self, pairs: Any, y: Any) -> Floats:
        """Test, then train: the loss suffered on each pair before it is learned from.

        Calls of any sizes give the same state, bit for bit, as one call with all pairs. Threads
        may share a learner: their calls are learned one after another.
        """
        fitted = hasattr(self, "bank_")
        known = self.n_features_in_ if fitted else None
        batch, labels, preprocessor = self._check(pairs, y, known)
        if not fitted:
            self._start(batch.n_features, preprocessor)
        return self._observe(batch, labels)

    def learn_one(self, x: Any, z: Any, y: int) -> Self:
        """Learn a single pair: two points, or two row numbers with a preprocessor."""
        self.observe([[x, z]], [y])
        return self

    @exclusive
    def predict(self, pairs: Any) -> Ints:
        """+1 (alike) where the distance is at most ``threshold_``, else -1."""
        return super().predict(pairs)

    def _check(self, pairs: Any, y: Any, n_features: int | None) -> tuple[PairBatch, Floats, Any]:
        if n_features is None:
            preprocessor = check_preprocessor(self.preprocessor)
        else:
            preprocessor = self.preprocessor_
        batch = PairBatch(pairs, preprocessor, n_features)
        if n_features is None:  # a stream that may grow wider comes another way
            at_most_features(getattr(self, "n_components", None), batch.n_features)
        return batch, check_labels(y, len(batch)), preprocessor

    @exclusive
    def _observe(self, batch: PairBatch, y: Floats) -> Floats:
        self._read = {}
        losses = [self.bank_.observe(pairs, self._draws(len(pairs.y))) for pairs in batch.chunks(y)]
        return np.concatenate(losses)

    def _draws(self, n_pairs: int) -> Floats:
        return np.empty(0)

    def _mu(self) -> float:
        return float(self.bank_.mu[0])

    @property
    def n_pairs_seen_(self) -> int:
        """How many pairs have been learned from."""
        check_is_fitted(self)
        return self.bank_.n_pairs

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
        return float(self._read["threshold"] if "threshold" in self._read else np.sqrt(self.mu_))

    @exclusive
    def _set_threshold(self, value: float) -> None:
        self._read["threshold"] = value

    @exclusive
    def _steady_components(self) -> Floats:
        """L with M = L'L that moves no more than M; as many rows as n_components asks for."""
        if "steady" not in self._read:
            width = self._most_directions(self.n_features_in_)
            self._read["steady"] = steady(leading(self._rows(), width), width)
        components: Floats = self._read["steady"]
        return components

    def _directions(self) -> Floats:
        if getattr(self, "n_components", None) is None:
            return self.components_
        if "directions" not in self._read:
            width = self._most_directions(self.n_features_in_)
            rows = leading(self._rows(), width)
            self._read["directions"] = np.pad(rows, ((0, width - len(rows)), (0, 0)))
        directions: Floats = self._read["directions"]
        return directions

    def _rows(self) -> Floats:
        """Components whose rows are orthogonal; those that were learned are."""
        return orthogonal(self.components_) if "by_hand" in self._read else self.components_

    def _most_directions(self, n_features: int) -> int:
        return min(getattr(self, "n_components", None) or n_features, n_features)

    @exclusive
    def _widen(self, n_features: int) -> None:
        """Go on with more features; those of all pairs so far were 0.

        What "auto" stands for is found anew: the learner is one of the new width.
        """
        new = self._make_bank(n_features)
        new.continue_from(self.bank_)
        self.bank_ = new
        self.n_features_in_ = n_features
        self._read = {}
