"""What settings come to: every choice that they leave open, made once.

From an estimator's settings and the number of features follows one frozen record, by names and
numbers, in which nothing is "auto". The engine's objects are built from it alone; it is saved with
what was learned, shown by ``metrack inspect``, and is the ``resolved_`` of a fitted estimator.
"""

from collections.abc import Mapping
from typing import Any

from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.online.oasis import DenseSimilarity
from metrack.engine.online.targets import DenseMetric
from metrack.estimators.resolved.dense import SimilaritySettings, TargetSettings
from metrack.estimators.resolved.fields import RecordOf
from metrack.estimators.resolved.kernel import KernelSettings
from metrack.estimators.resolved.margin import EnsembleSettings
from metrack.estimators.resolved.tracker import TrackerSettings

Resolved = EnsembleSettings | TrackerSettings | KernelSettings | TargetSettings | SimilaritySettings
Engine = Ensemble | DenseMetric | DenseSimilarity

# By their kinds in a file.
RECORDS = RecordOf(
    {
        "ensemble": EnsembleSettings,
        "tracker": TrackerSettings,
        "kernel": KernelSettings,
        "target": TargetSettings,
        "similarity": SimilaritySettings,
    }
)


def to_plain(resolved: Resolved) -> dict[str, Any]:
    """What JSON can say of it."""
    return RECORDS.plain(resolved)


def from_plain(plain: Mapping[str, Any]) -> Resolved:
    """The inverse of `to_plain`; refuses what cannot be built."""
    found: Resolved = RECORDS.checked(plain, "resolved", {})
    found.check()
    return found


def rows(resolved: Resolved) -> list[tuple[str, str]]:
    """Every choice and its value as text, for a table."""
    found = to_plain(resolved)
    own = found.pop("learners", {})
    if isinstance(own, dict):
        found |= own
    else:
        found |= {f"learner {i + 1}": _row_text(row) for i, row in enumerate(own)}
    return [(name, _text(value)) for name, value in found.items() if name != "kind"]


def _row_text(row: Mapping[str, Any]) -> str:
    """A learner, by the numbers that its kind uses."""
    used = [f"{name} {value:g}" for name, value in row.items() if name not in ("kind", "view")]
    return ", ".join([f"{row['kind']}, {row['view']}", *used])


def _text(value: Any) -> str:
    return ", ".join(f"{each:.4g}" for each in value) if isinstance(value, list) else str(value)
