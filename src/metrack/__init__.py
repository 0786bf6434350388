"""metrack: a distance metric that stays right while the world changes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metrack.estimators.comid import COMID as COMID
    from metrack.estimators.from_labels import FromLabels as FromLabels
    from metrack.estimators.sadl import SADL as SADL

# Imported on first use: numba and scikit-learn take their time.
_HOMES = {
    "COMID": "metrack.estimators.comid",
    "FromLabels": "metrack.estimators.from_labels",
    "SADL": "metrack.estimators.sadl",
}

__all__ = ["COMID", "SADL", "FromLabels"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'metrack' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
