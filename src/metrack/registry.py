"""The estimators by name, and where each lives. To read this imports none of them."""

from importlib import import_module
from typing import Any

# Those that learn a stream of pairs come first, in the order in which they are listed to users.
PAIR_LEARNERS = {
    "MetricTracker": "metrack.estimators.metric_tracker",
    "KernelTracker": "metrack.estimators.kernel_tracker",
    "SADL": "metrack.estimators.sadl",
    "COMID": "metrack.estimators.comid",
    "OnlineITML": "metrack.estimators.online_itml",
    "LEGO": "metrack.estimators.lego",
    "POLA": "metrack.estimators.pola",
}
MATRIX_LEARNERS = {name: at for name, at in PAIR_LEARNERS.items() if name != "KernelTracker"}
ONLINE = PAIR_LEARNERS | {"OASIS": "metrack.estimators.oasis"}
SAVED = ONLINE | {  # what a state may hold
    "FromLabels": "metrack.estimators.from_labels",
    "DriftKNN": "metrack.estimators.drift_knn",
}
ESTIMATORS = SAVED | {
    "FromTransformer": "metrack.estimators.from_transformer",
    "ITML": "metrack.estimators.itml",
    "LMNN": "metrack.estimators.lmnn",
    "MMC": "metrack.estimators.mmc",
    "SlidingWindow": "metrack.estimators.sliding_window",
}


def estimator(name: str) -> Any:
    """The class of a known estimator."""
    return getattr(import_module(ESTIMATORS[name]), name)
