"""Bodies of requests, JSON or Arrow, as checked arrays; and answers as Arrow."""

import struct
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from metrack.checks import Floats, Ints
from metrack.estimators.inputs import PairBatch, check_labels, check_points
from metrack.serve.items import Items, NewItems
from metrack.serve.limits import Limits, Refused
from metrack.serve.log import Batch
from metrack.serve.schemas import FeedbackBody, ItemsBody, PairsBody, PointsBody

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
LONGEST = 256  # of an id or a name
TEXT, IMAGE = 10_000, 2000
RECORD_BATCH, SCHEMA = 3, 1  # of Arrow's message headers

M = TypeVar("M", bound=BaseModel)


def kind_of(content_type: str | None) -> str:
    """JSON or Arrow, by the header."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind not in (JSON, ARROW):
        raise Refused(415, f"the body must be {JSON} or {ARROW}; say which in Content-Type")
    return kind


def from_json(model: type[M], body: bytes) -> M:
    """A body that was checked; the error names the first thing that is wrong."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise Refused(422, _first(error)) from None


def _first(error: ValidationError) -> str:
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, wrong["loc"])) or "the body"
    return f"{where}: {wrong['msg']}"


class Table:
    """Columns of an Arrow stream, checked as they are taken.

    Parameters
    ----------
    body : bytes
    known : tuple of str
        Columns there may be.
    most : Limits
    """

    def __init__(self, body: bytes, known: tuple[str, ...], limits: Limits) -> None:
        import pyarrow as pa

        try:
            _check_messages(body)
            table = pa.ipc.open_stream(body).read_all()
            limits.check("pairs", table.num_rows, "rows")
            table.validate(full=True)
            names = table.column_names
        # What it raises where bytes are wrong; a ValueError where a name is no text.
        except (pa.ArrowException, OSError, struct.error, IndexError, ValueError) as error:
            raise Refused(400, f"the body is no Arrow stream: {error}") from None
        if not set(names) <= set(known) or len(set(names)) < len(names):
            raise Refused(422, f"columns {names}; there may be {', '.join(known)}")
        self._table, self.n_rows = table, table.num_rows

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


def feedback(body: bytes, kind: str, items: Any, n_features: int, limits: Limits) -> Batch:
    """Judgements, ready for the log; ``items`` gives the items when ids need them."""
    if kind == ARROW:
        table = Table(body, ("x", "z", "a", "b", "y", "id", "judge"), limits)
        y, ids, judges = table.labels(), table.texts("id"), table.texts("judge")
        a, b = table.texts("a"), table.texts("b")
        points = _table_pairs(table, a, b, items)
    else:
        pairs = from_json(FeedbackBody, body).pairs
        limits.check("pairs", len(pairs), "pairs")
        y, ids, judges = ([getattr(p, name) for p in pairs] for name in ("y", "id", "judge"))
        a, b = [p.a for p in pairs], [p.b for p in pairs]
        points = _listed_pairs(pairs, items)
    _check_pairs(points, n_features)
    if any(each == "" for each in ids):
        raise Refused(422, "an id is empty; leave it out, or give each judgement its own")
    return Batch(points, _labels(y), ids, judges, a, b)


def _labels(y: Sequence[bool | float | None]) -> Ints:
    """As the log has them, with 0 for unsure; by the same door as everything that is learned."""
    sure = [i for i, each in enumerate(y) if each is not None]
    found = np.zeros(len(y), dtype=np.int64)
    try:
        found[sure] = check_labels([each for each in y if each is not None], len(sure), sure)
    except ValueError as error:
        raise Refused(422, f"{error}; null means unsure") from None
    return found


def pairs(body: bytes, kind: str, items: Any, n_features: int, limits: Limits) -> Floats:
    """Pairs to compare."""
    if kind == ARROW:
        table = Table(body, ("x", "z", "a", "b"), limits)
        points = _table_pairs(table, table.texts("a"), table.texts("b"), items)
    else:
        listed = from_json(PairsBody, body).pairs
        limits.check("pairs", len(listed), "pairs")
        points = _listed_pairs(listed, items)
    _check_pairs(points, n_features)
    return points


def points(body: bytes, kind: str, items: Any, n_features: int, limits: Limits) -> Floats:
    """Points to embed."""
    if kind == ARROW:
        table = Table(body, ("vectors", "ids"), limits)
        ids: Sequence[str | None] | None = table.texts("ids") if "ids" in table else None
        vectors: Any = table.vectors("vectors") if "vectors" in table else None
    else:
        asked = from_json(PointsBody, body)
        ids, vectors = asked.ids, asked.vectors
        limits.check("pairs", len(vectors or ids or ()), "points")
    if (ids is None) == (vectors is None) or (ids is not None and not len(ids)):
        raise Refused(422, "give vectors or ids, at least one, and not both")
    if ids is not None:
        known: Items = items()
        return known.points[known.find(_all(ids, "ids"))]
    return checked(vectors, n_features)


def new_items(body: bytes, kind: str, n_features: int, limits: Limits) -> NewItems:
    """Items to put."""
    if kind == ARROW:
        table = Table(body, ("ids", "vectors", "texts", "images"), limits)
        if "ids" not in table or "vectors" not in table:
            raise Refused(422, "items need columns ids and vectors")
        ids, vectors = table.texts("ids"), table.vectors("vectors")
        texts, images = table.texts("texts", TEXT), table.texts("images", IMAGE)
    else:
        asked = from_json(ItemsBody, body)
        limits.check("pairs", len(asked.ids), "items")
        ids, vectors = list(asked.ids), asked.vectors  # type: ignore[assignment]
        texts = asked.texts or [None] * len(ids)
        images = asked.images or [None] * len(ids)
    keys = _all(ids, "ids")
    if len(set(keys)) < len(keys) or "" in keys:
        raise Refused(422, "ids must differ from each other, and have at least a letter")
    if not len(keys) == len(vectors) == len(texts) == len(images):
        raise Refused(422, "ids, vectors, texts and images need the same length")
    for i, each in enumerate(images):
        if each is not None and not _is_address(each):
            raise Refused(422, f"images[{i}] must be an http:// or https:// address")
    return NewItems(keys, checked(vectors, n_features), texts, images)


def _is_address(text: str) -> bool:
    """Of an image; with no letter that could end a directive of the page's policy, or a header."""
    plain = text.isascii() and text.isprintable() and not set(" ;,'\"\\<>") & set(text)
    return plain and text.startswith(("http://", "https://"))


def _all(keys: Sequence[str | None], name: str) -> list[str]:
    if any(key is None for key in keys):
        raise Refused(422, f"{name} has missing values")
    return [key for key in keys if key is not None]


def _table_pairs(
    table: Table, a: Sequence[str | None], b: Sequence[str | None], items: Any
) -> Floats:
    if "x" in table and "z" in table and "a" not in table and "b" not in table:
        x, z = table.vectors("x"), table.vectors("z")
        if x.shape != z.shape:
            raise Refused(422, f"x has {x.shape[1]} features, and z has {z.shape[1]}")
        return np.stack([x, z], axis=1)
    if "a" in table and "b" in table and "x" not in table and "z" not in table:
        return _item_pairs(_all(a, "a"), _all(b, "b"), items)
    raise Refused(422, "give columns x and z (points), or a and b (ids of items)")


def _listed_pairs(pairs: Sequence[Any], items: Any) -> Floats:
    named = [each.a is not None or each.b is not None for each in pairs]
    for i, each in enumerate(pairs):
        given = [value is not None for value in (each.x, each.z, each.a, each.b)]
        if given not in ([True, True, False, False], [False, False, True, True]):
            raise Refused(422, f"pairs.{i}: give x and z (points), or a and b (ids of items)")
    if all(named) and pairs:
        return _item_pairs([each.a for each in pairs], [each.b for each in pairs], items)
    if any(named):
        raise Refused(422, "some pairs have points and some have ids; send them apart")
    try:
        return np.array([[each.x, each.z] for each in pairs], dtype=np.float64)
    except ValueError:
        raise Refused(422, "points differ in length; all need the metric's features") from None


def _item_pairs(a: list[str], b: list[str], items: Any) -> Floats:
    known: Items = items()
    return np.stack([known.points[known.find(a)], known.points[known.find(b)]], axis=1)


def _check_pairs(points: Floats, n_features: int) -> None:
    """By the same door as everything that is learned: what is in the log can be learned."""
    try:
        batch = PairBatch(points, None, None)
    except ValueError as error:
        raise Refused(422, str(error)) from None
    _check_width("pairs", batch.n_features, n_features)


def checked(vectors: Any, n_features: int) -> Floats:
    """Points of a metric."""
    try:
        found: Any = check_points(vectors, "vectors")
    except ValueError as error:
        raise Refused(422, str(error)) from None
    _check_width("vectors", found.shape[1], n_features)
    dense: Floats = found
    return dense


def _check_width(name: str, width: int, n_features: int) -> None:
    if width != n_features:
        raise Refused(
            422, f"{name} have {width} features, and this metric has {n_features}: send as many"
        )


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
