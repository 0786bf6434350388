"""The learning of a server's metrics: turn by turn, published and saved as it goes on."""

import asyncio
import json
import logging
import shutil
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from metrack.serve import log, metric_rows
from metrack.serve.database import Database
from metrack.serve.learning import Learning, Snapshot
from metrack.serve.limits import Refused
from metrack.serve.metric import Metric
from metrack.serve.workers import Workers

logger = logging.getLogger(__name__)

PUBLISHED, REST = 0.05, 10.0  # seconds between snapshots at least; times as long as one took
TRY_AGAIN = 5.0  # seconds after an error of the disk
SAVE_WORK, SAVE_SECONDS = 2.0, 60.0  # learning that a crash costs, at most; or so long after it


class Teaching:
    """Brings metrics up to their logs, in threads of its own.

    Parameters
    ----------
    path : Path
        Folder of the states.
    database : Database
        That holds the logs.
    n_threads : int
    """

    def __init__(self, path: Path, database: Database, n_threads: int) -> None:
        self.path, self.database = path, database
        self.loop: asyncio.AbstractEventLoop | None = None  # told of snapshots
        self.workers = Workers(n_threads, self._turn)  # type: ignore[arg-type]

    def folder(self, metric: Metric) -> Path:
        """Where its states are; from its number, never from its name."""
        return self.path / str(metric.number)

    def wake(self, metric: Metric) -> None:
        """There is something to learn, or to remove."""
        self.workers.wake(metric)

    def close(self, metrics: Iterable[Metric]) -> None:
        """End, and save what is not saved."""
        self.workers.close()
        for metric in metrics:
            with metric.lock:
                try:
                    if metric.learning is not None:
                        self.save(metric, metric.learning)
                except OSError:  # the others shall be saved
                    logger.exception("metric %s was not saved; its log is whole", metric.name)

    def snapshot_of(self, metric: Metric) -> Snapshot:
        """The last that was published; loads the state if need be."""
        if metric.snapshot is None:
            with metric.lock:
                if metric.snapshot is None:
                    self._publish(metric, self.readable(metric))
        found = metric.snapshot
        assert found is not None
        return found

    def learning(self, metric: Metric) -> Learning:
        """What a metric has learned; loads its state if need be."""
        if metric.deleted:
            raise Refused(404, "the metric was deleted meanwhile")
        if metric.learning is None:
            found = Learning.load(metric.config, self.folder(metric), metric.cut)
            if found.sequence > metric.sequence:
                raise ValueError(
                    f"the state of {metric.name!r} has learned {found.sequence:,} judgements, and "
                    f"the log has {metric.sequence:,}: it is older than the state; restore both "
                    "from the same back-up"
                )
            metric.learning, metric.saved = found, found.sequence
            if found.sequence < metric.sequence:
                self.workers.wake(metric)
        return metric.learning

    def readable(self, metric: Metric) -> Learning:
        """For a request: a state that cannot be used is the server's fault."""
        try:
            return self.learning(metric)
        except ValueError as error:
            raise Refused(503, str(error)) from None

    def _turn(self, metric: Metric) -> float | None:
        """Learn a piece, publish, save; says when to come again."""
        with metric.lock:
            if metric.deleted:
                metric.learning = metric.snapshot = metric.items = None
                shutil.rmtree(self.folder(metric), ignore_errors=True)
            if metric.deleted or metric.error is not None:
                return None
            try:
                return self._work(metric)
            except (OSError, sqlite3.Error) as error:  # the disk; what was learned is whole
                logger.error("metric %s: %s; trying again", metric.name, error)
                return TRY_AGAIN
            except Exception as error:
                metric.error = f"{type(error).__name__}: {error}"
                metric.learning = None  # it may be half-way
                logger.exception("metric %s learns no more until the next start", metric.name)
                self.announce(metric)
                return None

    def _work(self, metric: Metric) -> float | None:
        learning, start = self.learning(metric), time.monotonic()
        if metric.snapshot is None:  # before anything takes long: readers do not wait for learning
            self._publish(metric, learning)
        n_learned = metric.pace.timed(lambda most: self._learn(metric, learning, most))
        now = time.monotonic()
        if n_learned:
            if metric.unsaved_work == 0.0:
                metric.save_at = now + SAVE_SECONDS
            metric.unsaved_work += now - start
        if _is_behind(metric, learning) and now >= metric.publish_at:
            self._publish(metric, learning)
        if metric.unsaved_work and (metric.unsaved_work >= SAVE_WORK or now >= metric.save_at):
            self.save(metric, learning)
        return self._wait(metric, learning)

    def _wait(self, metric: Metric, learning: Learning) -> float | None:
        """Seconds until there is something to do."""
        if learning.sequence < metric.sequence:
            return 0.0
        times = []
        if _is_behind(metric, learning):
            times.append(metric.publish_at)
        if metric.unsaved_work:
            times.append(metric.save_at)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _learn(self, metric: Metric, learning: Learning, most: int) -> int:
        if learning.sequence >= metric.sequence:
            return 0
        stretch = log.read(
            self.database.reading, metric.number, metric.config.n_features, learning.sequence, most
        )
        if len(stretch.y):
            learning.learn(stretch)
        return len(stretch.y)

    def _publish(self, metric: Metric, learning: Learning) -> None:
        start = time.monotonic()
        metric.snapshot = learning.snapshot()
        now = time.monotonic()
        metric.publish_at = now + max(PUBLISHED, REST * (now - start))
        self.announce(metric)

    def announce(self, metric: Metric) -> None:
        """Wake all who wait for a snapshot, in the loop's thread."""
        loop = self.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(metric.announce)

    def save(self, metric: Metric, learning: Learning) -> None:
        """Write the state, where it is newer than the one on the disk."""
        if learning.sequence > metric.saved or metric.unsaved_work:
            learning.save(self.folder(metric))
            metric.saved = learning.sequence
            saved = metric.number, metric.saved, json.dumps(learning.summary())
            self.database.submit(lambda c: metric_rows.note_saved(c, *saved))
        metric.unsaved_work = 0.0


def _is_behind(metric: Metric, learning: Learning) -> bool:
    """Whether more was learned than is published."""
    return metric.snapshot is None or metric.snapshot.version < learning.sequence
