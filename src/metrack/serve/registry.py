"""All metrics of a server: made, found, told of judgements and items, and deleted."""

import json
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from metrack.serve import items as item_rows
from metrack.serve import judging, log, metric_rows
from metrack.serve.about import About
from metrack.serve.databases.database import SLOTS, Connection, Database, Saved
from metrack.serve.items import Items, NewItems
from metrack.serve.kinds.table import KINDS, NOT_HERE
from metrack.serve.learning import Config, brought
from metrack.serve.limits import NAME, Limits, Refused
from metrack.serve.metric import Metric, footprint
from metrack.serve.metric_rows import Row
from metrack.serve.questions import AllQuestions, Questions
from metrack.serve.teaching import Teaching
from metrack.storage import StateError, from_bytes, to_bytes


class Registry:
    """The metrics of a database.

    Parameters
    ----------
    database : Database
    limits : Limits
    n_threads : int
        That learn.
    """

    def __init__(self, database: Database, limits: Limits, n_threads: int) -> None:
        self.database, self.limits = database, limits
        self.metrics: dict[str, Metric] = {}
        self.by_number: dict[int, Metric] = {}
        self.by_slot: defaultdict[int, set[int]] = defaultdict(set)
        self._making = threading.Lock()
        self.teaching = Teaching(database, n_threads)
        self._questions = AllQuestions(self.teaching)
        self.refresh()
        self._sweep()
        database.attend(self)

    def refresh(self, numbers: Sequence[int] | None = None) -> None:
        """Take what the database says of all metrics, or of some."""
        with self._making:
            with self.database.reading() as connection:
                rows = metric_rows.read(connection, numbers)
            there = {row.number for row in rows}
            for number in list(self.by_number) if numbers is None else numbers:
                if number not in there and number in self.by_number:
                    self._remove(self.by_number[number])
            found = [self._known(row) for row in rows]
        for metric in found:
            self._catch_up(metric)

    def _known(self, row: Row) -> Metric:
        metric = self.by_number.get(row.number)
        if metric is None:
            metric = self.by_number[row.number] = self.metrics[row.name] = Metric(row)
            self.by_slot[row.number % SLOTS].add(row.number)
        metric.update(row)
        return metric

    def _catch_up(self, metric: Metric) -> None:
        """Learn what is new, or take what another process has learned."""
        if self.database.fence(metric.number) is not None:
            if metric.is_behind:
                self.teaching.wake(metric)
        elif metric.snapshot is not None and metric.snapshot.version < metric.version:
            self.teaching.follow(metric)

    def _remove(self, metric: Metric) -> None:
        metric.deleted = True
        del self.by_number[metric.number]
        self.by_slot[metric.number % SLOTS].discard(metric.number)
        if self.metrics.get(metric.name) is metric:  # there may be a new one by that name
            del self.metrics[metric.name]
        self.teaching.wake(metric)  # whose turn then is to remove its states
        self.teaching.announce(metric)

    def begin(self, number: int) -> None:
        """A metric is this process's to learn, or no longer."""
        metric = self.by_number.get(number)
        if metric is not None and (metric.learning is not None or metric.is_behind):
            self.teaching.wake(metric)

    def let_go(self, number: int) -> bool:
        """Save what was learned of a metric, for another process; False where it is at work."""
        metric = self.by_number.get(number)
        return metric is None or self.teaching.let_go(metric)

    def close(self) -> None:
        """Save what is not saved, and end."""
        self.teaching.close(self.metrics.values())
        self.database.close()

    def get(self, name: str) -> Metric:
        """A metric by its name."""
        try:
            return self.metrics[name]
        except KeyError:
            raise Refused(404, f"there is no metric {name!r}; make it with PUT first") from None

    def find(self, name: str) -> None:
        """Look for a metric that another process may have made a moment ago."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT id FROM metrics WHERE name = ?", (name,)).fetchall()
        self.refresh([number for (number,) in rows])

    def make(self, name: str, config: Config, about: About | None = None) -> tuple[Metric, bool]:
        """A metric by that name and of that kind, and whether it is new."""
        _check_name(name)
        self._check(config)
        with self._making:
            known = name in self.metrics
            if not known and (made := self._insert(name, config, about or About())) is not None:
                return made, True
        if not known:
            self.find(name)  # another process has made it a moment ago
        metric = self._configure(self.get(name), config)
        if about is not None and about != metric.about:
            job = partial(metric_rows.tell, number=metric.number, about=about)
            self.database.submit(job, metric.number).result()
            metric.about = about
        return metric, False

    def _insert(self, name: str, config: Config, about: About) -> Metric | None:
        if len(self.metrics) >= self.limits.metrics:
            raise Refused(409, f"there are {len(self.metrics):,} metrics, as many as may be")
        job = partial(metric_rows.insert, name=name, config=config, about=about)
        number = self.database.submit(job).result()
        row = None if number is None else Row(number, name, config, about, 0, 0, 0, 0, {})
        return None if row is None else self._known(row)

    def bring(self, name: str, zipped: bytes) -> Metric:
        """A new metric from a state that was exported."""
        _check_name(name)
        try:
            found = brought(from_bytes(zipped, "the zip"))
        except StateError as error:
            raise Refused(422, str(error)) from None
        config = found.config
        self.limits.check("features", config.n_features, "features")
        self.check_memory(footprint(config))
        saved = Saved(found.sequence, json.dumps(found.summary()), found.pack())
        with self._making:
            if name in self.metrics:
                raise Refused(409, f"there is a metric {name!r} already: take another name")
            if len(self.metrics) >= self.limits.metrics:
                raise Refused(409, f"there are {len(self.metrics):,} metrics, as many as may be")
            number = self.database.submit(partial(self._bring, name, config, saved)).result()
        self.refresh([number])
        return self.get(name)

    def _bring(self, name: str, config: Config, saved: Saved, connection: Connection) -> int:
        """As of a metric whose log was cut off."""
        number = metric_rows.insert(connection, name, config)
        if number is None:
            raise Refused(409, f"there is a metric {name!r} already: take another name")
        metric_rows.set_learned(connection, number, saved.sequence, saved.summary)
        self.database.place(connection, number, saved)
        return number

    def _configure(self, metric: Metric, config: Config) -> Metric:
        """Another kind of learner, while nothing was learned."""
        if metric.config == config:
            return metric
        with metric.lock:
            if config.n_features != metric.config.n_features and len(self.items_of(metric)):
                raise Refused(409, f"{metric.name!r} has items of another width; delete it first")
            if not self.database.submit(
                lambda c: metric_rows.configure(c, metric.number, config), metric.number
            ).result():
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
        if config.estimator not in KINDS:
            known = ", ".join(KINDS)
            raise Refused(422, f"estimator {config.estimator!r}; choose one of {known}")
        self.limits.check("features", config.n_features, "features")
        for name in NOT_HERE.keys() & config.settings.keys():
            raise Refused(422, f"{name} is no setting here; {NOT_HERE[name]}")
        if config.features is not None and len(config.features) != config.n_features:
            raise Refused(
                422, f"{len(config.features)} names for {config.n_features} features; one each"
            )
        self.check_memory(footprint(config))
        try:
            config.make()
        except (ValueError, TypeError, OverflowError) as error:
            raise Refused(422, str(error)) from None

    def check_memory(self, more: int) -> None:
        """Refuse what there is no memory for."""
        here = (m for m in list(self.metrics.values()) if self._is_here(m))
        used = sum(metric.memory for metric in here)
        if used + more > self.limits.memory:
            raise Refused(
                413,
                f"this needs some {more:,} bytes of memory, and {used:,} of {self.limits.memory:,} "
                "are in use: delete metrics, or raise --memory",
            )

    def _is_here(self, metric: Metric) -> bool:
        """Whether this process learns a metric, or has read it."""
        return metric.snapshot is not None or self.database.fence(metric.number) is not None

    def delete(self, metric: Metric) -> None:
        """Remove a metric, its log, items and states; waits for no learning."""
        with self._making:
            if metric.deleted:
                return
            job = partial(metric_rows.delete, number=metric.number)
            self.database.submit(job, metric.number).result()
            self._remove(metric)
        self._sweep()

    def _sweep(self) -> None:
        """Remove what deleted metrics left, in the background, some at a time."""

        def again(done: "Future[bool]") -> None:
            if done.exception() is None and done.result():
                self._sweep()

        self.database.submit(log.sweep).add_done_callback(again)

    def append(self, metric: Metric, batch: log.Batch) -> "Future[log.Receipt]":
        """Write judgements; they are learned when they are on the disk."""
        lag = metric.sequence - metric.version
        if lag > self.limits.lag:
            raise Refused(
                429,
                f"{lag:,} judgements are not learned yet, at most {self.limits.lag:,} may wait: "
                "send them again later",
                retry_after=2,
            )
        future = self.database.submit(lambda c: log.append(c, metric.number, batch), metric.number)

        # Here and not by whoever waits for it: that may have gone away.
        def learn(done: "Future[log.Receipt]") -> None:
            if not done.cancelled() and done.exception() is None:
                self._acknowledge(metric, done.result())

        future.add_done_callback(learn)
        return future

    def _acknowledge(self, metric: Metric, receipt: log.Receipt) -> None:
        metric.sequence = max(metric.sequence, receipt.sequence)
        self.teaching.wake(metric)

    def items_of(self, metric: Metric) -> Items:
        """Items of a metric; loads them if need be."""
        found = metric.items  # another thread may drop it, when another process has changed it
        if found is None:
            with metric.lock:
                if metric.items is None:
                    width = metric.config.n_features
                    with self.database.reading() as connection:
                        metric.items = Items.load(connection, metric.number, width)
                found = metric.items
        return found

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
            job = partial(item_rows.write, metric=metric.number, new=new)
            changes = self.database.submit(job, metric.number).result()
            if changes > changed.version:  # by another process
                metric.items = None
                return self.items_of(metric)
            metric.items = changed
        return changed

    def correct(
        self, metric: Metric, sequence: int, given: tuple[int, str | None, str | None]
    ) -> log.Receipt:
        """Put another answer in the place of an earlier one."""
        job = partial(
            judging.correct,
            metric=metric.number,
            n_features=metric.config.n_features,
            sequence=sequence,
            given=given,
        )
        receipt: log.Receipt = self.database.submit(job, metric.number).result()
        self._acknowledge(metric, receipt)
        return receipt

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
            job = partial(
                log.copy,
                source=source.number,
                target=target.number,
                width=target.config.n_features,
                after=after,
            )
            after, receipt = self.database.submit(job, target.number).result()
            if receipt is None:
                return target.sequence
            self._acknowledge(target, receipt)

    def cut(self, metric: Metric, upto: int) -> int:
        """Take judgements that a saved state has learned off the log; returns up to which."""
        with metric.lock:
            if self.database.fence(metric.number) is not None:
                self.teaching.save(metric, self.teaching.readable(metric))
            else:  # another process saves
                self.teaching.look(metric)
            upto = min(upto, metric.saved)
            job = partial(log.cut, metric=metric.number, upto=upto)
            while self.database.submit(job, metric.number).result():
                continue
            metric.cut = max(metric.cut, upto)
        return metric.cut

    def questions(self, metric: Metric) -> Questions:
        """What judges are asked, up to the log."""
        if metric.config.kind.example != "pairs":
            example = metric.config.kind.example
            raise Refused(409, f"{metric.name!r} learns from {example}: it has no pairs to judge")
        items = self.items_of(metric)
        if len(items) < 2:
            raise Refused(409, f"{metric.name!r} has {len(items)} items; put two at least")
        return self._questions.of(metric, items)

    def export(self, metric: Metric) -> bytes:
        """The state of now, as a zip that ``metrack.load`` reads."""
        with metric.lock:
            return to_bytes(self.teaching.readable(metric).pack())


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise Refused(422, "a name is up to 64 letters, digits, dots, hyphens and underscores")
