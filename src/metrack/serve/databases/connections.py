"""Connections to PostgreSQL: made anew as soon as can be, and ended when they are silent."""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

LIMIT = 2.0  # seconds after which one that is silent loses what it has locked
WAIT = 10.0  # seconds that a request waits for a database that is away
AGAIN = 0.1  # seconds between attempts
LOST = (psycopg.OperationalError, psycopg.InternalError)  # with the connection, or its transaction
DEFAULTS = {
    "application_name": "metrack",
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,  # milliseconds until a machine that is silent counts as gone
}


def with_defaults(url: str) -> str:
    """An address, with what it leaves open."""
    try:
        given: dict[str, Any] = conninfo_to_dict(url)
        found: str = make_conninfo(**{**DEFAULTS, **given})
    except psycopg.ProgrammingError as error:
        raise ValueError(f"{error}; give an address such as postgresql://host/name") from None
    return found


def connected(url: str) -> "psycopg.Connection[Any]":
    """A connection that loses what it has locked when its process is silent."""
    found = psycopg.connect(url, autocommit=True)
    found.execute(b"SET idle_in_transaction_session_timeout = %d" % (1000 * LIMIT))
    return found


def connected_in_time(url: str) -> "psycopg.Connection[Any]":
    """The same, also where the database is just being started."""
    last = time.monotonic() + WAIT
    while True:
        try:
            return connected(url)
        except psycopg.OperationalError:
            if time.monotonic() > last:
                raise
            time.sleep(AGAIN)


class Connections:
    """Some connections that threads share.

    Not a pool that mends itself in the background: those wait longer and longer between attempts,
    and who takes over the learning shall not wait for that.

    Parameters
    ----------
    url : str
    most : int
        How many there may be.
    """

    def __init__(self, url: str, most: int) -> None:
        self._url = url
        self._room = threading.BoundedSemaphore(most)
        self._idle: list[psycopg.Connection[Any]] = []

    @contextlib.contextmanager
    def taken(self) -> "Iterator[psycopg.Connection[Any]]":
        """One that is alive, for a while."""
        if not self._room.acquire(timeout=WAIT):
            raise psycopg.OperationalError("all connections are in use")
        try:
            connection = self._alive()
            try:
                yield connection
            except LOST:
                connection.close()
                raise
            finally:
                if not connection.closed:
                    self._idle.append(connection)
        finally:
            self._room.release()

    def close(self) -> None:
        """Close those that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def _alive(self) -> "psycopg.Connection[Any]":
        while self._idle:
            found = self._idle.pop()
            with contextlib.suppress(psycopg.Error):
                found.execute(b"SELECT 1")
                return found
            found.close()
        return connected_in_time(self._url)
