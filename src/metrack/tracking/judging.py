"""Questions and answers: pairs of items to judge, one after another, each answer kept at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metrack.estimators.metric_tracker import MetricTracker
from metrack.storage import State, StateFolder, has_state
from metrack.tracking.items import Items, Mark, check_unchanged
from metrack.tracking.layouts import Rows
from metrack.tracking.state import Tracking

AT_A_TIME = 5  # pairs that are suggested before what was answered counts
KEPT = 20  # answers that can be undone


class Suggestion(NamedTuple):
    """A pair of ids, and what its judgement would be worth."""

    a: str
    b: str
    informativeness: float
    weight: float


def begin(state: Path, items: Items) -> Tracking:
    """What a folder holds, or a new tracker that knows the items."""
    if has_state(state):
        tracking = Tracking.load(state, items)
        check_unchanged(items, tracking.mark, str(state))
    else:
        learner = MetricTracker(random_state=0, preprocessor=items.points)
        n_features = items.points.shape[1]
        if learner.takes_points(n_features):
            learner.observe_points(items.points)
        else:
            learner.start(n_features, items.points)
        tracking = Tracking(learner, items)
    tracking.mark = Mark.of(items)
    return tracking


def suggestions(state: Path, items: Items, n_pairs: int) -> Iterator[Suggestion]:
    """Pairs of items that are worth judging; the same ones until more is learned."""
    learner = begin(state, items).learner
    seen = learner.n_pairs_seen_
    rows, weights = learner.suggest_pairs(items.points, n_pairs, seen, return_weights=True)
    worth = learner.informativeness(rows) if seen else np.full(n_pairs, np.nan)
    for (a, b), w, weight in zip(rows.tolist(), worth.tolist(), weights.tolist(), strict=True):
        yield Suggestion(items.ids[a], items.ids[b], w, weight)


class Judging:
    """A session of questions about items. Answers are on the disk when `answer` returns.

    Parameters
    ----------
    folder : StateFolder
        Entered: this process may write to it.
    items : Items
    """

    def __init__(self, folder: StateFolder, items: Items) -> None:
        self.folder, self.items = folder, items
        self.tracking = begin(folder.path, items)
        self.queue: list[tuple[int, int]] = []
        self.asked: set[tuple[int, int]] = set()
        self.undoable: list[tuple[tuple[int, int], State]] = []

    @property
    def n_answers(self) -> int:
        """How many pairs have been learned, also before this session."""
        return self.tracking.learner.n_pairs_seen_

    def question(self) -> tuple[int, int] | None:
        """Rows of the pair that is to be judged next; None: all have been asked about."""
        for attempt in range(20):
            while self.queue:
                pair = self.queue.pop(0)
                if pair not in self.asked:
                    self.asked.add(pair)
                    return pair
            self.queue = self._suggested(attempt)
        return None

    def _suggested(self, attempt: int) -> list[tuple[int, int]]:
        n_items = len(self.items.ids)
        n_pairs = min(AT_A_TIME, n_items * (n_items - 1) // 2)
        seed = self.n_answers + len(self.asked) + attempt
        rows = self.tracking.learner.suggest_pairs(self.items.points, n_pairs, seed)
        return [(min(a, b), max(a, b)) for a, b in rows.tolist()]

    def answer(self, pair: tuple[int, int], alike: bool) -> None:
        """Learn a judgement, and keep it."""
        before = _copied(self.tracking.pack())
        keys = np.array([pair])
        rows = Rows(np.empty((1, 0, 0)), keys, np.array([1.0 if alike else -1.0]), np.ones(1, bool))
        self.tracking.learn(rows, 0, 1)
        self.folder.write(self.tracking.pack())
        self.undoable = [*self.undoable[1 - KEPT :], (pair, before)]

    def undo(self) -> tuple[int, int] | None:
        """Be as before the last answer, bit for bit; returns its pair, if there is any."""
        if not self.undoable:
            return None
        pair, before = self.undoable.pop()
        self.folder.write(before)
        self.tracking = Tracking.unpack(before, self.items, str(self.folder.path))
        self.queue = []
        return pair


def _copied(state: State) -> State:
    """A state that learning does not change."""
    return State(state.content, {name: array.copy() for name, array in state.arrays.items()})
