"""Which kind each learner is of, and how one is made."""

from typing import Any

from metrack.registry import MATRIX_LEARNERS, estimator
from metrack.serve.kinds.kind import Kind
from metrack.serve.kinds.pairs import KernelPairs, Pairs
from metrack.serve.kinds.points import NeighbourClasses, Points
from metrack.serve.kinds.triplets import Triplets

KINDS: dict[str, Kind] = {
    **{name: Pairs() for name in MATRIX_LEARNERS},
    "KernelTracker": KernelPairs(),
    "OASIS": Triplets(),
    "FromLabels": Points(),
    "DriftKNN": NeighbourClasses(),
}
NOT_HERE = {  # settings that are objects
    "preprocessor": "put points to …/items",
    "learner": "it is a MetricTracker",
}


def kind_of(name: str) -> Kind:
    """What a learner learns from."""
    return KINDS[name]


def make(name: str, settings: dict[str, Any], n_features: int) -> Any:
    """A new learner, ready to learn."""
    learner = unstarted(name, settings)
    learner.start(n_features)
    return learner


def unstarted(name: str, settings: dict[str, Any]) -> Any:
    """A new learner that has seen nothing."""
    # What is learned again must draw the same numbers.
    return estimator(name)(**{"random_state": 0, **settings})
