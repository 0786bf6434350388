"""PostgreSQL: tables that any number of processes share, on any number of machines."""

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import errors

from metrack.serve.auth import Known
from metrack.serve.databases.connections import (
    AGAIN,
    LIMIT,
    LOST,
    WAIT,
    Connections,
    connected,
    connected_in_time,
    with_defaults,
)
from metrack.serve.databases.database import (
    SLOTS,
    Audience,
    Connection,
    Database,
    Fenced,
    Job,
    Outcome,
    Saved,
    Unavailable,
    done_alone,
)
from metrack.serve.databases.following import Following
from metrack.serve.databases.shares import Shares
from metrack.serve.databases.tokens import TokenTable
from metrack.serve.databases.upgrading import upgrade
from metrack.serve.limits import Refused
from metrack.storage import (
    CorruptStateError,
    NewerStateError,
    State,
    StateError,
    from_bytes,
    to_bytes,
)

logger = logging.getLogger(__name__)

N_READING = 4  # connections
TYPES = {
    "metric": "bigint",
    "sequence": "bigint",
    "corrects": "bigint",
    "time": "double precision",
    "y": "smallint",
    "points": "bytea",
    "digest": "bytea",
    "vector": "bytea",
}  # of columns; all others are text
OVER = (
    "ON CONFLICT (metric) DO UPDATE SET fence = excluded.fence, sequence = excluded.sequence, "
    "body = excluded.body"
)


class PostgresConnection:
    """Rows in tables.

    Parameters
    ----------
    raw : psycopg.Connection
    """

    locking = "FOR UPDATE"

    def __init__(self, raw: "psycopg.Connection[Any]") -> None:
        self.raw = raw

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> "psycopg.Cursor[Any]":
        """Run a statement."""
        try:
            return self.raw.execute(sql.replace("?", "%s").encode(), parameters, binary=True)
        except LOST:
            raise
        except psycopg.Error as error:
            raise refusal(error) from error

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], rest: str = ""
    ) -> None:
        """Insert many rows."""
        if rows:
            self._insert(table, columns, rows, rest)

    def insert_new(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> set[Any]:
        """Insert those that are not there yet; returns what they have in the last column."""
        if not rows:
            return set()
        rest = f"ON CONFLICT DO NOTHING RETURNING {columns[-1]}"
        return {found for (found,) in self._insert(table, columns, rows, rest)}

    def _insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], rest: str
    ) -> "psycopg.Cursor[Any]":
        """In one statement, and not by COPY, in which a process that stops keeps its locks."""
        types = ", ".join(f"%b::{TYPES.get(name, 'text')}[]" for name in columns)
        sql = f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({types}) {rest}"
        return self.execute(sql, [list(column) for column in zip(*rows, strict=True)])


class Postgres(Database):
    """The tables of one schema.

    Parameters
    ----------
    url : str
        As libpq knows it: ``postgresql://...``.
    learns : bool
        Whether this process takes its share of the learning.
    """

    shared = True
    pause = 0.2
    save_after = 600.0  # of many that learn a little, states would be most of what is written

    def __init__(self, url: str, learns: bool = True) -> None:
        self.url = with_defaults(url)
        try:
            with connected_in_time(self.url) as connection:
                upgrade(connection)
        except psycopg.OperationalError as error:
            raise ConnectionError(f"the database cannot be reached: {error}") from None
        self.held: dict[int, int] = {}  # fences, by slot
        self._tokens = TokenTable(self)
        self._raw: psycopg.Connection[Any] | None = None
        self._connections = Connections(self.url, N_READING)
        self._following: Following | None = None
        self._shares: Shares | None = None
        self._may_learn = learns
        super().__init__()
        self._tokens.refresh()

    @property
    def tokens(self) -> Known | None:
        """Those that were there at the start, or any since then; without, none are asked for."""
        return self._tokens if len(self._tokens) else None

    @property
    def learns(self) -> bool:
        """Whether this process may learn any metric."""
        return bool(self.held)

    def attend(self, audience: Audience) -> None:
        """Tell of what other processes do, from now on; take a share of the learning."""
        self._following = Following(self.url, audience, self._tokens)
        if self._may_learn:
            self._shares = Shares(self.url, audience, self.held, LIMIT)

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        """A connection, for reading."""
        try:
            with self._connections.taken() as raw:
                yield PostgresConnection(raw)
        except psycopg.Error as error:
            raise refusal(error) from error

    def fence(self, metric: int) -> int | None:
        """The number under which this process may learn a metric; None where another does."""
        return self.held.get(metric % SLOTS)

    def load(self, metric: int) -> State | None:
        """The newest saved state."""
        return self._state("states", metric)

    def save(self, metric: int, fence: int, saved: Saved) -> None:
        """Keep a state; on the disk when it returns."""
        job = partial(keep_state, metric, fence, saved.sequence, to_bytes(saved.state))
        self.submit(job, metric).result()

    def published(self, metric: int) -> State | None:
        """The snapshot that another process has published last."""
        try:
            return self._state("snapshots", metric)
        except CorruptStateError as error:
            logger.warning("%s; it will be published anew", error)
            return None

    def publish(self, metric: int, fence: int, saved: Saved) -> "Future[None]":
        """Let other processes read a snapshot."""
        body = to_bytes(saved.state)
        return self.submit(partial(keep_snapshot, metric, fence, saved, body), metric)

    def place(self, connection: Connection, metric: int, saved: Saved) -> None:
        """As a row."""
        row = metric, 0, saved.sequence, to_bytes(saved.state)
        connection.execute("INSERT INTO states VALUES (?, ?, ?, ?)", row)

    def forget(self, metric: int) -> None:
        """Remove the states of a metric that was deleted: these are rows, and swept away."""

    def probe(self) -> "Future[Any]":
        """Write nothing new, but to the disk."""
        return self.submit(lambda c: c.execute("SELECT pg_current_xact_id()").fetchone())

    def close(self) -> None:
        """Write what waits, let others learn, and end."""
        for each in (self._following, self._shares):
            if each is not None:
                each.close()
        super().close()
        self._drop()
        self._connections.close()

    def _state(self, table: str, metric: int) -> State | None:
        with self.reading() as connection:
            sql = f"SELECT body FROM {table} WHERE metric = ?"
            row = connection.execute(sql, (metric,)).fetchone()
        try:
            return None if row is None else from_bytes(row[0], f"the row of metric {metric}")
        except NewerStateError:
            raise
        except StateError as error:
            raise CorruptStateError(str(error)) from None

    def _written(self, jobs: list[Job]) -> list[Outcome]:
        """Do jobs, again where the connection is lost before they are committed."""
        last = min(job.since for job in jobs) + WAIT
        while True:
            asked = False  # for a commit, of which nobody knows then whether it was one
            try:
                connection = self._writing()
                connection.execute("BEGIN")
                outcomes = [done_alone(connection, job, LOST) for job in jobs]
                asked = True
                connection.execute("COMMIT")
                return outcomes
            except psycopg.Error as error:
                self._drop()
                self._failed = True
                full = isinstance(error, errors.DiskFull)
                if asked or full or time.monotonic() > last:
                    raise refusal(error) from error
                time.sleep(AGAIN)

    def _writing(self) -> PostgresConnection:
        if self._raw is None:
            self._raw = connected(self.url)
        return PostgresConnection(self._raw)

    def _drop(self) -> None:
        if self._raw is not None:
            self._raw.close()
            self._raw = None


def refusal(error: psycopg.Error) -> Refused:
    """What a client is told."""
    said = str(error).partition("\n")[0]
    logger.error("the database: %s", said)
    if isinstance(error, psycopg.DataError):
        return Refused(422, f"the database does not take this: {said}")
    if isinstance(error, errors.DiskFull):
        return Unavailable("the database's disk is full: nothing of this was accepted")
    if isinstance(error, errors.InsufficientPrivilege):
        return Unavailable(f"this server's role lacks a right in the database: {said}")
    if isinstance(error, psycopg.ProgrammingError | psycopg.IntegrityError):
        return Unavailable(f"the database's tables are not as they should be: {said}")
    return Unavailable("the database cannot be reached; send it again, with the same ids", 2)


def keep_state(metric: int, fence: int, sequence: int, body: bytes, connection: Connection) -> None:
    """Write a state, where nobody else has the right to."""
    _check(connection, metric, fence)
    row = metric, fence, sequence, body
    connection.execute("INSERT INTO states VALUES (?, ?, ?, ?) " + OVER, row)
    _note(connection, metric, "saved", sequence)


def keep_snapshot(
    metric: int, fence: int, saved: Saved, body: bytes, connection: Connection
) -> None:
    """Write a snapshot, where nobody else has the right to."""
    _check(connection, metric, fence)
    row = metric, fence, saved.sequence, body
    # One that has just begun may know less than what the last one has published.
    newer = " WHERE snapshots.sequence <= excluded.sequence"
    done = connection.execute("INSERT INTO snapshots VALUES (?, ?, ?, ?) " + OVER + newer, row)
    if done.rowcount:
        _note(connection, metric, "summary", saved.summary)


def _check(connection: Connection, metric: int, fence: int) -> None:
    """Raise `Fenced` where another process learns by now; until the commit none begins to."""
    held = connection.execute(
        "SELECT 1 FROM slots WHERE slot = ? AND fence = ? FOR SHARE", (metric % SLOTS, fence)
    )
    if held.fetchone() is None:
        raise Fenced


def _note(connection: Connection, metric: int, column: str, value: Any) -> None:
    done = connection.execute(f"UPDATE metrics SET {column} = ? WHERE id = ?", (value, metric))
    if not done.rowcount:
        raise Refused(404, "the metric was deleted meanwhile")
