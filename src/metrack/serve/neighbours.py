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

from metrack.checks import Floats
from metrack.serve.items import Items

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
    components : array (rank, n_features)
    version : int
    indexed : bool
        Whether an index is made.
    """

    def __init__(self, items: Items, components: Floats, version: int, indexed: bool) -> None:
        start = time.monotonic()
        self.items, self.version, self.components = items, version, components
        self.points: NDArray[np.float32] = (items.points @ components.T).astype(np.float32)
        self.squares = np.einsum("ij,ij->i", self.points, self.points)
        self.index: Any = None
        if indexed and components.size:
            from usearch.index import Index

            self.index = Index(ndim=self.points.shape[1], metric="l2sq")
            self.index.add(np.arange(len(self.points)), self.points, threads=1)
        self.fresh_until = time.monotonic() + REST * (time.monotonic() - start)

    def nearest(self, point: Floats, k: int) -> Found:
        """The k items nearest to a point."""
        image = (self.components @ point).astype(np.float32)
        if self.index is not None:
            rows = self.index.search(image, k).keys.astype(np.int64)
        else:
            squares = self.squares - 2.0 * (self.points @ image)
            k = min(k, len(squares))
            rows = np.argpartition(squares, k - 1)[:k]
        # The product's rounding errors are those of large numbers: exactly for the few.
        apart = (self.items.points[rows] - point) @ self.components.T
        distances = np.sqrt(np.einsum("ij,ij->i", apart, apart))
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

    def current(self, items: Items, components: Floats, version: int) -> Embedded:
        """All items embedded; an index where there are too many without."""
        if len(items) > BY_PRODUCT:
            self._refresh_index(items, components, version)
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
                made = self._made = Embedded(items, components, version, indexed=False)
            return made

    def _refresh_index(self, items: Items, components: Floats, version: int) -> None:
        """Build an index in the background where there is none, or the metric has moved."""
        index = self._index
        if index is not None and index.items is items:
            resting = index.version == version or time.monotonic() < index.fresh_until
            if resting or not moved(index.components, components):
                return
        with self._lock:
            if self._building:
                return
            self._building = True
        arguments = items, components, version
        threading.Thread(target=self._build, args=arguments, name="index", daemon=True).start()

    def _build(self, items: Items, components: Floats, version: int) -> None:
        try:
            self._index = Embedded(items, components, version, indexed=True)
            self._made = None
        finally:
            self._building = False


def moved(before: Floats, now: Floats) -> bool:
    """Whether a metric's shape has moved by more than the tolerance."""
    then, shape = (L.T @ L for L in (before, now))
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

    def take(self, items: Items, components: Floats, most: int) -> tuple[list[str], Floats]:
        """Ids of some items, and where they are."""
        rows = np.unique(np.linspace(0, len(items) - 1, min(most, len(items))).astype(int))
        image = items.points[rows] @ components.T
        flat = np.zeros((len(rows), 2))
        if image.size:
            image = image - image.mean(axis=0)
            directions = np.linalg.svd(image.T @ image, hermitian=True)[0][:, :2]
            flat[:, : directions.shape[1]] = image @ directions
        with self._lock:
            key = items.version, flat.shape
            if self._last is not None and self._last[0] == key:
                left, _, right = np.linalg.svd(flat.T @ self._last[1])
                flat = flat @ left @ right
            self._last = key, flat
        return [items.ids[i] for i in rows], flat
