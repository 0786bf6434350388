"""The log of judgements: written first, learned after."""

import hashlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from metrack.checks import Floats, Ints
from metrack.serve.databases.database import Connection
from metrack.serve.limits import Refused

CUT_AT_A_TIME = 5000  # rows; what others want to write waits meanwhile
COLUMNS = (
    *("metric", "sequence", "time", "id", "judge", "a", "b", "label", "corrects", "y", "points"),
)
KEYS = {"judgements": "sequence", "items": "id", "ids": "digest"}  # beside the metric


class Batch(NamedTuple):
    """Judgements of one request, checked."""

    points: Floats  # (n, members, n_features): pairs, triplets, or points with classes
    y: Ints  # 1 alike, -1 not alike, 0 unsure; 1 of triplets and points
    ids: Sequence[str | None]
    judges: Sequence[str | None]
    a: Sequence[str | None]
    b: Sequence[str | None]
    labels: Sequence[str | None]  # classes
    corrects: Sequence[int | None]  # sequences of those in whose place these stand
    times: Sequence[float] | None = None  # where they are not of now


class Receipt(NamedTuple):
    """What became of a batch."""

    accepted: int
    duplicates: int
    sequence: int  # of the last judgement of the metric


class Told(NamedTuple):
    """A judgement of a pair, and of which items it was."""

    sequence: int
    judge: str | None
    a: str | None
    b: str | None
    y: int
    points: bytes
    corrects: int | None


class Stretch(NamedTuple):
    """A stretch of the log."""

    sequences: Ints
    points: Floats
    y: Ints
    times: Floats
    labels: list[str | None]
    corrects: Ints  # 0 where none is


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
    points = batch.points
    times = [time.time()] * len(digests) if batch.times is None else batch.times
    columns = (
        *(batch.ids, batch.judges, batch.a, batch.b, batch.labels, batch.corrects),
        batch.y.tolist(),
    )
    connection.insert(
        "judgements",
        COLUMNS,
        [
            (metric, last + k, times[i], *(column[i] for column in columns), points[i].tobytes())
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


def read(
    connection: Connection, metric: int, shape: tuple[int, int], after: int, most: int
) -> Stretch:
    """What follows a place in the log, where something does; ``shape`` is that of an example."""
    rows = connection.execute(
        "SELECT sequence, y, points, time, label, corrects FROM judgements WHERE metric = ? "
        "AND sequence > ? ORDER BY sequence LIMIT ?",
        (metric, after, most),
    ).fetchall()
    if not rows or not _are_whole(rows, after, shape):
        _found(connection, metric)
        raise ValueError(
            f"judgements after {after:,} are missing from the log, or have another width: the "
            "table was changed by hand; restore it from a back-up"
        )
    sequences, y, points, times, labels, corrects = zip(*rows, strict=True)
    stacked = np.frombuffer(b"".join(points)).reshape(len(rows), *shape)
    corrected = np.array([each or 0 for each in corrects])
    columns = np.array(sequences), stacked, np.array(y), np.array(times)
    return Stretch(*columns, list(labels), corrected)


def told(connection: Connection, metric: int, after: int, most: int) -> list[Told]:
    """What follows a place in the log of pairs, and of which items it was."""
    rows = connection.execute(
        "SELECT sequence, judge, a, b, y, points, corrects FROM judgements WHERE metric = ? "
        "AND sequence > ? ORDER BY sequence LIMIT ?",
        (metric, after, most),
    )
    return [Told(*row) for row in rows]


def _are_whole(rows: Sequence[tuple[Any, ...]], after: int, shape: tuple[int, int]) -> bool:
    size = 8 * shape[0] * shape[1]
    return all(
        sequence == expected and len(points) == size
        for expected, (sequence, _, points, *_) in enumerate(rows, start=after + 1)
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
    connection: Connection, source: int, target: int, width: int, after: int
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
        "SELECT sequence, time, id, judge, a, b, label, corrects, y, points FROM judgements "
        "WHERE metric = ? AND sequence > ? ORDER BY sequence LIMIT ?",
        (source, after, CUT_AT_A_TIME),
    ).fetchall()
    if not rows:
        return after, None
    sequences, times, ids, judges, a, b, labels, corrects, y, points = zip(*rows, strict=True)
    stacked = np.frombuffer(b"".join(points)).reshape(len(rows), -1, width)
    batch = Batch(stacked, np.array(y), ids, judges, a, b, labels, corrects, times)
    return sequences[-1], append(connection, target, batch)


def judges(connection: Connection, metric: int) -> list[tuple[str, int, int, int]]:
    """Each judge's answers as they stand: alike, not alike, unsure."""
    rows = connection.execute(
        "SELECT judge, count(CASE WHEN y = 1 THEN 1 END), count(CASE WHEN y = -1 THEN 1 END), "
        "count(CASE WHEN y = 0 THEN 1 END) FROM judgements j WHERE metric = ? "
        "AND judge IS NOT NULL AND NOT EXISTS (SELECT 1 FROM judgements c "
        "WHERE c.metric = j.metric AND c.corrects = j.sequence) GROUP BY judge ORDER BY judge",
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
