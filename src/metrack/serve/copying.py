"""A folder's metrics into a shared database: each whole or not at all, so it can be done again."""

import logging
from functools import partial

from metrack.serve import log, metric_rows
from metrack.serve.databases.database import Connection, Database
from metrack.serve.databases.sqlite import SQLite
from metrack.serve.limits import Refused
from metrack.serve.metric_rows import Row
from metrack.storage import CorruptStateError, to_bytes

logger = logging.getLogger(__name__)

AT_A_TIME = 5000  # rows
ITEMS = ("metric", "id", "vector", "text", "image", "record")


def copy_all(source: SQLite, target: Database) -> list[str]:
    """Copy metrics that are not there yet; returns their names."""
    with source.reading() as old, target.reading() as new:
        rows, there = metric_rows.read(old), {row.name: row for row in metric_rows.read(new)}
        copied = []
        for row in rows:
            other = there.get(row.name)
            if other is None:
                state = _state(source, row)
                try:
                    target.submit(partial(_copy, old, row, state)).result()
                except Refused as error:
                    raise ValueError(f"{row.name!r} was not copied: {error}") from None
                copied.append(row.name)
            elif (other.config, other.sequence) != (row.config, row.sequence):
                raise ValueError(
                    f"the database has another metric {row.name!r}, with {other.sequence:,} "
                    f"judgements and not {row.sequence:,}: delete one of them"
                )
    return copied


def _state(source: SQLite, row: Row) -> bytes | None:
    try:
        state = source.load(row.number)
    except CorruptStateError as error:
        if row.cut:
            raise
        logger.warning("%s; all of the log will be learned again", error)
        return None
    return None if state is None else to_bytes(state)


def _copy(old: Connection, row: Row, state: bytes | None, new: Connection) -> None:
    """One metric, within one job."""
    number = metric_rows.insert(new, row.name, row.config, row.about)
    assert number is not None
    _copy_rows(old, new, ("judgements", "sequence", log.COLUMNS), row.number, number)
    _copy_rows(old, new, ("ids", "digest", ("metric", "digest")), row.number, number)
    _copy_rows(old, new, ("items", "rowid", ITEMS), row.number, number)
    new.execute(
        "UPDATE metrics SET sequence = ?, cut = ? WHERE id = ?", (row.sequence, row.cut, number)
    )
    if state is not None:
        new.execute("INSERT INTO states VALUES (?, 0, ?, ?)", (number, row.saved, state))
        new.execute("UPDATE metrics SET saved = ? WHERE id = ?", (row.saved, number))


def _copy_rows(
    old: Connection,
    new: Connection,
    table: tuple[str, str, tuple[str, ...]],
    source: int,
    target: int,
) -> None:
    """Rows of a table, in the order of one of its columns."""
    name, key, columns = table
    wanted = ", ".join((key, *columns[1:]))  # the first is the metric
    first = f"SELECT {wanted} FROM {name} WHERE metric = ? ORDER BY {key} LIMIT ?"
    next_ones = f"SELECT {wanted} FROM {name} WHERE metric = ? AND {key} > ? ORDER BY {key} LIMIT ?"
    rows = old.execute(first, (source, AT_A_TIME)).fetchall()
    while rows:
        new.insert(name, columns, [(target, *row[1:]) for row in rows])
        rows = old.execute(next_ones, (source, rows[-1][0], AT_A_TIME)).fetchall()
