"""One SQLite file: one thread writes, group by group; each reads on a connection of its own.

What waits while a group goes to the disk is the next group, so many clients share the time that a
disk takes to say that it has written. A future is done when its group is on the disk.
"""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Job = tuple[Callable[[sqlite3.Connection], Any], "Future[Any]"]

GROUP = 256  # jobs that go to the disk together, at most
VERSION = 1  # of the tables
SCHEMA = """
CREATE TABLE metrics (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- names a folder, so no number is used twice
    name TEXT NOT NULL UNIQUE,
    n_features INTEGER NOT NULL,
    estimator TEXT NOT NULL,
    settings TEXT NOT NULL,
    features TEXT,                         -- their names, a JSON list
    created REAL NOT NULL,
    sequence INTEGER NOT NULL DEFAULT 0,   -- of the last judgement
    cut INTEGER NOT NULL DEFAULT 0,        -- judgements up to here are no longer in the log
    saved INTEGER NOT NULL DEFAULT 0,      -- judgements up to here are in the saved state
    summary TEXT NOT NULL DEFAULT '{}'     -- of that state
);
CREATE TABLE judgements (
    metric INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    time REAL NOT NULL,
    id TEXT, judge TEXT, a TEXT, b TEXT,
    y INTEGER NOT NULL,                    -- 0: unsure, which nothing is learned from
    points BLOB NOT NULL                   -- x, then z
);
CREATE UNIQUE INDEX by_sequence ON judgements (metric, sequence);
CREATE INDEX by_judge ON judgements (metric, judge, sequence) WHERE judge IS NOT NULL;
-- Digests of ids; these stay when the log is cut off.
CREATE TABLE ids (metric INTEGER, digest BLOB, PRIMARY KEY (metric, digest)) WITHOUT ROWID;
CREATE TABLE items (
    metric INTEGER NOT NULL, id TEXT NOT NULL, vector BLOB NOT NULL, text TEXT, image TEXT
);
CREATE UNIQUE INDEX by_item ON items (metric, id);
"""


class Database:
    """The server's file.

    Parameters
    ----------
    path : Path
        Made if missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failing = False  # whether the last group could not be written
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._own = threading.local()
        self._writing = self._connect()
        self._prepare()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=60.0
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        return connection

    def _prepare(self) -> None:
        (found,) = self._writing.execute("PRAGMA user_version").fetchone()
        if found == 0:
            self._writing.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT")
        elif found != VERSION:
            raise ValueError(
                f"{self.path} has tables of version {found}, and this metrack knows {VERSION}: "
                "upgrade metrack"
            )

    @property
    def reading(self) -> sqlite3.Connection:
        """The calling thread's connection, for reading."""
        if not hasattr(self._own, "connection"):
            self._own.connection = self._connect()
        connection: sqlite3.Connection = self._own.connection
        return connection

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> "Future[T]":
        """Let something be written; the future is done when it is on the disk."""
        future: Future[T] = Future()
        self._jobs.put((work, future))
        return future

    def probe(self) -> "Future[Any]":
        """Write nothing new, but to the disk."""
        return self.submit(lambda c: c.execute(f"PRAGMA user_version = {VERSION}"))

    def close(self) -> None:
        """Write what waits, and end."""
        self._jobs.put(None)
        self._thread.join()
        self._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._writing.close()

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
        jobs = [job for job in jobs if job[1].set_running_or_notify_cancel()]
        if not jobs:
            return
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            outcomes = [self._run(work) for work, _ in jobs]
            self._writing.execute("COMMIT")
            self.failing = False
        except Exception as error:  # the disk: nothing of the group was written
            if self._writing.in_transaction:
                self._writing.execute("ROLLBACK")
            outcomes = [(None, error)] * len(jobs)
            self.failing = True
        for (_, future), (result, failure) in zip(jobs, outcomes, strict=True):
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    def _run(self, work: Callable[[sqlite3.Connection], Any]) -> tuple[Any, Exception | None]:
        """One job; what it raises undoes it alone, unless the whole group is lost."""
        self._writing.execute("SAVEPOINT job")
        try:
            return work(self._writing), None
        except sqlite3.OperationalError:
            raise
        except Exception as error:
            self._writing.execute("ROLLBACK TO job")
            return None, error
        finally:
            if self._writing.in_transaction:
                self._writing.execute("RELEASE job")
