"""Questions and answers: pairs of items to judge, one after another, each answer kept at once."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metrack.estimators.active_tracker import UNDOABLE, ActiveTracker
from metrack.estimators.metric_tracker import MetricTracker
from metrack.storage import State, StateFolder, has_state, read
from metrack.tracking.history import History
from metrack.tracking.items import Items, Mark, check_unchanged
from metrack.tracking.state import Tracking

AT_A_TIME = 5  # pairs that are suggested before what was answered counts


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
        self.asker = ActiveTracker(self.tracking.learner, items.points)
        if has_state(folder.path):
            self.asker.restore(read(folder.path), str(folder.path))
        self.queue: list[tuple[int, int]] = []
        self.undoable: list[tuple[tuple[int, int], History | None]] = []

    @property
    def n_answers(self) -> int:
        """How many pairs have been judged and learned, also before this session."""
        return self.tracking.learner.n_pairs_seen_ - self.asker.n_implied

    def question(self) -> tuple[int, int] | None:
        """Rows of the pair that is to be judged next; None: all have been asked about."""
        if not self.queue:
            n_items = len(self.items.ids)
            rows = self.asker.query(min(AT_A_TIME, n_items * (n_items - 1) // 2))
            self.queue = [(min(a, b), max(a, b)) for a, b in rows.tolist()]
        return self.queue.pop(0) if self.queue else None

    def answer(self, pair: tuple[int, int], alike: bool | None) -> None:
        """Learn a judgement, and keep it; None: unsure."""
        tracking, asker = self.tracking, self.asker
        before = deepcopy(tracking.history)
        asker.teach([pair], [alike])
        if tracking.history is None:
            tracking.history = History(tracking.learner.n_features_in_)
        tracking.history.add(asker.losses_, tracking.learner)
        self._write()
        self.undoable = [*self.undoable[1 - UNDOABLE :], (pair, before)]

    def undo(self) -> tuple[int, int] | None:
        """Be as before the last answer, bit for bit; returns its pair, if there is any."""
        if not self.undoable:
            return None
        pair, self.tracking.history = self.undoable.pop()
        self.asker.undo()
        self._write()
        self.queue = []
        return pair

    def _write(self) -> None:
        content, arrays = self.tracking.pack()
        asking = self.asker.pack_asking(arrays)
        self.folder.write(State({**content, "asking": asking}, arrays))
