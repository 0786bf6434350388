"""What `DriftKNN` tells: which windows, numbers of neighbours and metrics are trusted; errors."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.online.neighbour_votes import NEIGHBOURS, NeighbourVotes
from metrack.engine.online.votes import METRICS


class NeighbourReport(NamedTuple):
    """What `DriftKNN.drift_report` tells.

    Attributes
    ----------
    windows, neighbours, metrics : dict
        How much each window, each number of neighbours and each metric is trusted now. Windows are
        in points; "all" has also those of the reserve.
    points_since_change : int
        Points since losses of the tracked metric were last found to have risen, or since the start.
    features : array
        Names, or numbers, of all features, those whose share of the tracked metric has changed most
        first.
    change : array of float
        By how much the share of each of these has grown (or, negative, shrunk).
    errors : dict
        Of each class among the points remembered, the share that was predicted wrongly.
    """

    windows: dict[int | str, float]
    neighbours: dict[int, float]
    metrics: dict[str, float]
    points_since_change: int
    features: NDArray[Any]
    change: Floats
    errors: dict[Any, float]


class TrustHistory(NamedTuple):
    """What `DriftKNN.trust_history` tells, stretch by stretch of the stream.

    Attributes
    ----------
    stops : array of int
        Points seen at the end of each stretch.
    windows, neighbours, metrics : dict
        Mean trust in each, an array of as many numbers.
    errors : array of float
        Share of points predicted wrongly before they were learned.
    changes : array of int
        How often these losses were found to have risen.
    """

    stops: Ints
    windows: dict[int | str, Floats]
    neighbours: dict[int, Floats]
    metrics: dict[str, Floats]
    errors: Floats
    changes: Ints


def trusted_by(votes: NeighbourVotes, weights: Floats) -> tuple[dict[Any, Any], ...]:
    """Trust in each window, number of neighbours and metric: sums of the experts' weights.

    Metrics, windows and k are the last three axes.
    """
    windows = [*votes.table.windows.tolist(), "all"]
    return (
        dict(zip(windows, np.moveaxis(weights.sum(axis=(-3, -1)), -1, 0), strict=True)),
        dict(zip(NEIGHBOURS, np.moveaxis(weights.sum(axis=(-3, -2)), -1, 0), strict=True)),
        dict(zip(METRICS, np.moveaxis(weights.sum(axis=(-2, -1)), -1, 0), strict=True)),
    )


def plain(trust: dict[Any, Any]) -> dict[Any, float]:
    """Single numbers, of one moment."""
    return {name: float(each) for name, each in trust.items()}
