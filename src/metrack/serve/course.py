"""How learning went, for those who watch: what depends on the judgements alone, and not on batches.

Beside the blocks of `tracking.history` and of `series` it has the trust in each expert; the changes
that were noticed, and what they changed; and the metric just before the last of them.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from metrack.checks import Floats
from metrack.estimators.bases.weighed import WeighedLearner
from metrack.serve.plain_distance import PlainDistance
from metrack.serve.series import Outcome, Series
from metrack.serve.spread import Spread
from metrack.storage import Arrays
from metrack.tracking.history import FIRST_WIDTH, History, last_change

MOST_CHANGES = 100
MOST_MOVED, LEAST_MOVED = 6, 0.01  # features of a change; by how much of the metric
SOON, SELDOM = 1024, 2048  # pairs for which each end of a block is marked; and after which others
HOURS = 48  # of which judgements are counted
PREFIX = "serve."


class Marked(NamedTuple):
    """The metric for neighbours after so many pairs."""

    pairs: int
    components: Floats


class Change(NamedTuple):
    """A change that was noticed.

    Attributes
    ----------
    pair : int
    time : float or None
        When that pair was judged.
    moved : list
        Numbers of the features that count for more or less until the next change, and by how much.
    """

    pair: int
    time: float | None
    moved: list[tuple[int, float]]


class Course:
    """How it went.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, n_features: int) -> None:
        self.history = History(n_features)
        self.series = Series()
        self.plain, self.spread = PlainDistance(), Spread(n_features)
        self.weights: Floats = np.empty((0, 0))  # of experts, at the end of each block
        self.n_late = 0  # pairs since changes were looked for
        self.changes: list[Change] = []
        self.hours: dict[int, int] = {}  # judgements by hours since 1970
        # Of a metric that is a matrix on the features, and has one for neighbours.
        self.marked: Marked | None = None  # at the end of a block, lately
        self.before: Marked | None = None  # ... and at that of one before the last change

    @property
    def room(self) -> int:
        """Pairs that may be added at once."""
        return FIRST_WIDTH - self.n_late

    def count(self, times: Floats) -> None:
        """Count judgements, also those that were unsure."""
        hours, counts = np.unique(times // 3600.0, return_counts=True)
        for hour, n in zip(hours.tolist(), counts.tolist(), strict=True):
            self.hours[int(hour)] = self.hours.get(int(hour), 0) + n
        for old in sorted(self.hours)[:-HOURS]:
            del self.hours[old]

    def add(self, outcome: Outcome, times: Floats, learner: Any) -> None:
        """Add what was said of pairs before they were learned; no more than there is room for."""
        self.series.add(outcome, times)
        start, n = 0, len(times)
        while start < n:
            stop = min(n, start + min(self.room, self.history.room))
            self.history.add(outcome.losses[start:stop], learner)
            self.n_late += stop - start
            if self.room == 0:
                self._look_for_changes(learner)
            if self.history.pairs == 0:
                self._end_of_block(learner)
            start = stop

    def _look_for_changes(self, learner: Any) -> None:
        self.n_late = 0
        changed = last_change(learner) or 0
        if changed > (self.changes[-1].pair if self.changes else 0):
            time = self.series.time_of(learner.n_pairs_seen_ - changed)
            self.changes = [*self.changes, Change(changed, time, [])][-MOST_CHANGES:]
            self.before = self.marked

    def _end_of_block(self, learner: Any) -> None:
        now = weights_of(learner)
        n_experts = max(len(now), self.weights.shape[1])  # there may be new ones
        rows = self.weights, now[None]
        self.weights = np.concatenate([_padded(each, n_experts) for each in rows])
        if hasattr(learner, "neighbour_components") and self._is_time(learner.n_pairs_seen_):
            self.marked = Marked(learner.n_pairs_seen_, learner.neighbour_components())
        if len(self.weights) > len(self.history.losses):  # two and two became one
            self.weights = self.weights[1::2]
        if self.changes:
            found = moved(self.spread.weigh(self.history.shares[-1]), self.shares_before())
            self.changes = [*self.changes[:-1], self.changes[-1]._replace(moved=found)]

    def _is_time(self, pairs: int) -> bool:
        """To mark: at each end at first and after a change, then less often, as it takes long."""
        changed = self.changes[-1].pair if self.changes else 0
        return self.marked is None or pairs - changed < SOON or pairs - self.marked.pairs >= SELDOM

    def shares_before(self) -> Floats:
        """Of features, at the end of the last block before the last change, or of the first."""
        ends, shares = self.history.ends(), self.history.shares
        changed = self.changes[-1].pair if self.changes else 0
        block = max(0, int(np.searchsorted(ends, changed, side="right")) - 1)
        return self.spread.weigh(shares[block])

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """What JSON can say and the arrays, but for the history's."""
        series, own = self.series.pack()
        content = {
            "series": series,
            "n_late": self.n_late,
            "changes": self.changes,
            "hours": list(self.hours.items()),
        }
        arrays = {"weights": self.weights}
        for name in ("marked", "before"):
            mark: Marked | None = getattr(self, name)
            content[name] = None if mark is None else mark.pairs
            if mark is not None:
                arrays[name] = mark.components
        named = {f"{PREFIX}{k}": v for k, v in arrays.items()}
        return content, self.plain.pack() | self.spread.pack() | own | named

    @classmethod
    def unpack(cls, content: dict[str, Any], history: History, arrays: Arrays) -> Self:
        """The inverse of `pack`."""
        found = cls(0)
        found.history = history
        found.series = Series.unpack(content["series"], arrays)
        found.plain.unpack(arrays)
        found.spread.unpack(arrays)
        found.n_late = content["n_late"]
        found.changes = [
            Change(pair, time, [(i, by) for i, by in some])
            for pair, time, some in content["changes"]
        ]
        found.hours = dict(content["hours"])
        found.weights = arrays[f"{PREFIX}weights"]
        for name in ("marked", "before"):
            if content[name] is not None:
                setattr(found, name, Marked(content[name], arrays[f"{PREFIX}{name}"]))
        return found


def moved(now: Floats, before: Floats) -> list[tuple[int, float]]:
    """The features whose shares of distances differ most, and by how much."""
    by = now - before
    order = np.argsort(-np.abs(by), kind="stable")[:MOST_MOVED]
    return [(int(i), float(by[i])) for i in order if abs(by[i]) >= LEAST_MOVED]


def weights_of(learner: Any) -> Floats:
    """Trust in each expert; none where there is a single learner."""
    return learner.weights_ if isinstance(learner, WeighedLearner) else np.empty(0)


def _padded(rows: Floats, width: int) -> Floats:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))
