"""Items of a metric: points by id, with what a judge is shown of them."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from metrack.checks import Floats, Ints
from metrack.serve import metric_rows
from metrack.serve.databases.database import Connection
from metrack.serve.limits import Refused

MOST_ORIGINS = 50  # a header has its limits


class NewItems(NamedTuple):
    """Items of one request, checked."""

    ids: Sequence[str]
    vectors: Floats
    texts: Sequence[str | None]
    images: Sequence[str | None]
    records: Sequence[str | None]  # JSON objects


class Items:
    """Points by id; a change gives another object, and this one stays as it is.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, n_features: int) -> None:
        self.version = 0  # counts changes
        self.ids: list[str] = []
        self.rows: dict[str, int] = {}
        self.points: Floats = np.empty((0, n_features))

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def load(cls, connection: Connection, metric: int, n_features: int) -> Self:
        """All that the database has."""
        found = cls(n_features)
        # Before the items: what is changed meanwhile is loaded once more, and not missed.
        row = metric_rows.read(connection, [metric])
        found.version = row[0].items if row else 0
        rows = connection.execute(
            "SELECT id, vector FROM items WHERE metric = ? ORDER BY rowid", (metric,)
        ).fetchall()
        found.ids = [key for key, _ in rows]
        found.rows = {key: i for i, key in enumerate(found.ids)}
        points = np.frombuffer(b"".join(vector for _, vector in rows))
        found.points = points.reshape(len(rows), n_features)
        return found

    def with_more(self, new: NewItems) -> "Items":
        """These and new ones; known ids get new points."""
        found = Items(self.points.shape[1])
        found.version = self.version + 1
        found.rows = dict(self.rows)
        for key in new.ids:
            found.rows.setdefault(key, len(found.rows))
        found.ids = list(found.rows)
        found.points = np.empty((len(found.ids), self.points.shape[1]))
        found.points[: len(self)] = self.points
        found.points[[found.rows[key] for key in new.ids]] = new.vectors
        return found

    def find(self, keys: Sequence[str]) -> Ints:
        """Row of each id."""
        try:
            return np.array([self.rows[key] for key in keys], dtype=np.int64)
        except KeyError as error:
            raise Refused(
                422, f"there is no item {error.args[0]!r}; put it to …/items first"
            ) from None


def write(connection: Connection, metric: int, new: NewItems) -> int:
    """Put items into the database; returns how often they were changed so far."""
    changes = metric_rows.changed_items(connection, metric)
    rows = {
        key: (metric, key, vector.tobytes(), *shown)
        for key, vector, *shown in zip(*new, strict=True)
    }
    connection.insert(
        "items",
        ("metric", "id", "vector", "text", "image", "record"),
        list(rows.values()),
        "ON CONFLICT (metric, id) DO UPDATE SET vector = excluded.vector, text = excluded.text, "
        "image = excluded.image, record = excluded.record",
    )
    return changes


class Face(NamedTuple):
    """What a judge is shown of an item, beside its features."""

    text: str | None
    image: str | None
    record: dict[str, Any] | None


def shown(connection: Connection, metric: int, keys: Sequence[str]) -> dict[str, Face]:
    """Of each item, what a judge is shown."""
    found = {}
    for key in set(keys):
        row = connection.execute(
            "SELECT text, image, record FROM items WHERE metric = ? AND id = ?", (metric, key)
        ).fetchone()
        text, image, record = row or (None, None, None)
        found[key] = Face(text, image, None if record is None else json.loads(record))
    return found


def image_origins(connection: Connection, metric: int) -> set[str]:
    """Where images come from: what a page may load."""
    rows = connection.execute(
        "SELECT DISTINCT substr(image, 1, instr(substr(image || '/', 9), '/') + 7) FROM items "
        "WHERE metric = ? AND image IS NOT NULL LIMIT ?",
        (metric, MOST_ORIGINS),
    )
    return {origin for (origin,) in rows}
