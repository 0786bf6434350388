"""How a tracked stream went: losses, what the metric rested on, and on which features."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from metrack.checks import Floats
from metrack.engine.numerics.records import MOST, Number, floats
from metrack.estimators.bases.course import Course
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.bases.weighed import WeighedLearner
from metrack.estimators.kernel_tracker import KernelTracker
from metrack.storage import Arrays

FIRST_WIDTH = 256  # pairs of a block at the start
MOST_BLOCKS = 64
PREFIX = "history."


class History(Course):
    """Losses, effective windows and features' shares of the metric over time.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, n_features: int) -> None:
        super().__init__(1 + n_features, FIRST_WIDTH, MOST_BLOCKS)

    @property
    def windows(self) -> Floats:
        """Effective ones, at the end of each block."""
        return self.values[:, 0]

    @property
    def shares(self) -> Floats:
        """Of the metric's trace, likewise."""
        return self.values[:, 1:]

    def add(self, losses: Floats, learner: OnlineLearner) -> None:
        """Add losses, no more than there is room for."""
        self.take(losses, lambda: _standing(learner))

    def latest(self) -> float:
        """Mean loss of the last block, or of what there is of the first."""
        if len(self.losses):
            return float(self.losses[-1])
        return self.total / self.pairs if self.pairs else float("nan")

    def curves(self, learner: OnlineLearner) -> tuple[Floats, Floats, Floats]:
        """Ends, losses and effective windows of all blocks, the last as far as it has come."""
        ends, losses, values = self.so_far(lambda: _standing(learner))
        return ends, losses, values[:, 0]

    def pack(self) -> tuple[dict[str, float], Arrays]:
        """What JSON can say, and the arrays."""
        plain = {"width": self.width, "pairs": self.pairs, "total": self.total}
        return plain, {
            f"{PREFIX}losses": self.losses,
            f"{PREFIX}memory": self.windows,
            f"{PREFIX}shares": self.shares,
        }

    @classmethod
    def unpack(cls, plain: Mapping[str, Any], arrays: Arrays) -> "History":
        """The inverse of `pack`."""
        found = cls(0)
        width, pairs, total = plain["width"], plain["pairs"], plain["total"]
        found.width = Number(FIRST_WIDTH, MOST, whole=True).checked(width, "history.width", {})
        found.pairs = Number(0, width - 1, whole=True).checked(pairs, "history.pairs", {})
        found.total = Number().checked(total, "history.total", {})
        found.losses = arrays[f"{PREFIX}losses"]
        found.values = np.column_stack([arrays[f"{PREFIX}memory"], arrays[f"{PREFIX}shares"]])
        return found

    def check(self, n_pairs: int, n_features: int) -> None:
        """Refuse what a learner that has seen so many pairs cannot have left."""
        sizes = {"n": n_features}
        floats("blocks", least=0.0).checked(self.losses, "history.losses", sizes)
        known = np.nan_to_num(self.windows, nan=1.0)  # learners with a single rate have none
        floats("blocks", least=1.0).checked(known, "history.memory", sizes)
        floats("blocks", "n", least=0.0, most=2.0).checked(self.shares, "history.shares", sizes)
        told = self.width * len(self.losses) + self.pairs
        if len(self.losses) >= MOST_BLOCKS or told > n_pairs:
            raise ValueError(f"a history of {told:,} pairs, of which {n_pairs:,} were learned")


def _standing(learner: OnlineLearner) -> Floats:
    """What is kept of a learner."""
    return np.append(effective_window(learner), shares_of(learner))


def effective_window(learner: OnlineLearner) -> float:
    """How many of the last pairs a learner rests on; NaN for one that has a single rate."""
    if not isinstance(learner, WeighedLearner):
        return float("nan")
    return learner.effective_window_


def last_change(learner: OnlineLearner) -> int | None:
    """Pair at which a learner noticed a change, 0 before the first; None if it looks for none."""
    changed: int | None = getattr(learner, "last_change_", None)
    return changed


def shares_of(learner: OnlineLearner) -> Floats:
    """Each feature's share of the metric's trace; 0 where the metric is no matrix on features."""
    if isinstance(learner, KernelTracker):
        return np.zeros(learner.n_features_in_)
    traces: Floats = np.einsum("ij,ij->j", learner.components_, learner.components_)
    total = traces.sum()
    return traces / total if total > 0.0 else traces
