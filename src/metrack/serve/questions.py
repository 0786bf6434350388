"""Which pairs to judge next, and when it is enough: `metrack.ActiveTracker` beside the log.

What is asked follows from the log and the items, and is kept in memory alone. A tracker of its own
reads the log as the metric does; judges' answers are taught to it, with all that follows from them.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from metrack.checks import Floats
from metrack.estimators.active_tracker import ActiveTracker, Progress
from metrack.estimators.states.persistence import pack, unpack
from metrack.serve import log
from metrack.serve.items import Items
from metrack.serve.kinds.table import unstarted
from metrack.serve.learning import Config, Learning
from metrack.serve.log import Told
from metrack.serve.metric import Metric
from metrack.serve.teaching import Teaching

KEPT = 8  # metrics whose questions are kept; each has some copies of its tracker
NUMBERS = 4_000_000  # of points that are read from a log at once
TAUGHT = 400  # answers of those; of earlier ones, most teach nothing but themselves
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
        self._judges: dict[frozenset[str], str] = {}  # the first who has answered

    def recall(self, told: Sequence[Told]) -> None:
        """Know answers that the tracker has learned."""
        answers = [each for each in told if self._is_answer(each)]
        if answers:
            self.asker.recall(*self._rows(answers))

    def follow(self, told: Sequence[Told]) -> None:
        """Learn what the log has more, in its order."""
        n_left = sum(map(self._is_answer, told))
        for is_answer, group in groupby(told, self._is_answer):
            some = list(group)
            if is_answer:
                self._teach(some, n_left - TAUGHT)
                n_left -= len(some)
            else:
                self._observe(some)

    def _is_answer(self, told: Told) -> bool:
        """Whether a judge has said it of items, the first to be asked about them.

        Where another judge disagrees, the question is the same: it is learned, and no more.
        """
        known = self.items.rows
        if told.judge is None or told.a not in known or told.b not in known or told.a == told.b:
            return False
        return self._judges.setdefault(frozenset((told.a, told.b)), told.judge) == told.judge

    def _teach(self, answers: Sequence[Told], n_early: int) -> None:
        """Teach answers in blocks; of the blocks among the early ones, the last answer alone."""
        start = 0
        while start < len(answers):
            stop = start + max(AT_A_TIME, self.asker.n_answers // 4)
            block = answers[start:stop]
            if stop <= n_early:
                self._observe(block[:-1])
                self.recall(block[:-1])
                block = block[-1:]
            self.asker.teach(*self._rows(block))
            start = stop

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
        self._making: dict[int, threading.Lock] = {}  # by the numbers of metrics, as what is kept
        self._kept: OrderedDict[int, Questions] = OrderedDict()

    def of(self, metric: Metric, items: Items) -> Questions:
        """Those of a metric, up to its log; it may take seconds the first time."""
        with self._lock:
            making = self._making.setdefault(metric.number, threading.Lock())
        with making:
            found = self._kept.get(metric.number)
            if found is None or found.items is not items or not self._follow(metric, found):
                found = self._begun(metric, items)
                self._follow(metric, found)
        with self._lock:
            self._kept[metric.number] = found
            self._kept.move_to_end(metric.number)
            while len(self._kept) > KEPT:
                gone, _ = self._kept.popitem(last=False)
                self._making.pop(gone, None)
        return found

    def _begun(self, metric: Metric, items: Items) -> Questions:
        """From the log alone, where it is whole and not too long."""
        most = _most_read(metric)
        if metric.cut == 0 and metric.sequence <= most:
            found = Questions(metric.config, items)
            told = self._told(metric, 0)
            found.follow(standing(told))
        else:
            with metric.lock:
                found = Questions(metric.config, items, self.teaching.readable(metric))
            told = self._told(metric, found.sequence - most)
            told = [each for each in told if each.sequence <= found.sequence]
            found.recall(standing(told))
        if told:
            found.sequence = told[-1].sequence
        return found

    def _follow(self, metric: Metric, found: Questions) -> bool:
        """Take what the log has more; False where that means to begin anew."""
        if metric.sequence - found.sequence > _most_read(metric):
            return False
        with found.lock:
            while told := self._told(metric, found.sequence):
                if any(each.corrects for each in told):
                    return False
                found.follow(told)
                found.sequence = told[-1].sequence
        return True

    def _told(self, metric: Metric, after: int) -> list[Told]:
        with self.teaching.database.reading() as connection:
            return log.told(connection, metric.number, after, _most_read(metric))


def _most_read(metric: Metric) -> int:
    """Judgements that are read of a log at once."""
    return max(TAUGHT, NUMBERS // (2 * metric.config.n_features))


def standing(told: Sequence[Told]) -> list[Told]:
    """With each correction in the place of what it corrects."""
    at = {each.sequence: each for each in told if not each.corrects}
    first: dict[int, int] = {}  # what was corrected first, of each correction
    for each in told:
        if each.corrects:
            first[each.sequence] = root = first.get(each.corrects, each.corrects)
            if root in at:
                at[root] = at[root]._replace(y=each.y)
    return list(at.values())


def _new(config: Config, n_items: int) -> Any:
    """One that has seen nothing, and will be shown the items; or has started without them."""
    if n_items > SHOWN:
        return config.make()
    return unstarted(config.estimator, config.settings)


def _copied(learner: Any) -> Any:
    return unpack(pack(learner), None, "the metric")
