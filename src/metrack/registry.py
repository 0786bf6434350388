"""Where each estimator lives, by its name.

Nothing is imported before it is used: numba and scikit-learn take their time.
"""

from importlib import import_module

ESTIMATORS = {
    "COMID": "metrack.estimators.comid",
    "FromLabels": "metrack.estimators.from_labels",
    "FromTransformer": "metrack.estimators.from_transformer",
    "ITML": "metrack.estimators.itml",
    "LEGO": "metrack.estimators.lego",
    "LMNN": "metrack.estimators.lmnn",
    "MMC": "metrack.estimators.mmc",
    "OASIS": "metrack.estimators.oasis",
    "OnlineITML": "metrack.estimators.online_itml",
    "POLA": "metrack.estimators.pola",
    "SADL": "metrack.estimators.sadl",
    "SlidingWindow": "metrack.estimators.sliding_window",
}
# Those that learn a stream of pairs, for the command line: the default first.
TRACKERS = ("SADL", "COMID", "OnlineITML", "LEGO", "POLA")


def estimator(name: str) -> type:
    """The class of that name."""
    kind: type = getattr(import_module(ESTIMATORS[name]), name)
    return kind
