"""Lines of text as rows: CSV and JSON Lines, fast where pyarrow is there, and row by row."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from metrack.tracking.layouts import Layout, RowError, Rows
from metrack.tracking.lines import end_of, is_blank, lines_of, n_filled

DELIMITERS = ",\t;|"
BOM = b"\xef\xbb\xbf"


class BadRow(NamedTuple):
    """A row that cannot be used."""

    file: str
    line: int
    why: str
    text: str


class Parsed(NamedTuple):
    """What a piece of text holds; bad rows by their line in the piece, from 0."""

    rows: Rows
    bad: list[tuple[int, str]]


class CsvFormat:
    """Comma-separated values; rows are lines.

    Parameters
    ----------
    columns : sequence of str
    delimiter : str
    """

    def __init__(self, columns: Sequence[str], delimiter: str) -> None:
        self.columns, self.delimiter = list(columns), delimiter

    @classmethod
    def from_header(cls, line: bytes) -> "CsvFormat":
        """Columns and delimiter as the first line has them."""
        text = _decode(line.removeprefix(BOM))
        delimiter = max(DELIMITERS, key=text.count)
        names = [name.strip() for name in _fields(text, delimiter)]
        return cls(names, delimiter)

    def values(self, line: bytes) -> Mapping[str, object]:
        """One row, as text."""
        fields = _fields(_decode(line), self.delimiter)
        if len(fields) != len(self.columns):
            raise RowError(f"{len(fields)} columns, expected {len(self.columns)}")
        return dict(zip(self.columns, fields, strict=True))

    def table(self, data: bytes, layout: Layout) -> Any:
        """Many rows as an Arrow table."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        if layout.lists:
            raise RowError("lists in CSV are text")
        if b'"' in data and not _quotes_close(data):
            raise RowError("a quoted field that goes on in the next line")
        if data.count(b"\r") != data.count(b"\r\n"):
            raise RowError("a carriage return, which would end a row")
        as_text = pa.dictionary(pa.int32(), pa.string())
        types = dict.fromkeys(layout.columns, as_text) | dict.fromkeys(layout.numbers, pa.float64())
        return arrow.read_csv(
            pa.BufferReader(data),
            read_options=arrow.ReadOptions(
                column_names=self.columns, use_threads=False, block_size=len(data) + 1
            ),
            parse_options=arrow.ParseOptions(delimiter=self.delimiter),
            convert_options=arrow.ConvertOptions(
                column_types=types, include_columns=layout.columns
            ),
        )


class JsonFormat:
    """JSON Lines: one object a line.

    Parameters
    ----------
    example : mapping
        A row; its types are expected of others, which are faster where they agree.
    """

    def __init__(self, example: Mapping[str, object]) -> None:
        self.columns, self.example = list(example), dict(example)

    @classmethod
    def from_first(cls, line: bytes) -> "JsonFormat":
        """Names and types as one row has them."""
        return cls(_object(line))

    def values(self, line: bytes) -> Mapping[str, object]:
        """One row."""
        found = _object(line)
        more = [n for n in found if n[:2] in ("x_", "z_") and n not in self.example]
        if more:
            raise RowError(f"{more[0]} is not among the columns of the first row")
        return found

    def table(self, data: bytes, layout: Layout) -> Any:
        """Many rows as an Arrow table."""
        import pyarrow as pa
        from pyarrow import json as arrow

        if not _objects_are_lines(data):
            raise RowError("lines that are not an object each")
        number = pa.list_(pa.float64()) if layout.lists else pa.float64()
        fields = [(name, number) for name in layout.numbers]
        fields += [(n, self._type(n)) for n in layout.columns if n not in layout.numbers]
        table = arrow.read_json(
            pa.BufferReader(data),
            read_options=arrow.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=arrow.ParseOptions(explicit_schema=pa.schema(fields)),
        )
        if any(n[:2] in ("x_", "z_") and n not in self.example for n in table.column_names):
            raise RowError("columns that the first row does not have")
        return table

    def _type(self, name: str) -> Any:
        import pyarrow as pa

        value = self.example.get(name)
        if isinstance(value, bool):
            return pa.bool_()
        if isinstance(value, int):
            return pa.int64()
        return pa.float64() if isinstance(value, float) else pa.string()


Format = CsvFormat | JsonFormat


def parse(format_: Format, layout: Layout, data: bytes) -> Parsed:
    """The rows in whole lines of text, and those that cannot be used.

    Everything at once; where that fails, each half. A single line is left to `Layout.row`, so the
    fast way may refuse what it will, as long as it takes nothing that the judge refuses.
    """
    found: list[Rows] = []
    bad: list[tuple[int, str]] = []
    for first, piece, rows in _pieces(format_, layout, data, 0):
        lines = None
        if rows is None:
            rows = _one(format_, layout, piece)
            lines = [piece]
        if not rows.good.all():
            lines = lines or lines_of(piece)
            filled = [i for i, line in enumerate(lines) if not is_blank(line)]
            for i in np.flatnonzero(~rows.good):
                bad.append((first + filled[i], _why(format_, layout, lines[filled[i]])))
        found.append(rows)
    return Parsed(_joined(found, layout), bad)


def _pieces(
    format_: Format, layout: Layout, data: bytes, first: int
) -> Iterator[tuple[int, bytes, Rows | None]]:
    """Pieces of text with their first line and rows; None where a single line needs the judge."""
    rows = _at_once(format_, layout, data)
    n_lines = data.count(b"\n")
    if rows is not None or n_lines <= 1:
        yield first, data, rows
        return
    middle = end_of(data, n_lines // 2)
    yield from _pieces(format_, layout, data[:middle], first)
    yield from _pieces(format_, layout, data[middle:], first + n_lines // 2)


def _at_once(format_: Format, layout: Layout, data: bytes) -> Rows | None:
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        if not data.isascii():
            data.decode()
        table = format_.table(data, layout)
        if table.num_rows != n_filled(data):
            return None
        return layout.batch(table)
    except (pa.ArrowException, ValueError, KeyError):
        return None


def _one(format_: Format, layout: Layout, line: bytes) -> Rows:
    """A single line, or none where it is blank."""
    if is_blank(line):
        return _joined([], layout)
    try:
        points, keys, y = layout.row(format_.values(line))
    except RowError:
        return _joined([], layout)._replace(good=np.zeros(1, bool))
    kinds = object if layout.known is None else np.int64
    return Rows(points[None], np.array([keys], kinds), np.array([y]), np.ones(1, bool))


def _why(format_: Format, layout: Layout, line: bytes) -> str:
    try:
        layout.row(format_.values(line))
    except RowError as error:
        return str(error)
    return "not a row of the expected kind"


def _joined(found: list[Rows], layout: Layout) -> Rows:
    if len(found) == 1:
        return found[0]
    kinds = object if layout.known is None else np.int64
    none = Rows(
        np.empty((0, len(layout.vectors), layout.n_features)),
        np.empty((0, len(layout.keys)), kinds),
        np.empty(0),
        np.empty(0, bool),
    )
    return Rows(*(np.concatenate(arrays) for arrays in zip(none, *found, strict=True)))


def _quotes_close(data: bytes) -> bool:
    """Whether every line has an even number of quotes: pyarrow takes more than that."""
    text = np.frombuffer(data, np.uint8)
    so_far = np.cumsum(text == ord('"'))
    return not (so_far[text == ord("\n")] % 2).any() and so_far[-1] % 2 == 0


def _objects_are_lines(data: bytes) -> bool:
    """Whether every line that is not blank begins and ends like an object.

    Then no object goes on in the next line: within one, no brace opens right after one that closed.
    And nothing begins with null, at which pyarrow 26 ends the process.
    """
    data = data.removeprefix(BOM)
    between = data.count(b"}\n{") + data.count(b"}\r\n{")
    if data.startswith(b"{") and data.endswith(b"}\n") and between == data.count(b"\n") - 1:
        return True
    lines = [line.strip() for line in lines_of(data)]
    return all(line.startswith(b"{") and line.endswith(b"}") for line in lines if line)


def _decode(line: bytes) -> str:
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise RowError(f"not UTF-8 text (byte {error.start + 1} of the line)") from None


def _fields(text: str, delimiter: str) -> list[str]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise RowError(f"not CSV: {error}") from None
    if len(rows) != 1:
        raise RowError("not a single row of CSV")
    return rows[0]


def _object(line: bytes) -> dict[str, object]:
    try:
        found = json.loads(_decode(line.removeprefix(BOM)), object_pairs_hook=_once)
    except RowError:
        raise
    except (ValueError, RecursionError) as error:
        raise RowError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise RowError("not a JSON object, of which JSON Lines have one a line")
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RowError("a name stands twice in the row")
    return found


FORMATS: dict[str, Callable[[bytes], Format]] = {
    "csv": CsvFormat.from_header,
    "jsonl": JsonFormat.from_first,
}
