"""How learning went, for those who watch: what depends on the judgements alone, and not on batches.

Beside the blocks of `tracking.history` it has, block by block, the loss of plain distance and the
trust in each expert; the changes that were noticed; and the metric just before the last of them.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from metrack.checks import Floats
from metrack.engine.ensemble.bank import Predictions
from metrack.engine.ensemble.calibration import MEMORY, Calibration, calibrate, new_calibration
from metrack.estimators.online import OnlineLearner
from metrack.estimators.weighed import WeighedLearner
from metrack.storage import Arrays
from metrack.tracking.history import FIRST_WIDTH, History, last_change

MOST_CHANGES = 100
PREFIX = "serve."


class Marked(NamedTuple):
    """The metric for neighbours after so many pairs."""

    pairs: int
    components: Floats


class PlainDistance:
    """What plain distance loses on the same pairs: hinge, with a scale and a threshold learned."""

    def __init__(self) -> None:
        self.calibration = new_calibration(1)

    def observe(self, pairs: Floats, y: Floats) -> Floats:
        """Losses on pairs, each before it is learned from."""
        apart = pairs[:, 0] - pairs[:, 1]
        q = np.einsum("ij,ij->i", apart, apart)[:, None]
        said = Predictions(q, np.empty_like(q))
        calibrate(self.calibration, said, y, MEMORY)
        return np.maximum(0.0, 1.0 - y * (said.mu - said.q)[:, 0])

    def pack(self) -> Arrays:
        """Its state."""
        return {f"{PREFIX}plain.{k}": v for k, v in self.calibration._asdict().items()}

    def unpack(self, arrays: Arrays) -> None:
        """The inverse of `pack`."""
        found = {name: arrays[f"{PREFIX}plain.{name}"] for name in Calibration._fields}
        self.calibration = Calibration(**found)


class Course:
    """How it went.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, n_features: int) -> None:
        self.history = History(n_features)
        self.plain = PlainDistance()
        self.plain_total = 0.0  # of the block that is not full yet
        self.plain_losses: Floats = np.empty(0)  # mean of each block
        self.weights: Floats = np.empty((0, 0))  # of experts, at the end of each block
        self.late: tuple[int, float, float] = (0, 0.0, 0.0)  # pairs, and sums of their losses
        self.losses: tuple[float, float] | None = None  # means of the last 256 pairs, plain's too
        self.changes: list[int] = []
        self.marked: Marked | None = None  # at the end of the last block
        self.before: Marked | None = None  # ... and of the last one before the last change

    @property
    def room(self) -> int:
        """Pairs that may be added at once."""
        return FIRST_WIDTH - self.late[0]

    def add(self, pairs: Floats, y: Floats, losses: Floats, learner: OnlineLearner) -> None:
        """Add pairs that were learned, no more than there is room for."""
        plain, width = self.plain.observe(pairs, y), self.history.width
        self.history.add(losses, learner)
        # One after another, as in `History`.
        self.plain_total = _added(self.plain_total, plain)
        n_late, total, plain_total = self.late
        self.late = n_late + len(y), _added(total, losses), _added(plain_total, plain)
        if self.room == 0:
            self._end_of_late(learner)
        if self.history.pairs == 0:
            self._end_of_block(width, learner)

    def _end_of_late(self, learner: OnlineLearner) -> None:
        n_late, total, plain_total = self.late
        self.losses = total / n_late, plain_total / n_late
        self.late = 0, 0.0, 0.0
        changed = last_change(learner) or 0
        if changed > (self.changes[-1] if self.changes else 0):
            self.changes = [*self.changes, changed][-MOST_CHANGES:]
            self.before = self.marked

    def _end_of_block(self, width: int, learner: OnlineLearner) -> None:
        self.plain_losses = np.append(self.plain_losses, self.plain_total / width)
        self.plain_total, now = 0.0, weights_of(learner)
        n_experts = max(len(now), self.weights.shape[1])  # there may be new ones
        rows = self.weights, now[None]
        self.weights = np.concatenate([_padded(each, n_experts) for each in rows])
        self.marked = Marked(learner.n_pairs_seen_, learner.neighbour_components())
        if len(self.plain_losses) > len(self.history.losses):  # two and two became one
            self.plain_losses = 0.5 * (self.plain_losses[::2] + self.plain_losses[1::2])
            self.weights = self.weights[1::2]

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """What JSON can say and the arrays, but for the history's."""
        content = {
            "plain_total": self.plain_total,
            "late": self.late,
            "losses": self.losses,
            "changes": self.changes,
        }
        arrays = {"plain_losses": self.plain_losses, "weights": self.weights}
        for name in ("marked", "before"):
            mark: Marked | None = getattr(self, name)
            content[name] = None if mark is None else mark.pairs
            if mark is not None:
                arrays[name] = mark.components
        return content, self.plain.pack() | {f"{PREFIX}{k}": v for k, v in arrays.items()}

    @classmethod
    def unpack(cls, content: dict[str, Any], history: History, arrays: Arrays) -> Self:
        """The inverse of `pack`."""
        found = cls(0)
        found.history = history
        found.plain.unpack(arrays)
        found.plain_total = content["plain_total"]
        n_late, total, plain_total = content["late"]
        found.late, found.losses = (n_late, total, plain_total), content["losses"]
        found.changes = content["changes"]
        found.plain_losses = arrays[f"{PREFIX}plain_losses"]
        found.weights = arrays[f"{PREFIX}weights"]
        for name in ("marked", "before"):
            if content[name] is not None:
                setattr(found, name, Marked(content[name], arrays[f"{PREFIX}{name}"]))
        return found


def weights_of(learner: OnlineLearner) -> Floats:
    """Trust in each expert; none where there is a single learner."""
    return learner.weights_ if isinstance(learner, WeighedLearner) else np.empty(0)


def _padded(rows: Floats, width: int) -> Floats:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


def _added(total: float, losses: Floats) -> float:
    return float(np.add.accumulate(np.append(total, losses))[-1])
