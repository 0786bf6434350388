"""Nearest items: by a product of matrices, or beyond 100,000 items by an index.

Both are made of a metric of some moment, and answers name its version. Making them takes time, so
while the metric moves they are used for ten times as long as they took; an index also as long as
the metric's shape has hardly moved.
"""

import threading
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrack.checks import Floats, Ints
from metrack.estimators.bases.linear import StaticEmbedding
from metrack.serve.items import Items
from metrack.serve.kinds.reading import Embedding

BY_PRODUCT = 100_000  # items, at most
TOLERANCE = 0.15  # of the metric's shape; docs/how-to/index-current.md has figures
REST = 10.0  # times as long as it took to make


class Found(NamedTuple):
    """Nearest items, the nearest first."""

    ids: list[str]
    distances: list[float]
    version: int


class Embedded:
    """All items, embedded by one metric.

    Parameters
    ----------
    items : Items
    embedding : Embedding
    version : int
    indexed : bool
        Whether an index is made.
    """

    def __init__(self, items: Items, embedding: Embedding, version: int, indexed: bool) -> None:
        start = time.monotonic()
        self.items, self.version, self.embedding = items, version, embedding
        self.points: NDArray[np.float32] = embedding.transform(items.points).astype(np.float32)
        self.squares = np.einsum("ij,ij->i", self.points, self.points)
        self.index: Any = None
        if indexed and self.points.size:
            from usearch.index import Index

            self.index = Index(ndim=self.points.shape[1], metric="l2sq")
            self.index.add(np.arange(len(self.points)), self.points, threads=1)
        self.fresh_until = time.monotonic() + REST * (time.monotonic() - start)

    def nearest(self, point: Floats, k: int) -> Found:
        """The k items nearest to a point."""
        image = self.embedding.transform(point[None])[0].astype(np.float32)
        if self.index is not None:
            rows = self.index.search(image, k).keys.astype(np.int64)
        else:
            squares = self.squares - 2.0 * (self.points @ image)
            k = min(k, len(squares))
            rows = np.argpartition(squares, k - 1)[:k]
        # The product's rounding errors are those of large numbers: exactly for the few.
        near = self.items.points[rows]
        distances = self.embedding.pair_distance(
            np.stack([near, np.broadcast_to(point, near.shape)], axis=1)
        )
        order = np.argsort(distances, kind="stable")
        ids = [self.items.ids[rows[i]] for i in order]
        return Found(ids, distances[order].tolist(), self.version)


class Neighbours:
    """The items of a metric as they are embedded now, or lately."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Embedded | None = None
        self._index: Embedded | None = None
        self._building = False

    def current(self, items: Items, embedding: Embedding, version: int) -> Embedded:
        """All items embedded; an index where there are too many without."""
        if len(items) > BY_PRODUCT:
            self._refresh_index(items, embedding, version)
            if self._index is not None:
                return self._index
        with self._lock:
            made = self._made
            same = made is not None and made.items is items
            if (
                made is None
                or not same
                or (made.version != version and time.monotonic() > made.fresh_until)
            ):
                made = self._made = Embedded(items, embedding, version, indexed=False)
            return made

    def _refresh_index(self, items: Items, embedding: Embedding, version: int) -> None:
        """Build an index in the background where there is none, or the metric has moved."""
        index = self._index
        if index is not None and index.items is items:
            resting = index.version == version or time.monotonic() < index.fresh_until
            if resting or not moved(index.embedding, embedding):
                return
        with self._lock:
            if self._building:
                return
            self._building = True
        arguments = items, embedding, version
        threading.Thread(target=self._build, args=arguments, name="index", daemon=True).start()

    def _build(self, items: Items, embedding: Embedding, version: int) -> None:
        try:
            self._index = Embedded(items, embedding, version, indexed=True)
            self._made = None
        finally:
            self._building = False


def moved(before: Embedding, now: Embedding) -> bool:
    """Whether a metric's shape has moved by more than the tolerance."""
    if not (isinstance(before, StaticEmbedding) and isinstance(now, StaticEmbedding)):
        return True  # it is no matrix, whose shape could be compared
    then, shape = (each.get_mahalanobis_matrix() for each in (before, now))
    scales = np.linalg.norm(then), np.linalg.norm(shape)
    if not all(scales):
        return bool(scales[0] != scales[1])
    return bool(np.linalg.norm(then / scales[0] - shape / scales[1]) > TOLERANCE)


class Picture:
    """Items in the plane, which turns no more than it must.

    The two directions in which the embedded items spread most, turned and mirrored so that the
    items move as little as can be since the last picture.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[Any, Floats] | None = None  # which items, and where they were

    def take(self, items: Items, embedding: Embedding, most: int) -> tuple[list[str], Floats]:
        """Ids of some items, and where they are."""
        rows = _shown(items, most)
        flat = _flat(embedding, items.points[rows])
        with self._lock:
            key = items.version, flat.shape
            if self._last is not None and self._last[0] == key:
                flat = _turned(flat, self._last[1])
            self._last = key, flat
        return [items.ids[i] for i in rows], flat

    def beside(self, items: Items, embedding: Embedding, most: int, now: Floats) -> Floats:
        """Where the same items are by another metric, turned like those of now."""
        return _turned(_flat(embedding, items.points[_shown(items, most)]), now)


def _shown(items: Items, most: int) -> Ints:
    """Rows of some items."""
    return np.unique(np.linspace(0, len(items) - 1, min(most, len(items))).astype(int))


def _flat(embedding: Embedding, points: Floats) -> Floats:
    """Points in the two directions in which their embedding is spread most."""
    flat = np.zeros((len(points), 2))
    image = embedding.transform(points) if len(points) else flat
    if image.size:
        image = image - image.mean(axis=0)
        directions = np.linalg.svd(image.T @ image, hermitian=True)[0][:, :2]
        flat[:, : directions.shape[1]] = image @ directions
    return flat


def _turned(flat: Floats, like: Floats) -> Floats:
    """Turned and mirrored, so that points are as near to others as can be."""
    left, _, right = np.linalg.svd(flat.T @ like)
    found: Floats = flat @ left @ right
    return found
