"""metrack: a distance metric that stays right while the world changes."""

from importlib import import_module
from typing import TYPE_CHECKING

from metrack import registry

if TYPE_CHECKING:
    from metrack.client import Client as Client
    from metrack.estimators.active_tracker import ActiveTracker as ActiveTracker
    from metrack.estimators.choosing.closure import implied_pairs as implied_pairs
    from metrack.estimators.comid import COMID as COMID
    from metrack.estimators.differences import Differences as Differences
    from metrack.estimators.drift_knn import DriftKNN as DriftKNN
    from metrack.estimators.from_labels import FromLabels as FromLabels
    from metrack.estimators.from_transformer import FromTransformer as FromTransformer
    from metrack.estimators.itml import ITML as ITML
    from metrack.estimators.kernel_tracker import KernelTracker as KernelTracker
    from metrack.estimators.lego import LEGO as LEGO
    from metrack.estimators.lmnn import LMNN as LMNN
    from metrack.estimators.metric_tracker import MetricTracker as MetricTracker
    from metrack.estimators.mmc import MMC as MMC
    from metrack.estimators.oasis import OASIS as OASIS
    from metrack.estimators.online_itml import OnlineITML as OnlineITML
    from metrack.estimators.pola import POLA as POLA
    from metrack.estimators.sadl import SADL as SADL
    from metrack.estimators.sliding_window import SlidingWindow as SlidingWindow
    from metrack.estimators.states.persistence import load as load

__all__ = [
    "COMID",
    "ITML",
    "LEGO",
    "LMNN",
    "MMC",
    "OASIS",
    "POLA",
    "SADL",
    "ActiveTracker",
    "Client",
    "Differences",
    "DriftKNN",
    "FromLabels",
    "FromTransformer",
    "KernelTracker",
    "MetricTracker",
    "OnlineITML",
    "SlidingWindow",
    "implied_pairs",
    "load",
]


# What is no estimator of one learner, and where it is; imported when it is first asked for.
_OTHERS = {
    "ActiveTracker": "metrack.estimators.active_tracker",
    "Client": "metrack.client",
    "Differences": "metrack.estimators.differences",
    "implied_pairs": "metrack.estimators.choosing.closure",
    "load": "metrack.estimators.states.persistence",
}


def __getattr__(name: str) -> object:
    if name in registry.ESTIMATORS:
        return registry.estimator(name)
    if name in _OTHERS:
        return getattr(import_module(_OTHERS[name]), name)
    raise AttributeError(f"module 'metrack' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
