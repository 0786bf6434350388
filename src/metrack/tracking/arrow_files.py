"""Parquet, Arrow and Feather files, and Arrow through pipes, batch by batch."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from metrack.tracking.sources import SourceError, Text, arrow, is_pipe

TAIL_ROWS = 16  # the same for tables
TABLE_BYTES = 1 << 23  # of numbers at a time


class Table:
    """Batches of a Parquet or Arrow file, or of an Arrow stream on a pipe.

    Parameters
    ----------
    source : str
    file : str
        Name in messages and checkpoints.
    format_ : {"parquet", "arrow"}
    pipe : Text, optional
        A pipe that is open already.
    """

    def __init__(self, source: str, file: str, format_: str, pipe: Text | None = None) -> None:
        pa = arrow(f"{format_} files")
        self.file = file
        try:
            if format_ == "parquet":
                import pyarrow.parquet as pq

                if is_pipe(source):
                    raise SourceError("Parquet cannot come through a pipe; use --format arrow")
                self._parquet: Any = pq.ParquetFile(source)
                self.schema = self._parquet.schema_arrow
            else:
                self._parquet = None
                stream = _open_arrow(pa, source, pipe)
                self._stream, self.schema = iter(stream), stream.schema
        except pa.ArrowException as error:
            raise SourceError(f"{file} is not {format_}: {error}") from None

    def batches(self, columns: Sequence[str], start: int) -> Iterator[tuple[int, Any]]:
        """Batches and their first rows, from a few rows before ``start`` on."""
        pa = arrow("tables")
        numbers = sum(_width(self.schema.field(name).type) for name in columns)
        size = max(1, TABLE_BYTES // (8 * max(1, numbers)))
        row = 0
        try:
            for row, batch in self._raw(columns, size, max(0, start - TAIL_ROWS)):
                for at in range(0, batch.num_rows, size):
                    yield row + at, batch.slice(at, size)
        except (pa.ArrowException, OSError) as error:
            raise SourceError(
                f"{self.file}: damaged or cut short after row {row:,}: {error}"
            ) from None

    def _raw(self, columns: Sequence[str], size: int, start: int) -> Iterator[tuple[int, Any]]:
        row = 0
        if self._parquet is not None:
            for group in range(self._parquet.num_row_groups):
                n_rows = self._parquet.metadata.row_group(group).num_rows
                if row + n_rows <= start:
                    row += n_rows
                    continue
                batches = self._parquet.iter_batches(size, row_groups=[group], columns=columns)
                for batch in batches:
                    yield row, batch
                    row += batch.num_rows
            return
        for batch in self._stream:
            yield row, batch.select(columns)
            row += batch.num_rows

    def first_row(self) -> dict[str, object]:
        """One row, where points are lists and their length is to be known."""
        if self._parquet is not None:
            for batch in self._parquet.iter_batches(1):
                return _first(batch)
            return {}
        for batch in self._stream:
            self._stream = itertools.chain([batch], self._stream)
            if batch.num_rows:
                return _first(batch)
        return {}


def _first(batch: Any) -> dict[str, object]:
    found: dict[str, object] = batch.slice(0, 1).to_pylist()[0]
    return found


def _width(kind: Any) -> int:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size)
    return 1024 if pa.types.is_list(kind) or pa.types.is_large_list(kind) else 1


def _open_arrow(pa: Any, source: str, pipe: Text | None) -> Any:
    """An Arrow stream, or the batches of an Arrow file."""
    if is_pipe(source):
        return pa.ipc.open_stream(_Readable(pipe or Text(source, source)))
    with open(source, "rb") as stream:
        if stream.read(6) != b"ARROW1":
            return pa.ipc.open_stream(source)
    return _Batches(pa.ipc.open_file(pa.memory_map(source)))


class _Batches:
    """An Arrow file, read like a stream."""

    def __init__(self, reader: Any) -> None:
        self.reader, self.schema = reader, reader.schema

    def __iter__(self) -> Iterator[Any]:
        return (self.reader.get_batch(i) for i in range(self.reader.num_record_batches))


class _Readable:
    """A pipe as pyarrow wants a file."""

    def __init__(self, pipe: Text) -> None:
        self.pipe, self.closed = pipe, False

    def read(self, n: int = -1) -> bytes:
        return self.pipe.take(n)

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
