"""What a state folder of ``metrack track`` holds."""

from pathlib import Path
from typing import Any, Self

import numpy as np

from metrack.checks import Floats
from metrack.engine.numerics.records import MOST, Number, floats
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.states.persistence import pack, unpack
from metrack.storage import WRONG, CorruptStateError, State, read
from metrack.tracking.columns import numbered
from metrack.tracking.history import History
from metrack.tracking.items import Items, Mark, check_features
from metrack.tracking.layouts import Rows
from metrack.tracking.sources import SavedCheckpoint

RECENT = 200  # pairs kept for a look at the embedding ...
RECENT_BYTES = 1 << 22  # ... or so many bytes of them


class Tracking:
    """A learner, its checkpoint in a source, and how it went: all that a state folder holds.

    Parameters
    ----------
    learner : OnlineLearner
        Fitted or not.
    items : Items, optional
        Points that ids refer to.
    """

    def __init__(self, learner: OnlineLearner, items: Items | None) -> None:
        self.learner, self.items = learner, items
        self.checkpoint: SavedCheckpoint | None = None
        self.features: list[str] | None = items.features if items else None
        self.mark: Mark | None = None  # of the items that were learned with
        self.columns: list[str] | None = None
        self.bad_rows = 0
        self.quarantine: dict[str, Any] = {}  # the file of bad rows, and its size
        self.history: History | None = None
        self.recent: Floats | None = None  # the last pairs, (n, 2, n_features), and their labels
        self.recent_y: Floats = np.empty(0)

    def learn(self, rows: Rows, start: int, most: int) -> int:
        """Learn some rows, from ``start`` on and at most so many; returns how many."""
        if start == len(rows.y):
            return 0
        # The first pair alone tells how many features there are.
        room = 1 if self.history is None else self.history.room
        piece = slice(start, start + min(most, room))
        given = rows.keys if self.items is not None else rows.pairs(self._names())
        losses = self.learner.observe(given[piece], rows.y[piece])
        if self.history is None:
            self.history = History(self.learner.n_features_in_)
        self.history.add(losses, self.learner)
        if self.items is None:
            self._remember(rows.points[piece], rows.y[piece])
        return len(losses)

    def _names(self) -> list[str] | None:
        """Those that a file gave to features."""
        found = self.features
        return None if found is None or found == numbered(len(found)) else found

    def _remember(self, pairs: Floats, y: Floats) -> None:
        pairs = np.pad(pairs, ((0, 0), (0, 2 - pairs.shape[1]), (0, 0)))
        most = max(1, min(RECENT, RECENT_BYTES // (16 * pairs.shape[2])))
        if self.recent is not None and len(y) < most:
            pairs = np.concatenate([self.recent, pairs])
            y = np.concatenate([self.recent_y, y])
        self.recent, self.recent_y = pairs[-most:].copy(), y[-most:].copy()

    def pack(self) -> State:
        """The state to write."""
        content, arrays = pack(self.learner)
        tracking: dict[str, Any] = {
            "place": self.checkpoint,
            "features": self.features,
            "columns": self.columns,
            "bad_rows": self.bad_rows,
            "aside": self.quarantine,
            "items": self.mark and self.mark._asdict(),
        }
        if self.history is not None:
            tracking["history"], more = self.history.pack()
            arrays |= more
        if self.recent is not None:
            arrays |= {"recent.pairs": self.recent, "recent.y": self.recent_y}
        return State({**content, "tracking": tracking}, arrays)

    @classmethod
    def load(cls, path: Path, items: Items | None = None) -> Self:
        """What a state folder holds; also one that a learner's ``save`` made."""
        return cls.unpack(read(path), items, str(path))

    @classmethod
    def unpack(cls, state: State, items: Items | None, where: str) -> Self:
        """What a state holds."""
        learner = unpack(state, items.points if items else None, where=where)
        if not isinstance(learner, OnlineLearner):
            raise ValueError(f"{where} holds {type(learner).__name__}, which learns no pairs")
        found = cls(learner, items)
        saved = state.content.get("tracking")
        if saved is None:
            return found
        try:
            found.checkpoint, found.columns = saved["place"], saved["columns"]
            found.features, found.bad_rows = saved["features"], saved["bad_rows"]
            found.quarantine = dict(saved["aside"])
            if "history" in saved:
                found.history = History.unpack(saved["history"], state.arrays)
            found.mark = None if saved["items"] is None else Mark(**saved["items"])
            found.recent = state.arrays.get("recent.pairs")
            found.recent_y = state.arrays.get("recent.y", found.recent_y)
            found._check()
        except WRONG as error:
            raise CorruptStateError(f"{where} describes no tracking: {error}") from error
        if items is not None:
            check_features(items, found.features, where)
        return found

    def _check(self) -> None:
        """Refuse what does not belong together."""
        seen, n = self.learner.n_pairs_seen_, self.learner.n_features_in_
        if self.history is not None:
            self.history.check(seen, n)
        if self.recent is not None:
            sizes = {"n": n}
            floats("kept", 2, "n").checked(self.recent, "recent.pairs", sizes)
            floats("kept", least=-1.0, most=1.0).checked(self.recent_y, "recent.y", sizes)
        for names in (self.features, self.columns):
            if not (names is None or all(isinstance(each, str) for each in names)):
                raise ValueError(f"{names!r} are no names of columns")
        if self.features is not None and len(self.features) != n:
            raise ValueError(f"{len(self.features)} names for {n} features")
        counted = {"bad_rows": self.bad_rows}
        if self.mark is not None:
            counted["items"] = self.mark.n_items
        if (at := self.checkpoint) is not None:
            counted |= {name: at[name] for name in ("offset", "lines", "before")}
            if not (isinstance(at["file"], str) and isinstance(at["tail"], str)):
                raise ValueError("its checkpoint is in no file")
        if self.quarantine:
            counted["quarantine"] = self.quarantine["size"]
        for name, value in counted.items():
            Number(0, MOST, whole=True).checked(value, name, {})
