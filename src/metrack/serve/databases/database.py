"""What a server asks of its database, and the thread that writes to it.

One thread writes, group by group: what waits while a group goes to the disk is the next group, so
many clients share the time that a disk takes to say that it has written. A future is done when its
group is on the disk.
"""

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from metrack.serve.auth import Known
from metrack.serve.limits import Refused
from metrack.storage import State

T = TypeVar("T")
Outcome = tuple[Any, Exception | None]

GROUP = 256  # jobs that go to the disk together, at most
PATIENCE = 5.0  # seconds that a group may take
SLOTS = 1024  # a process has the right to learn slot by slot; a metric's is its number modulo this


class Unavailable(Refused):
    """The database cannot do it now; what was asked may be asked again."""

    def __init__(self, message: str, retry_after: int = 10) -> None:
        super().__init__(503, message, retry_after)


class Fenced(Exception):
    """Another process learns this metric by now, so that nothing was written."""


class Rows(Protocol):
    """What a query has found."""

    @property
    def rowcount(self) -> int: ...  # noqa: D102
    def fetchone(self) -> Any: ...  # noqa: D102
    def fetchall(self) -> list[Any]: ...  # noqa: D102
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Speaks the SQL that both databases know; parameters are question marks."""

    locking: str  # ends a SELECT whose row shall not change before the end of the job

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        """Run a statement."""

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], rest: str = ""
    ) -> None:
        """Insert many rows; ``rest`` follows in the statement."""

    def insert_new(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> set[Any]:
        """Insert those that are not there yet; returns what they have in the last column."""


class Saved(NamedTuple):
    """A state on its way to the disk."""

    sequence: int  # of the last judgement that it has learned
    summary: str  # JSON
    state: State


class Job(NamedTuple):
    """Something to be written."""

    work: Callable[[Connection], Any]
    future: "Future[Any]"
    order: int  # jobs of a group are done in this order
    since: float


class Audience(Protocol):
    """Is told of what other processes do."""

    @property
    def by_slot(self) -> Mapping[int, set[int]]:
        """Numbers of metrics."""

    def refresh(self, numbers: Sequence[int] | None = None) -> None:
        """Rows of these metrics, or of any, have changed."""

    def begin(self, number: int) -> None:
        """A metric is this process's to learn, or no longer."""

    def let_go(self, number: int) -> bool:
        """It will be another's; False where it is at work just now, and must be asked again."""


class Database(ABC):
    """Log, items and states of a server's metrics.

    Attributes
    ----------
    shared : bool
        Whether other processes read what this one publishes.
    pause : float
        Seconds between snapshots that are published, at least.
    save_after : float
        Seconds after which what was learned is saved, however little it is.
    """

    shared = False
    pause = 0.05
    save_after = 60.0

    def __init__(self) -> None:
        self._failed = False  # whether the last group could not be written
        self._begun = math.inf  # when the one of now was
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """A connection, for reading."""

    @abstractmethod
    def fence(self, metric: int) -> int | None:
        """The number under which this process may learn a metric; None where another does."""

    @abstractmethod
    def load(self, metric: int) -> State | None:
        """The newest saved state."""

    @abstractmethod
    def save(self, metric: int, fence: int, saved: Saved) -> None:
        """Keep a state; on the disk when it returns."""

    @abstractmethod
    def place(self, connection: Connection, metric: int, saved: Saved) -> None:
        """Keep a state of a metric that is being made, as the last part of the same job."""

    @abstractmethod
    def forget(self, metric: int) -> None:
        """Remove the states of a metric that was deleted."""

    @abstractmethod
    def probe(self) -> "Future[Any]":
        """Write nothing new, but to the disk."""

    @abstractmethod
    def _written(self, jobs: list[Job]) -> list[Outcome]:
        """Do jobs; raises an `Unavailable` where nothing of the group is on the disk."""

    @property
    def failing(self) -> bool:
        """Whether the last group could not be written, or this one takes too long."""
        return self._failed or time.monotonic() - self._begun > PATIENCE

    @property
    def tokens(self) -> Known | None:
        """Those that it keeps, if any."""
        return None

    @property
    def learns(self) -> bool:
        """Whether this process may learn any metric."""
        return True

    @abstractmethod
    def attend(self, audience: Audience) -> None:
        """Tell of what other processes do, from now on."""

    def published(self, metric: int) -> State | None:
        """The snapshot that another process has published last."""
        return None

    def publish(self, metric: int, fence: int, saved: Saved) -> "Future[Any]":
        """Let other processes read a snapshot."""
        raise NotImplementedError

    def submit(self, work: Callable[[Connection], T], order: int = 0) -> "Future[T]":
        """Let something be written; the future is done when it is on the disk.

        Jobs on the rows of a metric have its number as their order: processes that lock rows in
        the same order never wait for each other in a circle.
        """
        future: Future[T] = Future()
        self._jobs.put(Job(work, future, order, time.monotonic()))
        return future

    def close(self) -> None:
        """Write what waits, and end."""
        self._jobs.put(None)
        self._thread.join()

    def _write(self) -> None:
        while True:
            jobs = self._group()
            self._write_group([job for job in jobs if job is not None])
            if None in jobs:
                return

    def _group(self) -> list[Job | None]:
        jobs = [self._jobs.get()]
        while len(jobs) < GROUP and jobs[-1] is not None:
            try:
                jobs.append(self._jobs.get_nowait())
            except Empty:
                break
        return jobs

    def _write_group(self, jobs: list[Job]) -> None:
        jobs = [job for job in jobs if job.future.set_running_or_notify_cancel()]
        if not jobs:
            return
        jobs.sort(key=lambda job: (job.order % SLOTS, job.order))
        self._begun = time.monotonic()
        try:
            outcomes = self._written(jobs)
            self._failed = False
        except Exception as error:  # nothing of the group was written
            outcomes = [(None, error)] * len(jobs)
            self._failed = True
        self._begun = math.inf
        for job, (result, failure) in zip(jobs, outcomes, strict=True):
            if failure is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(failure)


def done_alone(
    connection: Connection, job: Job, lost: type[Exception] | tuple[type[Exception], ...]
) -> Outcome:
    """One job of a group; what it raises undoes it alone, unless the whole group is lost."""
    connection.execute("SAVEPOINT job")
    try:
        found = job.work(connection)
    except lost:
        raise
    except Exception as error:
        connection.execute("ROLLBACK TO SAVEPOINT job")
        connection.execute("RELEASE SAVEPOINT job")
        return None, error
    connection.execute("RELEASE SAVEPOINT job")
    return found, None
