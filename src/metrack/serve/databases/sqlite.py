"""SQLite: a file of one process, and a folder of states for each metric."""

import logging
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from metrack.serve import metric_rows
from metrack.serve.databases import schema
from metrack.serve.databases.database import (
    Audience,
    Connection,
    Database,
    Job,
    Outcome,
    Saved,
    Unavailable,
    done_alone,
)
from metrack.storage import State, StateFolder, has_state, read

logger = logging.getLogger(__name__)


class SQLiteConnection:
    """Rows in a file.

    Parameters
    ----------
    path : Path
    """

    locking = ""  # there is but one writer

    def __init__(self, path: Path) -> None:
        self.raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
        self.raw.execute("PRAGMA journal_mode = WAL")
        self.raw.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
        self.raw.execute("PRAGMA wal_autocheckpoint = 4000")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement."""
        return self.raw.execute(sql, parameters)

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], rest: str = ""
    ) -> None:
        """Insert many rows."""
        marks = ", ".join("?" * len(columns))
        self.raw.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) {rest}", rows
        )

    def insert_new(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> set[Any]:
        """Insert those that are not there yet; returns what they have in the last column."""
        marks = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        return {row[-1] for row in rows if self.raw.execute(sql, row).rowcount}


class SQLite(Database):
    """The file and the folders of one server.

    Parameters
    ----------
    path : Path
        Folder; it is this process's own.
    """

    def __init__(self, path: Path) -> None:
        self.file, self.states = path / "log.db", path / "states"
        self._own = threading.local()
        self._writing = SQLiteConnection(self.file)
        self._prepare()
        super().__init__()
        self._match_states()

    def _prepare(self) -> None:
        (self._version,) = self._writing.execute("PRAGMA user_version").fetchone()
        for number, script in schema.missing("sqlite", self._version, str(self.file)).items():
            self._writing.raw.executescript(
                f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT"
            )
            self._version = number

    def _match_states(self) -> None:
        """Make file and folders agree, where a crash or a back-up left one without the other."""
        rows = self._writing.execute("SELECT id, saved FROM metrics").fetchall()
        for number, saved in rows:
            if saved and not has_state(self.folder(number)):  # all is learned anew
                job = partial(metric_rows.note_saved, number=number, saved=0, summary="{}")
                self.submit(job).result()
        known = {str(number) for number, _ in rows}
        for folder in self.states.glob("*"):
            if folder.name not in known:  # it was deleted just before the end
                shutil.rmtree(folder)

    @contextmanager
    def reading(self) -> Iterator[SQLiteConnection]:
        """The calling thread's connection, for reading."""
        try:
            if not hasattr(self._own, "connection"):
                self._own.connection = SQLiteConnection(self.file)
            yield self._own.connection
        except sqlite3.OperationalError as error:
            raise _unavailable(error) from error

    def folder(self, metric: int) -> Path:
        """Where states are; from the number, never from the name."""
        return self.states / str(metric)

    def attend(self, audience: Audience) -> None:
        """Nobody else is there."""

    def fence(self, metric: int) -> int | None:
        """Nobody else learns here."""
        return 0

    def load(self, metric: int) -> State | None:
        """The newest saved state."""
        folder = self.folder(metric)
        return read(folder) if has_state(folder) else None

    def save(self, metric: int, fence: int, saved: Saved) -> None:
        """Keep a state; what is noted of it in the file may come later."""
        with StateFolder(self.folder(metric)) as folder:
            folder.write(saved.state)
        self.submit(lambda c: metric_rows.note_saved(c, metric, saved.sequence, saved.summary))

    def place(self, connection: Connection, metric: int, saved: Saved) -> None:
        """In a folder; one that is left where the job then fails is taken for nobody's."""
        self.forget(metric)
        with StateFolder(self.folder(metric)) as folder:
            folder.write(saved.state)

    def forget(self, metric: int) -> None:
        """Remove the states of a metric that was deleted."""
        shutil.rmtree(self.folder(metric), ignore_errors=True)

    def probe(self) -> "Future[Any]":
        """Write nothing new, but to the disk."""
        return self.submit(lambda c: c.execute(f"PRAGMA user_version = {self._version}"))

    def close(self) -> None:
        """Write what waits, and end."""
        super().close()
        self._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._writing.raw.close()

    def _written(self, jobs: list[Job]) -> list[Outcome]:
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            outcomes = [done_alone(self._writing, job, sqlite3.OperationalError) for job in jobs]
            self._writing.execute("COMMIT")
        except sqlite3.Error as error:
            if self._writing.raw.in_transaction:
                self._writing.execute("ROLLBACK")
            raise _unavailable(error) from error
        return outcomes


def _unavailable(error: Exception) -> Unavailable:
    logger.error("the log cannot be written or read: %s", error)
    return Unavailable(
        "the server cannot write to its disk: nothing of this was accepted; try again later"
    )
