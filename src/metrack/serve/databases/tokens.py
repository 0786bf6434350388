"""Tokens in a database: what a file of them says, as rows."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from metrack.serve.auth import Identity
from metrack.serve.databases.database import Connection, Database
from metrack.serve.tokens import Entry, new_token

COLUMNS = "name, scopes, metrics, digest, expires"


class TokenTable:
    """Rows of tokens, as they were when they were last read.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, Identity] = {}

    def __len__(self) -> int:
        return len(self._known)

    def refresh(self) -> None:
        """Read them again; while the database is away, the last ones count."""
        with self._database.reading() as connection:
            self._known = {each.digest: each.identity() for each in _read(connection)}

    def find(self, digest: str) -> Identity | None:
        """Whose token has this digest."""
        return self._known.get(digest)


def _read(connection: Connection) -> list[Entry]:
    return [Entry(*row) for row in connection.execute(f"SELECT {COLUMNS} FROM tokens")]


@contextmanager
def _opened(url: str) -> Iterator[Any]:
    from metrack.serve.databases.postgres import Postgres

    with closing(Postgres(url)) as database:
        yield database


def add_to_database(
    url: str, name: str, scopes: str, metrics: str, days: float | None = None
) -> str:
    """Add a token to the database at an address; returns it, and keeps its digest alone."""
    token, entry = new_token(name, scopes, metrics, days)
    sql = f"INSERT INTO tokens ({COLUMNS}) VALUES (?, ?, ?, ?, ?)"
    with _opened(url) as database:
        database.submit(lambda c: c.execute(sql, entry).rowcount).result()
    return token


def read_from_database(url: str) -> list[Entry]:
    """All tokens of the database at an address."""
    with _opened(url) as database, database.reading() as connection:
        return _read(connection)


def withdraw_from_database(url: str, name: str) -> int:
    """Remove the tokens of a name from the database at an address; returns how many they were."""
    sql = "DELETE FROM tokens WHERE name = ?"
    with _opened(url) as database:
        n_gone: int = database.submit(lambda c: c.execute(sql, (name,)).rowcount).result()
    return n_gone
