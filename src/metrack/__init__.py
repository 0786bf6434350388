"""metrack: a distance metric that stays right while the world changes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metrack.estimators.comid import COMID as COMID
    from metrack.estimators.from_labels import FromLabels as FromLabels
    from metrack.estimators.from_transformer import FromTransformer as FromTransformer
    from metrack.estimators.itml import ITML as ITML
    from metrack.estimators.lego import LEGO as LEGO
    from metrack.estimators.lmnn import LMNN as LMNN
    from metrack.estimators.mmc import MMC as MMC
    from metrack.estimators.oasis import OASIS as OASIS
    from metrack.estimators.online_itml import OnlineITML as OnlineITML
    from metrack.estimators.persistence import load as load
    from metrack.estimators.pola import POLA as POLA
    from metrack.estimators.sadl import SADL as SADL
    from metrack.estimators.sliding_window import SlidingWindow as SlidingWindow

# Imported on first use: numba and scikit-learn take their time.
_HOMES = {
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
    "load": "metrack.estimators.persistence",
}

__all__ = [
    "COMID",
    "ITML",
    "LEGO",
    "LMNN",
    "MMC",
    "OASIS",
    "POLA",
    "SADL",
    "FromLabels",
    "FromTransformer",
    "OnlineITML",
    "SlidingWindow",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'metrack' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
