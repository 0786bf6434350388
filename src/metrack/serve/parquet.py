"""Logs and items as Parquet files: written piece by piece, and read back."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from metrack.serve import bodies
from metrack.serve.arrow import Table
from metrack.serve.databases.database import Database
from metrack.serve.items import NewItems
from metrack.serve.kinds.kind import Kind
from metrack.serve.limits import Limits, Refused
from metrack.serve.log import Batch

PARQUET = "application/vnd.apache.parquet"
AT_A_TIME = 4096  # rows
SMALL = 16  # rows that are unpacked at a time: a few bytes of a file may stand for many
MOST = 1 << 28  # bytes of a file, unpacked
TEXTS = ("id", "judge", "item_a", "item_b", "label")


def log(
    database: Database, metric: int, kind: Kind, n_features: int, after: int
) -> Iterator[bytes]:
    """The log, in the columns that ``metrack track`` reads.

    Those that were unsure are left out: nothing is learned from them.
    """
    import pyarrow as pa

    texts = [(name, pa.string()) for name in TEXTS]
    numbers = [("sequence", pa.int64()), ("time", pa.float64())]
    points = [(name, pa.float64()) for name in columns_of(kind, n_features)]
    schema = pa.schema([*numbers, *texts, ("corrects", pa.int64()), ("y", pa.int8()), *points])

    def pieces() -> Iterator[Any]:
        last = after
        while rows := _rows(
            database,
            "SELECT sequence, time, id, judge, a, b, label, corrects, y, points FROM judgements "
            "WHERE metric = ? AND sequence > ? AND y != 0 ORDER BY sequence LIMIT ?",
            (metric, last, AT_A_TIME),
        ):
            *columns, blobs = zip(*rows, strict=True)
            points = np.frombuffer(b"".join(blobs)).reshape(len(rows), -1)
            yield pa.table([pa.array(each) for each in [*columns, *points.T.copy()]], schema)
            last = columns[0][-1]

    return _written(schema, pieces())


def items(database: Database, metric: int) -> Iterator[bytes]:
    """All items, in the columns that they are put with."""
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("texts", "images", "records")]
    schema = pa.schema([("ids", pa.string()), ("vectors", pa.list_(pa.float64())), *texts])

    def pieces() -> Iterator[Any]:
        last = -1
        while rows := _rows(
            database,
            "SELECT rowid, id, vector, text, image, record FROM items WHERE metric = ? AND "
            "rowid > ? ORDER BY rowid LIMIT ?",
            (metric, last, AT_A_TIME),
        ):
            numbers, ids, vectors, *shown = zip(*rows, strict=True)
            columns = [ids, [np.frombuffer(each) for each in vectors], *shown]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            yield pa.table(arrays, schema)
            last = numbers[-1]

    return _written(schema, pieces())


def columns_of(kind: Kind, n_features: int) -> list[str]:
    """Names of the features of an example."""
    return [f"{side}_{i + 1}" for side in kind.sides for i in range(n_features)]


def _rows(database: Database, sql: str, parameters: tuple[int, ...]) -> list[Any]:
    with database.reading() as connection:
        return connection.execute(sql, parameters).fetchall()


def _written(schema: Any, tables: Iterator[Any]) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = _Pieces()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema) as writer:
        for table in tables:
            writer.write_table(table)
            yield sink.taken()
    yield sink.taken()


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


def judgements_of(body: bytes, kind: Kind, n_features: int, limits: Limits) -> Batch:
    """Judgements as `log` writes them, at the times that they have there.

    Corrections come as judgements of their own.
    """
    names = columns_of(kind, n_features)
    table = Table(_read(body, ["y", *names], limits.lag))
    points = np.stack([table.numbers(name) for name in names], axis=1)
    points = points.reshape(table.n_rows, kind.members, n_features)
    times = table.numbers("time").tolist() if "time" in table else None
    y, nothing = bodies.labels_of(table.labels()), [None] * table.n_rows
    ids, judges, a, b, labels = (table.texts(name) for name in TEXTS)
    batch = Batch(points, y, ids, judges, a, b, labels, nothing, times)
    return bodies.checked_batch(batch, kind, n_features)


def new_items(body: bytes, n_features: int, limits: Limits) -> NewItems:
    """Items as `items` writes them."""
    table = _read(body, ["ids", "vectors"], limits.items)
    return bodies.table_items(Table(table, bodies.ITEM_COLUMNS), n_features)


def _read(body: bytes, needed: list[str], most: int) -> Any:
    """A file in memory, where that is not far larger than the body makes believe."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(body))
        names, n_rows = file.schema_arrow.names, file.metadata.num_rows
        if n_rows > most:
            raise Refused(413, f"{n_rows:,} rows; at most {most:,}: bring them in several files")
        if missing := [name for name in needed if name not in names]:
            raise Refused(422, f"the file has no column {missing[0]!r}")
        parts, size = [], 0
        for part in file.iter_batches(batch_size=SMALL):
            size += part.nbytes
            if size > MOST:
                raise Refused(413, f"the file has more than {MOST:,} bytes, unpacked")
            parts.append(part)
        table = pa.Table.from_batches(parts, file.schema_arrow).combine_chunks()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Refused(400, f"the body is no Parquet file: {error}") from None
    return table
