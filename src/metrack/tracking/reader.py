"""Rows of a source, file after file, each batch with the checkpoint where it ends."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metrack.tracking.arrow_files import Table
from metrack.tracking.columns import ReadSpec, pair_layout
from metrack.tracking.formats import BOM, BadRow, CsvFormat, Format, JsonFormat, parse
from metrack.tracking.layouts import Layout, RowError, Rows
from metrack.tracking.lines import lines_of
from metrack.tracking.sources import (
    PIPE,
    TAIL_ROWS,
    Block,
    Checkpoint,
    SavedCheckpoint,
    SourceError,
    Text,
    files_of,
    format_of,
    is_pipe,
    tail_hash,
)

ARROW_STREAM = b"\xff\xff\xff\xff"

FindLayout = Callable[[Sequence[str], Mapping[str, object], ReadSpec], tuple[Layout, list[str]]]


class Batch(NamedTuple):
    """Rows, those that cannot be used, and all that is known where they end."""

    rows: Rows
    bad: list[BadRow]
    end: Checkpoint
    checkpoint_after: Callable[[int], Checkpoint]  # so many rows, good or bad
    before: int = 0  # files of a folder that come before this one
    features: list[str] | None = None  # their names
    columns: list[str] | None = None  # of the last file of text

    def checkpoint(self, n_pairs: int) -> Checkpoint:
        """The checkpoint after so many pairs."""
        if n_pairs == len(self.rows.y):
            return self.end
        return self.checkpoint_after(self._rows(n_pairs))

    def n_bad(self, n_pairs: int) -> int:
        """How many bad rows come before the checkpoint after so many pairs."""
        if n_pairs == len(self.rows.y):
            return len(self.bad)
        return self._rows(n_pairs) - n_pairs

    def _rows(self, n_pairs: int) -> int:
        """Rows up to the last of so many pairs."""
        return int(np.flatnonzero(self.rows.good)[n_pairs - 1]) + 1


class Reader:
    """Batches of a source from where an earlier run stopped.

    Parameters
    ----------
    source : str
        A file, a folder, or "-".
    spec : ReadSpec
        What rows are to be.
    format_ : str
        "auto", or one for all files.
    stop : bool
        Whether the first bad row ends everything; the last batch then ends before it.
    find_layout : callable
        From columns, an example and ``spec`` to a layout and the names of features.
    """

    def __init__(
        self,
        source: str,
        spec: ReadSpec,
        format_: str = "auto",
        stop: bool = True,
        find_layout: FindLayout = pair_layout,
    ) -> None:
        if source != PIPE and not Path(source).exists():
            raise FileNotFoundError(f"{source}: no such file or folder")
        self.source, self.spec, self.format = source, spec, format_
        self.stop, self.find_layout = stop, find_layout
        self._columns: list[str] | None = None
        self._features: list[str] | None = None

    def batches(
        self, checkpoint: SavedCheckpoint | None = None, known: Sequence[str] | None = None
    ) -> Generator[Batch, None, None]:
        """All rows after a checkpoint, given as in the manifest; None: all.

        ``known`` are the columns of an earlier run, for a pipe that comes without a header.
        """
        for batch in self._all(checkpoint, known):
            yield batch._replace(features=self._features, columns=self._columns)
            if batch.bad and self.stop:
                return

    def _all(
        self, checkpoint: SavedCheckpoint | None, known: Sequence[str] | None
    ) -> Iterator[Batch]:
        if is_pipe(self.source):
            yield from self._file(self.source, PIPE, self.format, checkpoint, known)
            return
        folder = Path(self.source).is_dir()
        files = files_of(self.source)
        for i, path in enumerate(files):
            name = path.name if folder else str(path)
            here = checkpoint
            if folder and checkpoint is not None:
                if name < checkpoint["file"]:
                    continue
                self._check_late(i, name, checkpoint)
                here = checkpoint if name == checkpoint["file"] else None
            format_ = format_of(path, self.format)
            for batch in self._file(str(path), name, format_, here, None):
                yield batch._replace(before=i)
            checkpoint = None

    def _check_late(self, i: int, name: str, checkpoint: SavedCheckpoint) -> None:
        """Files that sort before the last one read would never be learned."""
        if i > checkpoint["before"] + (name != checkpoint["file"]):
            raise SourceError(
                f"{self.source} has {i} files before {checkpoint['file']!r}, and had "
                f"{checkpoint['before']} when that was learned; give files that come late names "
                "that sort after it"
            )

    def _file(
        self,
        source: str,
        name: str,
        format_: str,
        checkpoint: SavedCheckpoint | None,
        known: Sequence[str] | None,
    ) -> Iterator[Batch]:
        if format_ in ("parquet", "arrow"):
            yield from self._table(Table(source, name, format_), checkpoint)
            return
        with closing(Text(source, name)) as text:
            if format_ == "auto":
                start = text.peek()
                if start.startswith(ARROW_STREAM):
                    yield from self._table(Table(source, name, "arrow", text), checkpoint)
                    return
                first = start.removeprefix(BOM).lstrip()[:1]
                format_ = "jsonl" if first in (b"{", b"[") else "csv"
            yield from self._text(text, format_, checkpoint, known)

    def _text(
        self,
        text: Text,
        format_: str,
        checkpoint: SavedCheckpoint | None,
        known: Sequence[str] | None,
    ) -> Iterator[Batch]:
        lines = text.ahead(1)
        if not lines:
            if format_ == "csv":
                raise SourceError(f"{text.file}:1: empty; expected a line of column names")
            return
        reading, has_header = self._recognise(text, format_, lines, known)
        self._columns = reading.columns
        example: Mapping[str, object] = {}
        if isinstance(reading, JsonFormat):
            example = reading.example
        elif self._has_lists(reading.columns):
            example = _example(reading, text.ahead(2)[has_header:])
        layout = self._layout(text.file, reading.columns, example)
        start = Checkpoint(text.file)
        if checkpoint is not None:
            start = text.skip(checkpoint)
        elif has_header:
            start = text.drop_line()
        for block in text.blocks(start):
            yield self._block(block, reading, layout)

    def _recognise(
        self, text: Text, format_: str, lines: Sequence[bytes], known: Sequence[str] | None
    ) -> tuple[Format, bool]:
        """How lines are read, and whether the first one is a header."""
        try:
            if format_ == "jsonl":
                return _json_format(lines), False
            found = CsvFormat.from_header(lines[0])
        except RowError as error:
            raise SourceError(f"{text.file}:1: {error}") from None
        names = self.spec.columns.header
        if names is None and known and self.spec.column("y") not in found.columns:
            names = known
        if names is None:
            return found, True
        if len(names) != len(found.columns):
            raise SourceError(
                f"{text.file}:1: {len(found.columns)} columns, but {len(names)} names for them"
            )
        return CsvFormat(names, found.delimiter), found.columns == list(names)

    def _has_lists(self, columns: Sequence[str]) -> bool:
        """Whether points may be lists, whose length an example tells."""
        lists = self.spec.column("x"), self.spec.column("u"), "embedding"
        return any(name in columns for name in lists)

    def _layout(self, file: str, columns: Sequence[str], example: Mapping[str, object]) -> Layout:
        spec = self.spec
        if self._features is not None:
            spec = spec._replace(features=self._features)
        try:
            layout, self._features = self.find_layout(columns, example, spec)
        except ValueError as error:
            raise SourceError(f"{file}: {error}") from None
        return layout

    def _block(self, block: Block, reading: Format, layout: Layout) -> Batch:
        rows, found = parse(reading, layout, block.data)
        if block.cut and len(rows.y) and not _surely_whole(reading, layout):
            rows = rows._replace(good=np.zeros(1, bool))
            found = [(0, "the file ends within this line; end it with a line break")]
        if not found:
            return Batch(rows, [], block.checkpoint(), block.checkpoint_after)
        lines = lines_of(block.data)
        bad = [
            BadRow(
                file=block.start.file,
                line=block.start.lines + 1 + i,
                why=why,
                text=lines[i].decode(errors="backslashreplace").rstrip("\r\n"),
            )
            for i, why in found
        ]
        if self.stop:
            end = block.checkpoint(found[0][0])
            return Batch(_before_bad(rows), bad[:1], end, block.checkpoint_after)
        if block.cut:
            rows = _before_bad(rows)
        return Batch(rows, bad, block.checkpoint(), block.checkpoint_after)

    def _table(self, table: Table, checkpoint: SavedCheckpoint | None) -> Iterator[Batch]:
        names = table.schema.names
        example = table.first_row() if self._has_lists(names) else {}
        layout = self._layout(table.file, names, example)
        start = checkpoint["offset"] if checkpoint else 0
        tail: list[bytes] = []
        reached = 0
        for row, batch in table.batches(layout.columns, start):
            skipped = min(max(0, start - row), batch.num_rows)
            reached = row + batch.num_rows
            tail = _tail(tail, batch.slice(0, skipped))
            if checkpoint is not None and reached >= start:
                if tail_hash(b"".join(tail)) != checkpoint["tail"]:
                    raise _other_table(table.file, f"it differs before row {start + 1:,}")
                checkpoint = None
            if reached > start:
                rest = batch.slice(skipped)
                yield self._table_batch(table.file, layout, rest, row + skipped, tail)
                tail = _tail(tail, rest)
        if checkpoint is not None and start > 0:
            raise _other_table(table.file, f"it has {reached:,} rows, and {start:,} were learned")

    def _table_batch(
        self, file: str, layout: Layout, batch: Any, first: int, tail: list[bytes]
    ) -> Batch:
        try:
            rows = layout.batch(batch)
        except ValueError as error:
            raise SourceError(f"{file}: {error}") from None
        wrong = np.flatnonzero(~rows.good).tolist()
        end = batch.num_rows
        if wrong and self.stop:
            rows, end, wrong = _before_bad(rows), wrong[0], wrong[:1]
        bad = []
        for i in wrong:
            values = batch.slice(i, 1).to_pylist()[0]
            bad.append(BadRow(file, first + i + 1, _why(layout, values), str(values)))

        def checkpoint_after(n_rows: int) -> Checkpoint:
            learned = b"".join(_tail(tail, batch.slice(0, n_rows)))
            return Checkpoint(file, first + n_rows, first + n_rows, learned)

        return Batch(rows, bad, checkpoint_after(end), checkpoint_after)


def _json_format(lines: Sequence[bytes]) -> JsonFormat:
    """From the first line that can be read; the others are judged when their turn comes."""
    for line in lines:
        try:
            return JsonFormat.from_first(line)
        except RowError:
            continue
    return JsonFormat.from_first(lines[0])


def _example(reading: Format, lines: Sequence[bytes]) -> Mapping[str, object]:
    try:
        return reading.values(lines[0]) if lines else {}
    except RowError:
        return {}


def _surely_whole(reading: Format, layout: Layout) -> bool:
    """Whether a row whose line break is missing would be bad if anything else were missing."""
    return isinstance(reading, JsonFormat) or layout.label in (None, reading.columns[-1])


def _before_bad(rows: Rows) -> Rows:
    n_good = int(np.argmin(rows.good))
    return Rows(rows.points[:n_good], rows.keys[:n_good], rows.y[:n_good], rows.good[:n_good])


def _tail(tail: list[bytes], batch: Any) -> list[bytes]:
    last = batch.slice(max(0, batch.num_rows - TAIL_ROWS)).to_pylist()
    return [*tail, *(repr(list(row.values())).encode() for row in last)][-TAIL_ROWS:]


def _why(layout: Layout, values: Mapping[str, object]) -> str:
    try:
        layout.row(values)
    except RowError as error:
        return str(error)
    return "not a row of the expected kind"


def _other_table(file: str, why: str) -> SourceError:
    return SourceError(
        f"{file} is not the source that the state was learned from: {why}. Give the same source "
        "again; or, where it brings only new rows, --new-source"
    )
