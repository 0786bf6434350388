"""A metric of a server, as it is in memory."""

import asyncio
import json
import threading
import time
from typing import Any

from metrack.serve.items import Items
from metrack.serve.learning import Config, Learning, Snapshot
from metrack.serve.neighbours import Neighbours, Picture
from metrack.tracking.pieces import Pace


class Metric:
    """A metric in memory.

    Parameters
    ----------
    number : int
        Of its row and its folder.
    name : str
    config : Config
    sequence, cut, saved : int
        Of the last judgement; of the last that was cut off; of the last that is in a saved state.
    summary : str
        Of that state, JSON.
    """

    def __init__(
        self,
        number: int,
        name: str,
        config: Config,
        sequence: int = 0,
        cut: int = 0,
        saved: int = 0,
        summary: str = "{}",
    ) -> None:
        self.number, self.name, self.config = number, name, config
        self.sequence, self.cut, self.saved = sequence, cut, saved
        self.summary: dict[str, Any] = json.loads(summary)
        self.lock = threading.RLock()  # held by whoever uses what follows
        self.learning: Learning | None = None
        self.snapshot: Snapshot | None = None
        self.items: Items | None = None
        self.pace = Pace(time.monotonic)
        self.publish_at, self.save_at, self.unsaved_work = 0.0, 0.0, 0.0
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
        return 256 * self.config.n_features**2 + (0 if items is None else 2 * items.points.nbytes)

    def described(self) -> dict[str, Any]:
        """What a client is told; loads nothing."""
        snapshot = self.snapshot
        summary = self.summary if snapshot is None else snapshot.summary
        nothing = {"pairs": 0, "version": 0, "loss": None, "plain_loss": None}
        nothing |= {"effective_window": None, "last_change": None, "threshold": None, "rank": None}
        return {
            "name": self.name,
            "n_features": self.config.n_features,
            "estimator": self.config.estimator,
            "settings": self.config.settings,
            "features": self.config.features,
            "sequence": self.sequence,
            "log_starts": self.cut + 1,
            **(summary or nothing),
            "error": self.error,
        }

    @property
    def version(self) -> int:
        """Of the snapshot that readers would get."""
        if self.snapshot is not None:
            return self.snapshot.version
        return int(self.summary.get("version", 0))

    def announce(self) -> None:
        """Wake all who wait for a snapshot; in the loop's thread."""
        self.published.set()
        self.published = asyncio.Event()
