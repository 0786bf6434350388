"""All metrics of a server: made, found, taught, saved and deleted."""

import asyncio
import json
import logging
import re
import shutil
import sqlite3
import threading
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from metrack.registry import PAIR_LEARNERS
from metrack.serve import items as item_rows
from metrack.serve import log
from metrack.serve.database import Database
from metrack.serve.items import Items, NewItems
from metrack.serve.learning import Config, Learning, Snapshot
from metrack.serve.limits import Limits, Refused
from metrack.serve.neighbours import Neighbours, Picture
from metrack.serve.workers import Workers
from metrack.storage import has_state, to_bytes
from metrack.tracking.pieces import Pace

logger = logging.getLogger(__name__)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_REPLAYS = 1000  # steps a pair; one that asks for millions would be learned for days
PUBLISHED, REST = 0.05, 10.0  # seconds between snapshots at least; times as long as one took
TRY_AGAIN = 5.0  # seconds after an error of the disk
SAVE_WORK, SAVE_SECONDS = 2.0, 60.0  # learning that a crash costs, at most; or so long after it


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


class Registry:
    """The metrics of a folder.

    Parameters
    ----------
    path : Path
        Folder of the server; it is this process's own.
    limits : Limits
    n_threads : int
        That learn.
    """

    def __init__(self, path: Path, limits: Limits, n_threads: int) -> None:
        self.path, self.limits = path, limits
        self.database = Database(path / "log.db")
        self.metrics: dict[str, Metric] = {}
        self.loop: asyncio.AbstractEventLoop | None = None  # told of snapshots
        self._making = threading.Lock()
        rows = self.database.reading.execute(
            "SELECT id, name, n_features, estimator, settings, features, sequence, cut, saved, "
            "summary FROM metrics"
        )
        for number, name, n_features, kind, settings, features, *counts in rows:
            names = None if features is None else json.loads(features)
            config = Config(n_features, kind, json.loads(settings), names)
            self.metrics[name] = Metric(number, name, config, *counts)
        self._sweep()
        known = {str(metric.number) for metric in self.metrics.values()}
        for folder in path.glob("states/*"):
            if folder.name not in known:  # it was deleted just before the end
                shutil.rmtree(folder)
        self.workers = Workers(n_threads, self._turn)  # type: ignore[arg-type]
        for metric in self.metrics.values():
            if metric.saved and not has_state(self.folder(metric)):  # the log alone was restored
                metric.saved, metric.summary = 0, {}
            if metric.saved < metric.sequence:
                self.workers.wake(metric)

    def close(self) -> None:
        """Save what is not saved, and end."""
        self.workers.close()
        for metric in self.metrics.values():
            with metric.lock:
                try:
                    if metric.learning is not None:
                        self._save(metric, metric.learning)
                except OSError:  # the others shall be saved
                    logger.exception("metric %s was not saved; its log is whole", metric.name)
        self.database.close()

    def get(self, name: str) -> Metric:
        """A metric by its name."""
        try:
            return self.metrics[name]
        except KeyError:
            raise Refused(404, f"there is no metric {name!r}; make it with PUT first") from None

    def make(self, name: str, config: Config) -> tuple[Metric, bool]:
        """A metric by that name and of that kind, and whether it is new."""
        if not NAME.fullmatch(name):
            raise Refused(422, "a name is up to 64 letters, digits, dots, hyphens and underscores")
        self._check(config)
        with self._making:
            old = self.metrics.get(name)
            if old is not None:
                return self._configure(old, config), False
            if len(self.metrics) >= self.limits.metrics:
                raise Refused(409, f"there are {len(self.metrics):,} metrics, as many as may be")
            number = self.database.submit(lambda c: _insert(c, name, config)).result()
            metric = self.metrics[name] = Metric(number, name, config)
            return metric, True

    def _configure(self, metric: Metric, config: Config) -> Metric:
        """Another kind of learner, while nothing was learned."""
        if metric.config == config:
            return metric
        with metric.lock:
            if config.n_features != metric.config.n_features and len(self.items_of(metric)):
                raise Refused(409, f"{metric.name!r} has items of another width; delete it first")
            if not self.database.submit(lambda c: _update(c, metric.number, config)).result():
                raise Refused(
                    409,
                    f"{metric.name!r} has other settings, and judgements: make another metric and "
                    "replay them into it, or delete this one",
                )
            metric.config, metric.learning, metric.items = config, None, None
            metric.snapshot = None
        return metric

    def _check(self, config: Config) -> None:
        """Refuse what cannot be made, or what takes too much."""
        if config.estimator not in PAIR_LEARNERS:
            known = ", ".join(PAIR_LEARNERS)
            raise Refused(422, f"estimator {config.estimator!r}; choose one of {known}")
        self.limits.check("features", config.n_features, "features")
        replays = config.settings.get("replays")
        if isinstance(replays, int | float) and replays > MOST_REPLAYS:
            raise Refused(422, f"replays={replays}; at most {MOST_REPLAYS}")
        if "preprocessor" in config.settings:
            raise Refused(422, "preprocessor is no setting here; put points to …/items")
        if config.features is not None and len(config.features) != config.n_features:
            raise Refused(
                422, f"{len(config.features)} names for {config.n_features} features; one each"
            )
        self.check_memory(Metric(0, "", config).memory)
        try:
            config.make()
        except (ValueError, TypeError, OverflowError) as error:
            raise Refused(422, str(error)) from None

    def check_memory(self, more: int) -> None:
        """Refuse what there is no memory for."""
        used = sum(metric.memory for metric in list(self.metrics.values()))
        if used + more > self.limits.memory:
            raise Refused(
                413,
                f"this needs some {more:,} bytes of memory, and {used:,} of {self.limits.memory:,} "
                "are in use: delete metrics, or raise --memory",
            )

    def delete(self, metric: Metric) -> None:
        """Remove a metric, its log, items and states; waits for no learning."""
        with self._making:
            if metric.deleted:
                return
            self.database.submit(lambda c: _delete(c, metric.number)).result()
            metric.deleted = True
            del self.metrics[metric.name]
        self.workers.wake(metric)  # whose turn then is to remove its states
        self._announce(metric)
        self._sweep()

    def _sweep(self) -> None:
        """Remove what deleted metrics left, in the background, some at a time."""

        def again(done: "Future[int]") -> None:
            if done.exception() is None and done.result():
                self._sweep()

        self.database.submit(log.sweep).add_done_callback(again)

    def append(self, metric: Metric, batch: log.Batch) -> "Future[log.Receipt]":
        """Write judgements; they are learned when they are on the disk."""
        lag = metric.sequence - self.version(metric)
        if lag > self.limits.lag:
            raise Refused(
                429,
                f"{lag:,} judgements are not learned yet, at most {self.limits.lag:,} may wait: "
                "send them again later",
                retry_after=2,
            )
        future = self.database.submit(lambda c: log.append(c, metric.number, batch))

        # Here and not by whoever waits for it: that may have gone away.
        def learn(done: "Future[log.Receipt]") -> None:
            if not done.cancelled() and done.exception() is None:
                self._acknowledge(metric, done.result())

        future.add_done_callback(learn)
        return future

    def _acknowledge(self, metric: Metric, receipt: log.Receipt) -> None:
        metric.sequence = max(metric.sequence, receipt.sequence)
        self.workers.wake(metric)

    def version(self, metric: Metric) -> int:
        """Of the snapshot that readers would get."""
        if metric.snapshot is not None:
            return metric.snapshot.version
        return int(metric.summary.get("version", 0))

    def snapshot_of(self, metric: Metric) -> Snapshot:
        """The last that was published; loads the state if need be."""
        if metric.snapshot is None:
            with metric.lock:
                if metric.snapshot is None:
                    self._publish(metric, self._readable(metric))
        found = metric.snapshot
        assert found is not None
        return found

    def items_of(self, metric: Metric) -> Items:
        """Items of a metric; loads them if need be."""
        if metric.items is None:
            with metric.lock:
                if metric.items is None:
                    width = metric.config.n_features
                    metric.items = Items.load(self.database.reading, metric.number, width)
        return metric.items

    def put_items(self, metric: Metric, new: NewItems) -> Items:
        """Add items, or change them."""
        with metric.lock:
            items = self.items_of(metric)
            if new.vectors.shape[1] != items.points.shape[1]:
                raise Refused(409, "the metric was changed meanwhile; send them again")
            n_new = len(set(new.ids) - items.rows.keys())
            self.limits.check("items", len(items) + n_new, "items")
            self.check_memory(16 * n_new * metric.config.n_features)
            changed = items.with_more(new)
            self.database.submit(lambda c: item_rows.write(c, metric.number, new)).result()
            metric.items = changed
        return changed

    def replay(self, source: Metric, target: Metric) -> int:
        """Append one metric's judgements to another's log; returns how many there are now."""
        if source.config.n_features != target.config.n_features:
            raise Refused(422, f"{source.name!r} has {source.config.n_features} features")
        if source is target:
            raise Refused(422, "a metric cannot be replayed into itself")
        if target.sequence:
            raise Refused(409, f"{target.name!r} has judgements of its own; make another metric")
        if source.cut:
            raise Refused(409, f"the log of {source.name!r} was cut off at {source.cut:,}")
        after = 0
        while True:
            job = partial(log.copy, source=source.number, target=target.number, after=after)
            after, receipt = self.database.submit(job).result()
            if receipt is None:
                return target.sequence
            self._acknowledge(target, receipt)

    def cut(self, metric: Metric, upto: int) -> int:
        """Take judgements that a saved state has learned off the log; returns up to which."""
        with metric.lock:
            self._save(metric, self._readable(metric))
            upto = min(upto, metric.saved)
            while self.database.submit(lambda c: log.cut(c, metric.number, upto)).result():
                continue
            metric.cut = max(metric.cut, upto)
        return metric.cut

    def suggest(self, metric: Metric, n_pairs: int, seed: int | None) -> tuple[list[Any], int]:
        """Ids of pairs to judge next, and the version of the metric that says so."""
        items = self.items_of(metric)
        if len(items) < 2:
            raise Refused(409, f"{metric.name!r} has {len(items)} items; put two at least")
        with metric.lock:
            learning = self._readable(metric)
            n_pairs = min(n_pairs, len(items) * (len(items) - 1) // 2)
            rows = learning.learner.suggest_pairs(items.points, n_pairs, seed)
            version = learning.sequence
        return [(items.ids[i], items.ids[j]) for i, j in rows.tolist()], version

    def export(self, metric: Metric) -> bytes:
        """The state of now, as a zip that ``metrack.load`` reads."""
        with metric.lock:
            return to_bytes(self._readable(metric).pack())

    def folder(self, metric: Metric) -> Path:
        """Where its states are; from its number, never from its name."""
        return self.path / "states" / str(metric.number)

    def _learning(self, metric: Metric) -> Learning:
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

    def _readable(self, metric: Metric) -> Learning:
        """For a request: a state that cannot be used is the server's fault."""
        try:
            return self._learning(metric)
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
                self._announce(metric)
                return None

    def _work(self, metric: Metric) -> float | None:
        learning, start = self._learning(metric), time.monotonic()
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
            self._save(metric, learning)
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
        self._announce(metric)

    def _announce(self, metric: Metric) -> None:
        """Wake all who wait for a snapshot, in the loop's thread."""
        loop = self.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(_replace_event, metric)

    def _save(self, metric: Metric, learning: Learning) -> None:
        if learning.sequence > metric.saved or metric.unsaved_work:
            learning.save(self.folder(metric))
            metric.saved = learning.sequence
            summary = json.dumps(learning.summary())
            saved = (metric.saved, summary, metric.number)
            self.database.submit(
                lambda c: c.execute("UPDATE metrics SET saved = ?, summary = ? WHERE id = ?", saved)
            )
        metric.unsaved_work = 0.0


def _is_behind(metric: Metric, learning: Learning) -> bool:
    """Whether more was learned than is published."""
    return metric.snapshot is None or metric.snapshot.version < learning.sequence


def _replace_event(metric: Metric) -> None:
    metric.published.set()
    metric.published = asyncio.Event()


def _columns(config: Config) -> tuple[Any, ...]:
    features = None if config.features is None else json.dumps(config.features)
    return config.n_features, config.estimator, json.dumps(config.settings), features


def _insert(connection: sqlite3.Connection, name: str, config: Config) -> int:
    done = connection.execute(
        "INSERT INTO metrics (name, n_features, estimator, settings, features, created) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (name, *_columns(config), time.time()),
    )
    assert done.lastrowid is not None
    return done.lastrowid


def _update(connection: sqlite3.Connection, number: int, config: Config) -> bool:
    """Change a metric that has no judgements; those on their way are written after this."""
    done = connection.execute(
        "UPDATE metrics SET n_features = ?, estimator = ?, settings = ?, features = ? "
        "WHERE id = ? AND sequence = 0",
        (*_columns(config), number),
    )
    return done.rowcount > 0


def _delete(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("DELETE FROM metrics WHERE id = ?", (number,))
