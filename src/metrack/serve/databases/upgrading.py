"""PostgreSQL's tables: brought up to this program, and looked at before anything rests on them."""

from typing import Any

import psycopg
from psycopg import errors

from metrack.serve.databases import schema

OLDEST = 14  # the first that ends sessions which are idle for too long
LOCK = int.from_bytes(b"metrack", "big")  # one process at a time brings tables up
TABLES = [
    *("metrics", "judgements", "ids", "items", "gone"),
    *("tokens", "slots", "states", "snapshots"),
]
RIGHTS = ["SELECT", "INSERT", "UPDATE", "DELETE"]
LACKING = """
SELECT given || ' on ' || name FROM unnest(%s::text[]) name, unnest(%s::text[]) given
WHERE NOT has_table_privilege(name, given)
"""


def upgrade(connection: "psycopg.Connection[Any]") -> None:
    """Apply what is missing; refuses a database that this program cannot work with."""
    major = connection.info.server_version // 10000
    if major < OLDEST:
        raise ValueError(f"this is PostgreSQL {major}; {OLDEST} or newer is needed")
    try:
        with connection.transaction():
            _apply_missing(connection)
        lacking = [right for (right,) in connection.execute(LACKING.encode(), (TABLES, RIGHTS))]
    except errors.InsufficientPrivilege as error:
        raise ValueError(
            f"role {connection.info.user!r} may not make metrack's tables ({_first_line(error)}); "
            "give it a schema or a database of its own"
        ) from None
    except (psycopg.ProgrammingError, errors.ReadOnlySqlTransaction) as error:
        raise ValueError(
            f"metrack's tables cannot be made or used here: {_first_line(error)}; give it a schema "
            "or a database of its own"
        ) from None
    if lacking:
        raise ValueError(f"role {connection.info.user!r} lacks rights: {', '.join(lacking)}")


def _apply_missing(connection: "psycopg.Connection[Any]") -> None:
    connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (LOCK,))
    row = connection.execute(b"SELECT to_regclass('metrack_versions') IS NOT NULL").fetchone()
    assert row is not None
    version = 0
    if row[0]:
        row = connection.execute(
            b"SELECT coalesce(max(version), 0) FROM metrack_versions"
        ).fetchone()
        assert row is not None
        version = row[0]
    for number, script in schema.missing("postgres", version, "the database").items():
        connection.execute(script.encode())
        connection.execute(b"INSERT INTO metrack_versions VALUES (%s)", (number,))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
