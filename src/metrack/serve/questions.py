"""Which pairs to judge next, and when it is enough: `metrack.ActiveTracker` beside the log.

What is asked follows from the log and the items, and is kept in memory alone. A tracker of its own
reads the log as the metric does; judges' answers are taught to it, with all that follows from them.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from metrack.checks import Floats
from metrack.estimators.active_tracker import ActiveTracker, Progress
from metrack.estimators.persistence import pack, unpack
from metrack.serve import log
from metrack.serve.items import Items
from metrack.serve.kinds.table import unstarted
from metrack.serve.learning import Config, Learning
from metrack.serve.log import Told
from metrack.serve.metric import Metric
from metrack.serve.teaching import Teaching

KEPT = 8  # metrics whose questions are kept; each has some copies of its tracker
NUMBERS = 4_000_000  # of points that are read from a log at once
TAUGHT = 400  # answers of those; earlier ones are known, and teach nothing but themselves
AT_A_TIME = 10  # answers that are taught at once, or a quarter of those before
SHOWN = 100_000  # items that a new tracker is shown, at most

Pair = tuple[str, str]


class Questions:
    """What the judges of a metric are asked.

    Parameters
    ----------
    config : Config
    items : Items
        Two at least.
    learned : Learning, optional
        Where the log is too long to begin with, or was cut off: what it has come to.
    """

    def __init__(self, config: Config, items: Items, learned: Learning | None = None) -> None:
        self.items, self.n_features = items, config.n_features
        self.sequence = 0 if learned is None else learned.sequence  # of the last that is known
        tracker = _new(config, len(items)) if learned is None else _copied(learned.learner)
        self.asker = ActiveTracker(tracker, items.points)
        self.lock = threading.Lock()  # held by whoever uses what there is
        self._open: dict[frozenset[str], Pair] = {}  # asked, and not answered so far

    def recall(self, told: Sequence[Told]) -> None:
        """Know answers that the tracker has learned."""
        answers = [each for each in told if self._is_answer(each)]
        if answers:
            self.asker.recall(*self._rows(answers))

    def follow(self, told: Sequence[Told]) -> None:
        """Learn what the log has more, in its order."""
        answers = [i for i, each in enumerate(told) if self._is_answer(each)]
        taught_from = answers[-TAUGHT] if len(answers) > TAUGHT else 0
        self._observe(told[:taught_from])
        self.recall(told[:taught_from])
        some: list[Told] = []
        for each in told[taught_from:]:
            if some and (self._is_answer(each) != self._is_answer(some[0]) or each.corrects):
                self._learn(some)
                some = []
            some.append(each)
        self._learn(some)
        self.sequence = told[-1].sequence

    def _is_answer(self, told: Told) -> bool:
        """Whether a judge has said it of items."""
        known = self.items.rows
        return told.judge is not None and told.a in known and told.b in known and told.a != told.b

    def _learn(self, some: Sequence[Told]) -> None:
        """All answers, of which only the first may be a correction, or none of them is one."""
        if some and some[0].corrects:
            self.asker.tracker.forget(self._points(some[:1]))
        if some and self._is_answer(some[0]):
            start = 0
            while start < len(some):
                stop = start + max(AT_A_TIME, self.asker.n_answers // 4)
                self.asker.teach(*self._rows(some[start:stop]))
                start = stop
        else:
            self._observe(some)

    def _observe(self, told: Sequence[Told]) -> None:
        sure = [each for each in told if each.y]
        if sure:
            self.asker.tracker.observe(self._points(sure), [each.y for each in sure])

    def _points(self, told: Sequence[Told]) -> Floats:
        joined = b"".join(each.points for each in told)
        return np.frombuffer(joined).reshape(-1, 2, self.n_features)

    def _rows(self, answers: Sequence[Told]) -> tuple[Any, list[int | None]]:
        """Rows of items, and what was said of them; these are open no more."""
        pairs = [(str(each.a), str(each.b)) for each in answers]
        for pair in pairs:
            self._open.pop(frozenset(pair), None)
        return np.array([self.items.find(pair) for pair in pairs]), [e.y or None for e in answers]

    def next(self, n_pairs: int, done: set[frozenset[str]]) -> list[Pair]:
        """Pairs that are not done: new ones, then those that were asked and never answered."""
        n_items, ids = len(self.items), self.items.ids
        rows = self.asker.query(min(n_pairs, n_items * (n_items - 1) // 2))
        new = {frozenset(pair): pair for pair in [(ids[i], ids[j]) for i, j in rows.tolist()]}
        both = {key: pair for key, pair in (new | self._open).items() if key not in done}
        self._open |= new
        return list(both.values())[:n_pairs]

    def progress(self) -> Progress:
        """How far judging has come, and whether to stop."""
        return self.asker.progress()


class AllQuestions:
    """Those of the metrics that were judged lately.

    Parameters
    ----------
    teaching : Teaching
        That knows what metrics have learned.
    """

    def __init__(self, teaching: Teaching) -> None:
        self.teaching = teaching
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Questions] = OrderedDict()

    def of(self, metric: Metric, items: Items) -> Questions:
        """Those of a metric, up to its log; it may take seconds the first time."""
        most = max(TAUGHT, NUMBERS // (2 * metric.config.n_features))
        with self._lock:
            found = self._kept.get(metric.number)
            if found is None or found.items is not items or metric.sequence - found.sequence > most:
                found = self._begun(metric, items, most)
            self._kept[metric.number] = found
            self._kept.move_to_end(metric.number)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        with found.lock:
            while told := self._told(metric, found.sequence, most):
                found.follow(told)
        return found

    def _told(self, metric: Metric, after: int, most: int) -> list[Told]:
        with self.teaching.database.reading() as connection:
            return log.told(connection, metric.number, after, most)

    def _begun(self, metric: Metric, items: Items, most: int) -> Questions:
        if metric.cut == 0 and metric.sequence <= most:
            return Questions(metric.config, items)
        with metric.lock:
            found = Questions(metric.config, items, self.teaching.readable(metric))
        earlier = self._told(metric, found.sequence - most, most)
        found.recall([each for each in earlier if each.sequence <= found.sequence])
        return found


def _new(config: Config, n_items: int) -> Any:
    """One that has seen nothing, and will be shown the items; or has started without them."""
    if n_items > SHOWN:
        return config.make()
    return unstarted(config.estimator, config.settings)


def _copied(learner: Any) -> Any:
    return unpack(pack(learner), None, "the metric")
