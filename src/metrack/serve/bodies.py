"""Bodies of requests, JSON or Arrow, as checked arrays; and answers as Arrow."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from metrack.checks import Floats, Ints
from metrack.estimators.inputs import PairBatch, check_labels, check_points
from metrack.serve.arrow import Table
from metrack.serve.items import Items, NewItems
from metrack.serve.kinds.kind import Kind
from metrack.serve.limits import Limits, Refused
from metrack.serve.log import Batch
from metrack.serve.schemas import FeedbackBody, ItemsBody, PairsBody, PointsBody, Record

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
TEXT, IMAGE = 10_000, 2000
ITEM_COLUMNS = ("ids", "vectors", "texts", "images", "records")
KNOWN = {  # columns of judgements
    "pairs": ("x", "z", "a", "b", "y", "id", "judge"),
    "triplets": ("anchor", "near", "far", "id", "judge"),
    "points": ("x", "a", "label", "id", "judge"),
}

RECORD = TypeAdapter(Record)
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


def feedback(
    body: bytes, content: str, items: Any, kind: Kind, n_features: int, limits: Limits
) -> Batch:
    """Judgements, ready for the log; ``items`` gives the items when ids need them."""
    if content == ARROW:
        batch = _from_table(Table.of(body, KNOWN[kind.example], limits), items, kind)
    else:
        batch = _from_list(from_json(FeedbackBody, body), items, kind, limits)
    return checked_batch(batch, kind, n_features)


def checked_batch(batch: Batch, kind: Kind, n_features: int) -> Batch:
    """The same, where all of it can be learned."""
    if kind.example == "pairs":
        _check_pairs(batch.points, n_features)
    elif n := len(batch.points):
        checked(batch.points.reshape(n * kind.members, batch.points.shape[2]), n_features)
    if kind.example == "points" and not all(batch.labels):
        raise Refused(422, "a point has no label: its class, as text")
    if any(each == "" for each in batch.ids):
        raise Refused(422, "an id is empty; leave it out, or give each judgement its own")
    return batch


def _from_table(table: Table, items: Any, kind: Kind) -> Batch:
    ids, judges = table.texts("id"), table.texts("judge")
    a, b, labels = table.texts("a"), table.texts("b"), table.texts("label")
    nothing = [None] * len(ids)
    if kind.example == "pairs":
        y, points = labels_of(table.labels()), _table_pairs(table, a, b, items)
        return Batch(points, y, ids, judges, a, b, nothing, nothing)
    ones = np.ones(len(ids), dtype=np.int64)
    if kind.example == "triplets":
        sides = [_side(table, name, items) for name in ("anchor", "near", "far")]
        if len({side.shape for side in sides}) > 1:
            raise Refused(422, "anchor, near and far differ in their number of features")
        return Batch(np.stack(sides, axis=1), ones, ids, judges, nothing, nothing, nothing, nothing)
    if ("x" in table) == ("a" in table):
        raise Refused(422, "give a column x (points) or a (ids of items), and label")
    points = table.vectors("x") if "x" in table else _points_of(_all(a, "a"), items)
    return Batch(points[:, None], ones, ids, judges, a, nothing, labels, nothing)


def _side(table: Table, name: str, items: Any) -> Floats:
    if name not in table:
        raise Refused(422, f"there is no column {name}: a triplet is an anchor, near and far")
    if table.is_text(name):
        return _points_of(_all(table.texts(name), name), items)
    return table.vectors(name)


def _from_list(asked: FeedbackBody, items: Any, kind: Kind, limits: Limits) -> Batch:
    listed: Any = getattr(asked, kind.example)
    if listed is None or len(asked.model_fields_set) > 1:
        raise Refused(422, f"this metric learns from {kind.example}: send these, and nothing else")
    limits.check("pairs", len(listed), kind.example)
    ids, judges = [each.id for each in listed], [each.judge for each in listed]
    nothing, ones = [None] * len(ids), np.ones(len(ids), dtype=np.int64)
    if kind.example == "pairs":
        a, b = [each.a for each in listed], [each.b for each in listed]
        y, points = labels_of([each.y for each in listed]), _listed_pairs(listed, items)
        return Batch(points, y, ids, judges, a, b, nothing, nothing)
    if kind.example == "triplets":
        members = [[each.anchor, each.near, each.far] for each in listed]
        points = _listed_points([m for some in members for m in some], items)
        return Batch(
            points.reshape(-1, 3, points.shape[1]),
            ones,
            ids,
            judges,
            nothing,
            nothing,
            nothing,
            nothing,
        )
    given = [each.x if each.a is None else each.a for each in listed]
    if any((each.x is None) == (each.a is None) for each in listed):
        raise Refused(422, "give each point as x or, by the id of an item, as a; and not both")
    points, labels = _listed_points(given, items), [each.label for each in listed]
    a = [each.a for each in listed]
    return Batch(points[:, None], ones, ids, judges, a, nothing, labels, nothing)


def _listed_points(given: list[Any], items: Any) -> Floats:
    """Points, or ids of items; not some of each."""
    named = [isinstance(each, str) for each in given]
    if all(named) and given:
        return _points_of(given, items)
    if any(named):
        raise Refused(422, "some are points and some are ids; send them apart")
    try:
        return np.array(given, dtype=np.float64).reshape(len(given), -1)
    except ValueError:
        raise Refused(422, "points differ in length; all need the metric's features") from None


def _points_of(keys: list[str], items: Any) -> Floats:
    known: Items = items()
    found: Floats = known.points[known.find(keys)]
    return found


def labels_of(y: Sequence[bool | float | None]) -> Ints:
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
        table = Table.of(body, ("x", "z", "a", "b"), limits)
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
        table = Table.of(body, ("vectors", "ids"), limits)
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
        return table_items(Table.of(body, ITEM_COLUMNS, limits), n_features)
    asked = from_json(ItemsBody, body)
    limits.check("pairs", len(asked.ids), "items")
    ids, nothing = list(asked.ids), [None] * len(asked.ids)
    texts, images = asked.texts or nothing, asked.images or nothing
    given = asked.records or nothing
    records = [None if each is None else json.dumps(each) for each in given]
    return _new_items(ids, asked.vectors, texts, images, records, n_features)


def table_items(table: Table, n_features: int) -> NewItems:
    """Items that came as columns."""
    if "ids" not in table or "vectors" not in table:
        raise Refused(422, "items need columns ids and vectors")
    texts, images = table.texts("texts", TEXT), table.texts("images", IMAGE)
    records = [_record(each, i) for i, each in enumerate(table.texts("records", TEXT))]
    ids, vectors = table.texts("ids"), table.vectors("vectors")
    return _new_items(ids, vectors, texts, images, records, n_features)


def _new_items(
    ids: Sequence[str | None],
    vectors: Any,
    texts: Sequence[str | None],
    images: Sequence[str | None],
    records: Sequence[str | None],
    n_features: int,
) -> NewItems:
    keys = _all(ids, "ids")
    if len(set(keys)) < len(keys) or "" in keys:
        raise Refused(422, "ids must differ from each other, and have at least a letter")
    if len({len(keys), len(vectors), len(texts), len(images), len(records)}) > 1:
        raise Refused(422, "ids, vectors, texts, images and records need the same length")
    for i, each in enumerate(images):
        if each is not None and not _is_address(each):
            raise Refused(422, f"images[{i}] must be an http:// or https:// address")
    for i, record in enumerate(records):
        if record is not None and len(record) > TEXT:
            raise Refused(422, f"records[{i}] has {len(record)} letters as JSON; at most {TEXT}")
    return NewItems(keys, checked(vectors, n_features), texts, images, records)


def _record(text: str | None, i: int) -> str | None:
    """A record that came as text."""
    if text is None:
        return None
    try:
        return json.dumps(RECORD.validate_json(text))
    except ValidationError:
        said = "must be a JSON object of texts, numbers and nulls"
        raise Refused(422, f"records[{i}] {said}") from None


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
