"""Questions about pairs of records, field by field; each answer is kept at once."""

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from metrack.checks import Floats, Ints
from metrack.compare import ActivePairs, Comparisons
from metrack.estimators.active_tracker import UNDOABLE
from metrack.estimators.metric_tracker import MetricTracker
from metrack.estimators.states.persistence import unpack
from metrack.storage import WRONG, CorruptStateError, State, StateFolder, has_state, read
from metrack.tracking.records import Records

PART = "judged records"


class _Before(NamedTuple):
    """All that an answer changes."""

    row: int
    tracker: Any
    answers: Floats


class RecordJudging:
    """A session of questions about pairs of records. Answers are on the disk when `answer` returns.

    Parameters
    ----------
    folder : StateFolder
        Entered: this process may write to it.
    left, right : Records
        The same, where there is one table.
    rows : array (n_pairs, 2)
        The candidates.
    """

    def __init__(self, folder: StateFolder, left: Records, right: Records, rows: Ints) -> None:
        self.folder, self.left, self.right, self.rows = folder, left, right, rows
        where, tracker = str(folder.path), MetricTracker(random_state=0)
        self.judged: dict[tuple[str, str], float] = {}
        if has_state(folder.path):
            known = read(folder.path)
            self.compare = Comparisons.unpack(known, where)
            self.judged = _judged(known, where)
            if any(self.judged.values()) or PART not in known.content:
                tracker = unpack(known, None, where)
        else:
            self.compare = Comparisons().fit(left.records, right.records)
        pairs = self.compare.transform(left.records, right.records, rows)
        self.asker = ActivePairs(tracker, pairs)
        self._recall()
        self.undoable: list[_Before] = []

    @property
    def n_answers(self) -> int:
        """How many pairs have been judged and learned, also before this session."""
        return sum(y != 0.0 for y in self.judged.values())

    def question(self) -> int | None:
        """Which candidate is to be judged next; None: all have been asked about."""
        found = self.asker.query().tolist()
        return found[0] if found else None

    def fields(self, row: int) -> list[tuple[str, Any, Any]]:
        """What both records of a candidate say, field by field."""
        i, j = self.rows[row].tolist()
        ours, theirs = self.left.records[i], self.right.records[j]
        return [(f, ours.get(f), theirs.get(f)) for f in dict.fromkeys([*ours, *theirs])]

    def answer(self, row: int, alike: bool | None) -> None:
        """Learn a judgement, and keep it; None: unsure."""
        asker = self.asker
        before = _Before(row, deepcopy(asker.tracker), asker.answers_.copy())
        asker.teach(row, alike)
        self.judged[self._ids(row)] = float(asker.answers_[row])
        self._write()
        self.undoable = [*self.undoable[1 - UNDOABLE :], before]

    def undo(self) -> int | None:
        """Be as before the last answer, bit for bit; returns its candidate, if there is any."""
        if not self.undoable:
            return None
        row, self.asker.tracker, self.asker.answers_ = self.undoable.pop()
        del self.judged[self._ids(row)]
        self._write()
        return row

    def _ids(self, row: int) -> tuple[str, str]:
        i, j = self.rows[row].tolist()
        return self.left.ids[i], self.right.ids[j]

    def _recall(self) -> None:
        """Ask about no pair again that was judged in an earlier session."""
        known = [k for k in range(len(self.rows)) if self._ids(k) in self.judged]
        self.asker.recall(known, np.array([self.judged[self._ids(k)] for k in known]))

    def _write(self) -> None:
        tracker = self.asker.tracker if hasattr(self.asker.tracker, "engine_") else None
        content, arrays = self.compare.pack(tracker)
        judged = [[*ids, y] for ids, y in self.judged.items()]
        self.folder.write(State({**content, PART: judged}, arrays))


def _judged(state: State, where: str) -> dict[tuple[str, str], float]:
    """Answers by ids."""
    try:
        return {(str(a), str(b)): float(y) for a, b, y in state.content.get(PART, [])}
    except WRONG as error:
        raise CorruptStateError(f"{where} describes no judged records: {error}") from error
