"""The log of judgements: written first, learned after."""

import hashlib
import io
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from metrack.checks import Floats, Ints
from metrack.serve.databases.database import Connection, Database
from metrack.serve.limits import Refused

CUT_AT_A_TIME = 5000  # rows; what others want to write waits meanwhile
EXPORTED_AT_A_TIME = 4096
COLUMNS = ("metric", "sequence", "time", "id", "judge", "a", "b", "y", "points")
KEYS = {"judgements": "sequence", "items": "id", "ids": "digest"}  # beside the metric


class Batch(NamedTuple):
    """Judgements of one request, checked."""

    points: Floats  # (n_pairs, 2, n_features)
    y: Ints  # 1 alike, -1 not alike, 0 unsure
    ids: Sequence[str | None]
    judges: Sequence[str | None]
    a: Sequence[str | None]
    b: Sequence[str | None]


class Receipt(NamedTuple):
    """What became of a batch."""

    accepted: int
    duplicates: int
    sequence: int  # of the last judgement of the metric


class Stretch(NamedTuple):
    """A stretch of the log."""

    sequences: Ints
    points: Floats
    y: Ints


def append(connection: Connection, metric: int, batch: Batch) -> Receipt:
    """Write what is not there yet."""
    last, n_features = _found(connection, metric)
    if batch.points.shape[2] != n_features:
        raise Refused(409, f"the metric was changed meanwhile, and has {n_features} features")
    digests = [None if each is None else _digest(each) for each in batch.ids]
    rows = [(metric, digest) for digest in digests if digest is not None]
    unknown = connection.insert_new("ids", ("metric", "digest"), rows)
    new: list[int] = []
    for i, digest in enumerate(digests):
        if digest is None or digest in unknown:
            new.append(i)
            unknown.discard(digest)  # once in a request, too
    now, points = time.time(), batch.points
    columns = batch.ids, batch.judges, batch.a, batch.b, batch.y.tolist()
    connection.insert(
        "judgements",
        COLUMNS,
        [
            (metric, last + k, now, *(column[i] for column in columns), points[i].tobytes())
            for k, i in enumerate(new, start=1)
        ],
    )
    last += len(new)
    connection.execute("UPDATE metrics SET sequence = ? WHERE id = ?", (last, metric))
    return Receipt(len(new), len(digests) - len(new), last)


def _found(connection: Connection, metric: int) -> tuple[int, int]:
    """Sequence and number of features; nobody else adds to the log before the end of the job."""
    found = connection.execute(
        f"SELECT sequence, n_features FROM metrics WHERE id = ? {connection.locking}", (metric,)
    )
    row: tuple[int, int] | None = found.fetchone()
    if row is None:
        raise Refused(404, "the metric was deleted meanwhile")
    return row


def _digest(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=16).digest()


def read(connection: Connection, metric: int, n_features: int, after: int, most: int) -> Stretch:
    """What follows a place in the log, where something does."""
    rows = connection.execute(
        "SELECT sequence, y, points FROM judgements WHERE metric = ? AND sequence > ? "
        "ORDER BY sequence LIMIT ?",
        (metric, after, most),
    ).fetchall()
    if not rows or not _are_whole(rows, after, n_features):
        _found(connection, metric)
        raise ValueError(
            f"judgements after {after:,} are missing from the log, or have another width: the "
            "table was changed by hand; restore it from a back-up"
        )
    sequences, y, points = zip(*rows, strict=True)
    stacked = np.frombuffer(b"".join(points)).reshape(len(rows), 2, n_features)
    return Stretch(np.array(sequences), stacked, np.array(y))


def _are_whole(rows: Sequence[tuple[int, int, bytes]], after: int, n_features: int) -> bool:
    return all(
        sequence == expected and len(points) == 16 * n_features
        for expected, (sequence, _, points) in enumerate(rows, start=after + 1)
    )


def cut(connection: Connection, metric: int, upto: int) -> int:
    """Take some of the oldest judgements off the log; returns how many, 0 when all are gone."""
    _found(connection, metric)
    connection.execute("UPDATE metrics SET cut = ? WHERE id = ? AND cut < ?", (upto, metric, upto))
    done = connection.execute(
        "DELETE FROM judgements WHERE metric = ? AND sequence IN (SELECT sequence FROM judgements "
        "WHERE metric = ? AND sequence <= ? ORDER BY sequence LIMIT ?)",
        (metric, metric, upto, CUT_AT_A_TIME),
    )
    return done.rowcount


def sweep(connection: Connection) -> bool:
    """Remove some of what a deleted metric left; False when all is gone."""
    gone = connection.execute("SELECT metric FROM gone LIMIT 1").fetchone()
    if gone is None:
        return False
    for table, key in KEYS.items():
        done = connection.execute(
            f"DELETE FROM {table} WHERE metric = ? AND {key} IN "
            f"(SELECT {key} FROM {table} WHERE metric = ? LIMIT ?)",
            (*gone, *gone, CUT_AT_A_TIME),
        )
        if done.rowcount:
            return True
    connection.execute("DELETE FROM gone WHERE metric = ?", gone)
    return True


def copy(
    connection: Connection, source: int, target: int, after: int
) -> tuple[int, Receipt | None]:
    """Append some of another metric's judgements, in their order.

    Returns
    -------
    int
        Sequence of the last of them in their own log.
    Receipt or None
        None when there were no more.
    """
    rows = connection.execute(
        "SELECT sequence, id, judge, a, b, y, points FROM judgements WHERE metric = ? AND "
        "sequence > ? ORDER BY sequence LIMIT ?",
        (source, after, CUT_AT_A_TIME),
    ).fetchall()
    if not rows:
        return after, None
    sequences, ids, judges, a, b, y, points = zip(*rows, strict=True)
    stacked = np.frombuffer(b"".join(points)).reshape(len(rows), 2, -1)
    return sequences[-1], append(connection, target, Batch(stacked, np.array(y), ids, judges, a, b))


def parquet(database: Database, metric: int, n_features: int, after: int) -> Iterator[bytes]:
    """The log as a Parquet file, piece by piece, in the columns that ``metrack track`` reads.

    Those that were unsure are left out: nothing is learned from them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, schema = _Pieces(), _schema(n_features)
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema) as writer:
        while True:
            with database.reading() as connection:
                rows = connection.execute(
                    "SELECT sequence, time, id, judge, a, b, y, points FROM judgements "
                    "WHERE metric = ? AND sequence > ? AND y != 0 ORDER BY sequence LIMIT ?",
                    (metric, after, EXPORTED_AT_A_TIME),
                ).fetchall()
            if not rows:
                break
            *columns, blobs = zip(*rows, strict=True)
            points = np.frombuffer(b"".join(blobs)).reshape(len(rows), 2 * n_features)
            arrays = [*columns, *points.T.copy()]
            writer.write_table(pa.table([pa.array(each) for each in arrays], schema))
            yield sink.taken()
            after = columns[0][-1]
    yield sink.taken()


def _schema(n_features: int) -> Any:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("id", "judge", "item_a", "item_b")]
    points = [(f"{side}_{i + 1}", pa.float64()) for side in "xz" for i in range(n_features)]
    numbers = [("sequence", pa.int64()), ("time", pa.float64())]
    return pa.schema([*numbers, *texts, ("y", pa.int8()), *points])


class _Pieces(io.RawIOBase):
    """A file whose bytes are taken away as they are written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def taken(self) -> bytes:
        found, self._parts = b"".join(self._parts), []
        return found


def judges(connection: Connection, metric: int) -> list[tuple[str, int, int, int]]:
    """Each judge's answers: alike, not alike, unsure."""
    rows = connection.execute(
        "SELECT judge, count(CASE WHEN y = 1 THEN 1 END), count(CASE WHEN y = -1 THEN 1 END), "
        "count(CASE WHEN y = 0 THEN 1 END) FROM judgements WHERE metric = ? "
        "AND judge IS NOT NULL GROUP BY judge ORDER BY judge",
        (metric,),
    )
    return [(name, *counts) for name, *counts in rows]


def judged(connection: Connection, metric: int, judge: str) -> set[frozenset[str]]:
    """Pairs of items that a judge has answered."""
    rows = connection.execute(
        "SELECT a, b FROM judgements WHERE metric = ? AND judge = ? AND a IS NOT NULL "
        "ORDER BY sequence DESC LIMIT 10000",
        (metric, judge),
    )
    return {frozenset(pair) for pair in rows}
