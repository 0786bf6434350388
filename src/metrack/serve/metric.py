"""A metric of a server, as it is in memory."""

import asyncio
import threading
import time
from concurrent.futures import Future
from typing import Any

from metrack.serve.health import health
from metrack.serve.items import Items
from metrack.serve.learning import Config, Learning
from metrack.serve.metric_rows import Row
from metrack.serve.neighbours import Neighbours, Picture
from metrack.serve.snapshots import Snapshot
from metrack.tracking.pieces import Pace

NOTHING: dict[str, Any] = {
    **{"pairs": 0, "version": 0, "loss": None, "plain_loss": None, "accuracy": None, "auc": None},
    **{"effective_window": None, "last_change": None, "last_change_time": None},
    **{"threshold": None, "rank": None, "hours": []},
    "sparks": {"loss": [], "plain_loss": []},
}  # learned yet


def footprint(config: Config) -> int:
    """Bytes of a learner, roughly."""
    return 256 * config.n_features**2


class Metric:
    """A metric in memory.

    Parameters
    ----------
    row : Row
        What the database has of it.
    """

    def __init__(self, row: Row) -> None:
        self.number, self.name, self.config = row.number, row.name, row.config
        self.about = row.about
        self.sequence, self.cut, self.saved = row.sequence, row.cut, row.saved
        self.summary = row.summary
        self.lock = threading.RLock()  # held by whoever uses what follows
        self.learning: Learning | None = None
        self.fence: int | None = None  # the number under which it was loaded
        self.snapshot: Snapshot | None = None
        self.items: Items | None = None
        self.pace = Pace(time.monotonic)
        self.publish_at, self.save_at, self.unsaved_work = 0.0, 0.0, 0.0
        self.publishing: Future[Any] | None = None  # a snapshot for other processes, on its way
        # For `Workers`.
        self.due: float | None = None
        self.busy = False
        self.deleted = False
        self.error: str | None = None  # why it learns no more
        self.neighbours, self.picture = Neighbours(), Picture()
        self.published = asyncio.Event()  # replaced with every snapshot; the loop's thread only

    @property
    def memory(self) -> int:
        """Bytes, roughly: some dense matrices of learners, and the items."""
        items = self.items
        return footprint(self.config) + (0 if items is None else 2 * items.points.nbytes)

    def described(self) -> dict[str, Any]:
        """What a client is told; loads nothing."""
        snapshot = self.snapshot
        summary = self.summary if snapshot is None else snapshot.summary
        found = {
            "name": self.name,
            **self.about._asdict(),
            "learns_from": self.config.kind.example,
            "n_features": self.config.n_features,
            "estimator": self.config.estimator,
            "settings": self.config.settings,
            "features": self.config.features,
            "sequence": self.sequence,
            "log_starts": self.cut + 1,
            **NOTHING,
            **summary,
            "error": self.error,
        }
        return {**found, "health": health(found)._asdict()}

    @property
    def version(self) -> int:
        """Of the newest snapshot there is."""
        published = int(self.summary.get("version", 0))
        return published if self.snapshot is None else max(published, self.snapshot.version)

    @property
    def is_behind(self) -> bool:
        """Whether there is something to learn, or to save."""
        return min(self.version, self.saved) < self.sequence

    def update(self, row: Row) -> bool:
        """Take what the database says now; whether it was made another."""
        changed = row.config != self.config
        if changed:
            with self.lock:
                self.config = row.config
                self.learning = self.snapshot = self.items = None
        self.about = row.about
        self.sequence = max(self.sequence, row.sequence)
        self.cut = max(self.cut, row.cut)
        if self.learning is None:
            self.saved = row.saved
        if row.summary.get("version", 0) > self.summary.get("version", 0):
            self.summary = row.summary
        if self.items is not None and self.items.version < row.items:
            self.items = None
        return changed

    def announce(self) -> None:
        """Wake all who wait for a snapshot; in the loop's thread."""
        self.published.set()
        self.published = asyncio.Event()
