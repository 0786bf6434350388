"""The matrix of an online learner's metric, read out of its state when it is asked for."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.linear import LinearEmbedding
from metrack.estimators.bases.online_embedding import OnlineEmbedding
from metrack.estimators.bases.threads import exclusive, when_fitted
from metrack.estimators.inputs import Points


class OnlineLinearEmbedding(OnlineEmbedding, LinearEmbedding):
    """A matrix that is read out of an engine's state; until learning goes on it is kept."""

    def _metric(self) -> Factored:
        """The metric that stands for all that was learned."""
        return self.engine_.metric(0)

    def _put_out(self) -> Factored:
        return self._metric()

    def _read_metric(self) -> Factored:
        return self._kept("metric", self._put_out)

    @property
    @when_fitted
    def components_(self) -> Floats:
        """L with M = L'L, (rank_, n_features); rows by falling weight."""
        if "components" in self.set_by_hand_:
            components: Floats = self.set_by_hand_["components"]
        else:
            components = self._kept("components", lambda: self._read_metric().components())
        components.flags.writeable = False
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
