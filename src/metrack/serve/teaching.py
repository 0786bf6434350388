"""The learning of a server's metrics: turn by turn, published and saved as it goes on."""

import asyncio
import json
import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial

from metrack.serve import log, metric_rows, snapshots
from metrack.serve.databases.database import Database, Fenced, Saved
from metrack.serve.learning import Learning
from metrack.serve.limits import Refused
from metrack.serve.metric import Metric
from metrack.serve.snapshots import Snapshot
from metrack.serve.workers import Workers

logger = logging.getLogger(__name__)

REST = 10.0  # seconds between snapshots: times as long as one took
TRY_AGAIN = 1.0  # seconds after an error of the disk
PATIENCE = 0.5  # seconds until a turn that is under way is left to end
AT_ONCE = 4096  # judgements that a request learns at a time
SAVE_WORK = 2.0  # seconds of learning that a crash costs, at most


class Teaching:
    """Brings metrics up to their logs, in threads of its own.

    Parameters
    ----------
    database : Database
        That holds logs and states.
    n_threads : int
    """

    def __init__(self, database: Database, n_threads: int) -> None:
        self.database = database
        self.loop: asyncio.AbstractEventLoop | None = None  # told of snapshots
        self.workers = Workers(n_threads, self._turn)  # type: ignore[arg-type]

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
                except (OSError, Refused, Fenced):  # the others shall be saved
                    logger.exception("metric %s was not saved; its log is whole", metric.name)

    def let_go(self, metric: Metric) -> bool:
        """Save a metric that another process will learn; False where it is at work just now."""
        if not metric.lock.acquire(timeout=PATIENCE):
            return False
        try:
            if metric.learning is not None:
                self.save(metric, metric.learning)
                metric.learning = None
        except (OSError, Refused, Fenced) as error:  # the other one learns it again
            logger.warning("metric %s was not saved: %s", metric.name, error)
        finally:
            metric.lock.release()
        return True

    def snapshot_of(self, metric: Metric) -> Snapshot:
        """The last that was published; loads it, or the state, if need be."""
        found = metric.snapshot  # which is dropped when another process changes the settings
        if found is None:
            with metric.lock:
                self.follow(metric)
                found = metric.snapshot or self._show(metric, self.readable(metric))
        return found

    def follow(self, metric: Metric) -> None:
        """Take what another process has published, where it is newer."""
        published = self.database.published(metric.number)
        if published is None:
            return
        found = snapshots.unpack(published)
        with metric.lock:
            if metric.snapshot is None or metric.snapshot.version < found.version:
                metric.snapshot = found
        self.announce(metric)

    def learning(self, metric: Metric, fence: int) -> Learning:
        """What a metric has learned; loads its state if need be."""
        if metric.learning is None or metric.fence != fence:
            metric.learning, metric.fence, metric.unsaved_work = None, fence, 0.0
            metric.learning = found = self._load(metric)
            metric.saved = found.sequence
            if found.sequence < metric.sequence:
                self.workers.wake(metric)
        return metric.learning

    def _load(self, metric: Metric) -> Learning:
        self.look(metric)
        found = Learning.load(metric.config, partial(self.database.load, metric.number), metric.cut)
        if found.sequence > metric.sequence:
            self.look(metric)  # it may have been saved a moment ago
        if found.sequence > metric.sequence:
            raise ValueError(
                f"the state of {metric.name!r} has learned {found.sequence:,} judgements, and "
                f"the log has {metric.sequence:,}: it is older than the state; restore both "
                "from the same back-up"
            )
        return found

    def look(self, metric: Metric) -> bool:
        """Take what the database says of a metric now; whether it was made another meanwhile."""
        with self.database.reading() as connection:
            rows = metric_rows.read(connection, [metric.number])
        if not rows or metric.deleted:
            raise Refused(404, "the metric was deleted meanwhile")
        return metric.update(rows[0])

    def readable(self, metric: Metric) -> Learning:
        """For a request: a state that cannot be used is the server's fault.

        It is no older than what readers were told. Where another process learns, it is the newest
        that was saved, and what follows is learned again for this request alone.
        """
        fence = self.database.fence(metric.number)
        try:
            found = self._load(metric) if fence is None else self.learning(metric, fence)
            told = metric.version
            self.look(metric)  # a snapshot may have come before word of what is behind it
            while found.sequence < told:
                self._learn(metric, found, min(AT_ONCE, told - found.sequence))
            return found
        except ValueError as error:
            raise Refused(503, str(error)) from None

    def _turn(self, metric: Metric) -> float | None:
        """Learn a piece, publish, save; says when to come again."""
        with metric.lock:
            fence = self.database.fence(metric.number)
            if metric.deleted or fence is None:
                metric.learning, metric.unsaved_work = None, 0.0
            if metric.deleted:
                metric.snapshot = metric.items = None
                self.database.forget(metric.number)
            if metric.deleted or metric.error is not None or fence is None:
                return None
            try:
                return self._work(metric, fence)
            except Fenced:  # it is not ours any more; what was learned meanwhile is another's
                metric.learning = None
                return None
            except (OSError, Refused) as error:  # the disk; what was learned is whole
                logger.error("metric %s: %s; trying again", metric.name, error)
                return TRY_AGAIN
            except Exception as error:
                metric.error = f"{type(error).__name__}: {error}"
                metric.learning = None  # it may be half-way
                logger.exception("metric %s learns no more until the next start", metric.name)
                self.announce(metric)
                return None

    def _work(self, metric: Metric, fence: int) -> float | None:
        learning, start = self.learning(metric, fence), time.monotonic()
        if metric.snapshot is None:  # before anything takes long: readers do not wait for learning
            self.follow(metric)
        if metric.snapshot is None:
            self._publish(metric, learning)
        n_learned = metric.pace.timed(lambda most: self._learn(metric, learning, most))
        now = time.monotonic()
        if n_learned:
            if metric.unsaved_work == 0.0:
                metric.save_at = now + self.database.save_after
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
        shape = metric.config.kind.members, metric.config.n_features
        after = learning.sequence
        # Until there are judgements, another process may have changed the settings.
        if after == 0 and self.look(metric):
            raise Refused(409, "the metric was changed meanwhile; ask again")
        with self.database.reading() as connection:
            stretch = log.read(connection, metric.number, shape, after, most)
        learning.learn(stretch)
        return len(stretch.y)

    def _publish(self, metric: Metric, learning: Learning) -> None:
        start = time.monotonic()
        if metric.publishing is not None and not metric.publishing.done():
            metric.publish_at = start + self.database.pause
            return
        snapshot = self._show(metric, learning)
        if self.database.shared:
            self._tell(metric, snapshot)
        else:
            metric.summary = snapshot.summary
        now = time.monotonic()
        metric.publish_at = now + max(self.database.pause, REST * (now - start))

    def _tell(self, metric: Metric, snapshot: Snapshot) -> None:
        """Publish for other processes; where that fails, it is done again."""

        def told(done: "Future[None]") -> None:
            known = metric.summary.get("version", 0)  # to all; another may have published more
            if done.exception() is None and known < snapshot.version:
                metric.summary = snapshot.summary

        saved = Saved(snapshot.version, json.dumps(snapshot.summary), snapshots.pack(snapshot))
        assert metric.fence is not None
        metric.publishing = self.database.publish(metric.number, metric.fence, saved)
        metric.publishing.add_done_callback(told)

    def _show(self, metric: Metric, learning: Learning) -> Snapshot:
        """Let this process's readers see what was learned, if they have not seen more."""
        found = learning.snapshot()
        if metric.snapshot is None or metric.snapshot.version <= found.version:
            metric.snapshot = found
        self.announce(metric)
        return found

    def announce(self, metric: Metric) -> None:
        """Wake all who wait for a snapshot, in the loop's thread."""
        loop = self.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(metric.announce)

    def save(self, metric: Metric, learning: Learning) -> None:
        """Write the state, where it is newer than the one on the disk."""
        if learning.sequence > metric.saved or metric.unsaved_work:
            assert metric.fence is not None
            saved = Saved(learning.sequence, json.dumps(learning.summary()), learning.pack())
            self.database.save(metric.number, metric.fence, saved)
            metric.saved = learning.sequence
        metric.unsaved_work = 0.0


def _is_behind(metric: Metric, learning: Learning) -> bool:
    """Whether more was learned than is published, here and to others."""
    here = metric.snapshot is not None and metric.snapshot.version >= learning.sequence
    return not here or metric.summary.get("version", 0) < learning.sequence
