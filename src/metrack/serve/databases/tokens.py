"""Tokens in a database: what a file of them says, as rows."""

from contextlib import closing

from metrack.serve.auth import Identity, identity_of, new_token
from metrack.serve.databases.database import Database


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
            rows = connection.execute("SELECT digest, name, scopes, metrics FROM tokens").fetchall()
        self._known = {digest: identity_of(*rest) for digest, *rest in rows}

    def find(self, digest: str) -> Identity | None:
        """Whose token has this digest."""
        return self._known.get(digest)


def add_to_database(url: str, name: str, scopes: str, metrics: str) -> str:
    """Add a token to the database at an address; returns it, and keeps its digest alone."""
    from metrack.serve.databases.postgres import Postgres

    token, digest = new_token(name, scopes, metrics)
    row = digest, name, scopes, metrics
    sql = "INSERT INTO tokens VALUES (?, ?, ?, ?)"
    with closing(Postgres(url)) as database:
        database.submit(lambda c: c.execute(sql, row).rowcount).result()
    return token
