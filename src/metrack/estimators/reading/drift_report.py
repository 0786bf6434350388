"""What a tracker tells of drift: how fast, since when, and in which features."""

import html
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.estimators.bases.linear import FrozenMetric, LinearEmbedding
from metrack.estimators.bases.threads import when_fitted
from metrack.estimators.inputs.settings import whole
from metrack.estimators.reading import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DriftReport(NamedTuple):
    """What `MetricTracker.drift_report` tells.

    Attributes
    ----------
    effective_window : float
        How many of the most recent pairs the metric rests on: the trusted interval length.
    pairs_since_change : int
        Pairs since losses were last found to have risen, or since the start.
    features : array
        All features by name, or by number where they have none; those whose share of the metric
        has changed most first.
    change : array of float
        By how much each feature's share of the metric's trace has grown (or, negative, shrunk), in
        the order that features have in points.
    """

    effective_window: float
    pairs_since_change: int
    features: NDArray[Any]
    change: Floats

    def most_changed(self, n: int = 10) -> list[tuple[Any, float]]:
        """The features that changed most, and by how much."""
        changes = self.change[by_size(self.change)]
        return list(zip(self.features[:n].tolist(), changes[:n].tolist(), strict=True))

    def _repr_html_(self) -> str:
        """As notebooks show it: the features that changed most."""
        rows = "".join(
            f"<tr><th>{html.escape(str(name))}</th><td>{change:+.1%}</td></tr>"
            for name, change in self.most_changed()
        )
        left_out = len(self.features) - len(self.features[:10])
        more = f"<p>and {left_out:,} more</p>" if left_out else ""
        return (
            f"<p>Latest pairs that the metric rests on: {self.effective_window:,.0f}. "
            f"Pairs since the last change, or the start: {self.pairs_since_change:,}.</p>"
            f"<table><thead><tr><th>feature</th><th>share of the metric</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>{more}"
        )


class ReportsDrift(LinearEmbedding):
    """A learner that tells how fast things drift, and what has changed."""

    effective_window_: float
    n_pairs_seen_: int
    last_change_: int

    @when_fitted
    def drift_report(self, since: FrozenMetric | None = None, names: Any = None) -> DriftReport:
        """How fast things drift, when they last changed, and what changed.

        Parameters
        ----------
        since : FrozenMetric, optional
            The metric of an earlier moment, as `get_metric` gave it then; None: the metric without
            any preference, in which all features have the same share.
        names : sequence (n_features,), optional
            Of the features; by default those of the DataFrame that the points came in, else
            numbers.
        """
        # Of the features in the metric's trace, from those of before, or from equal ones.
        before = 1.0 / self.n_features_in_ if since is None else _shares(since.components)
        change = _shares(self.components_) - before
        return DriftReport(
            effective_window=self.effective_window_,
            pairs_since_change=self.n_pairs_seen_ - self.last_change_,
            features=self._named_features(names)[by_size(change)],
            change=change,
        )

    def plot_drift(
        self,
        ax: "Axes | None" = None,
        since: FrozenMetric | None = None,
        names: Any = None,
        n: int = 10,
    ) -> "Axes":
        """Draw which features' shares of the metric have changed most; see `drift_report`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Drawn on a new figure without.
        since, names : as in `drift_report`
        n : int
            How many features.
        """
        report = self.drift_report(since, names)
        return plotting.drift(
            plotting.axes(ax), report.most_changed(whole("n", n)), report.effective_window
        )


def by_size(change: Floats) -> Ints:
    """Places of the changes, the largest first."""
    return np.argsort(-np.abs(change), kind="stable")


def _shares(components: Floats) -> Floats:
    """Each feature's share of the metric's trace."""
    traces: Floats = np.einsum("ij,ij->j", components, components)
    total = traces.sum()
    return traces / total if total > 0.0 else traces
