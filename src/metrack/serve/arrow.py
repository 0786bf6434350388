"""Arrow streams as checked columns, and columns as Arrow streams."""

import struct
from typing import Any, Self

import numpy as np

from metrack.checks import Floats
from metrack.serve.limits import Limits, Refused

LONGEST = 256  # letters of an id or a name
RECORD_BATCH, SCHEMA = 3, 1  # of Arrow's message headers


class Table:
    """Columns of an Arrow table, checked as they are taken.

    Parameters
    ----------
    table : pyarrow.Table
    known : tuple of str, optional
        Columns there may be.
    """

    def __init__(self, table: Any, known: tuple[str, ...] | None = None) -> None:
        names = table.column_names
        allowed = names if known is None else known
        if not set(names) <= set(allowed) or len(set(names)) < len(names):
            raise Refused(422, f"columns {names}; there may be {', '.join(allowed)}")
        self._table, self.n_rows = table, table.num_rows

    @classmethod
    def of(cls, body: bytes, known: tuple[str, ...], limits: Limits) -> Self:
        """What a body holds."""
        import pyarrow as pa

        try:
            _check_messages(body)
            table = pa.ipc.open_stream(body).read_all()
            limits.check("pairs", table.num_rows, "rows")
            table.validate(full=True)
            table.column_names  # noqa: B018
        # What it raises where bytes are wrong; a ValueError where a name is no text.
        except (pa.ArrowException, OSError, struct.error, IndexError, ValueError) as error:
            raise Refused(400, f"the body is no Arrow stream: {error}") from None
        return cls(table, known)

    def __contains__(self, name: str) -> bool:
        return name in self._table.column_names

    def texts(self, name: str, longest: int = LONGEST) -> list[str | None]:
        """A column of text, or nothing at all."""
        if name not in self:
            return [None] * self.n_rows
        import pyarrow as pa

        column = self._table.column(name)
        if pa.types.is_null(column.type):
            return [None] * self.n_rows
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise Refused(422, f"{name} must be text, and is {column.type}")
        found: list[str | None] = column.to_pylist()
        for i, each in enumerate(found):
            if each is not None and len(each) > longest:
                raise Refused(422, f"{name}[{i}] has {len(each)} letters; at most {longest}")
        return found

    def numbers(self, name: str) -> Floats:
        """A column of numbers, none of them missing."""
        import pyarrow as pa

        column = self._table.column(name)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise Refused(422, f"{name} must be numbers, and is {column.type}")
        if column.null_count:
            raise Refused(422, f"{name} has missing values; leave such rows out")
        found: Floats = column.to_numpy().astype(np.float64)
        return found

    def is_text(self, name: str) -> bool:
        """Whether a column has texts: ids of items in place of points."""
        import pyarrow as pa

        kind = self._table.column(name).type
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))

    def vectors(self, name: str) -> Floats:
        """A column of lists of numbers, as rows."""
        import pyarrow as pa

        column = self._table.column(name).combine_chunks()
        types = pa.types
        if not (
            types.is_list(column.type)
            or types.is_large_list(column.type)
            or types.is_fixed_size_list(column.type)
        ) or not (
            types.is_floating(column.type.value_type) or types.is_integer(column.type.value_type)
        ):
            raise Refused(422, f"{name} must be lists of numbers, and is {column.type}")
        flat = column.flatten()
        if column.null_count or flat.null_count:
            raise Refused(422, f"{name} has missing values; leave such rows out")
        width = len(flat) // max(1, self.n_rows)
        if not types.is_fixed_size_list(column.type):
            import pyarrow.compute as pc

            if (pc.list_value_length(column).to_numpy() != width).any():
                raise Refused(422, f"the lists of {name} differ in length; they need the same")
        values: Floats = flat.to_numpy(zero_copy_only=False).astype(np.float64)
        return values.reshape(self.n_rows, width)

    def labels(self) -> list[bool | float | None]:
        """The column y."""
        import pyarrow as pa

        if "y" not in self:
            raise Refused(422, "there is no column y: 1 alike, -1 not alike, null unsure")
        column = self._table.column("y")
        if not (
            pa.types.is_integer(column.type)
            or pa.types.is_floating(column.type)
            or pa.types.is_boolean(column.type)
            or pa.types.is_null(column.type)
        ):
            raise Refused(422, f"y must be numbers or booleans, and is {column.type}")
        found: list[bool | float | None] = column.to_pylist()
        return found


def _check_messages(body: bytes) -> None:
    """Refuse what could be far larger in memory than in the body: compression, dictionaries."""
    import pyarrow as pa

    for message in pa.ipc.MessageReader.open_stream(body):
        data = message.metadata.to_pybytes()
        root = struct.unpack_from("<I", data)[0]
        kind = _field(data, root, 1)
        header = _field(data, root, 2)
        if kind is None or header is None or data[kind] not in (SCHEMA, RECORD_BATCH):
            raise Refused(422, "only plain record batches are taken: no dictionaries")
        batch = header + struct.unpack_from("<I", data, header)[0]
        if data[kind] == RECORD_BATCH and _field(data, batch, 3) is not None:
            raise Refused(422, "compressed record batches are not taken: write them without")


def _field(data: bytes, table: int, number: int) -> int | None:
    """Where a field of a flatbuffers table is, if it has it."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    entry = 4 + 2 * number
    if entry >= struct.unpack_from("<H", data, vtable)[0]:
        return None
    offset: int = struct.unpack_from("<H", data, vtable + entry)[0]
    return table + offset if offset else None


def to_arrow(columns: dict[str, Any], metadata: dict[str, Any]) -> bytes:
    """Columns as an Arrow stream; what is not a column stands in the schema's metadata."""
    import pyarrow as pa

    arrays = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        if values.ndim == 2
        else pa.array(values)
        for name, values in columns.items()
    }
    said = {key: str(value) for key, value in metadata.items()}
    table = pa.table(arrays).replace_schema_metadata(said)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
