"""What a vector store does for a metric that moves: one small protocol, the same for all stores.

The user's own collection of plain vectors is the truth: it is searched as long as there is nothing
better, and only `add` writes to it. Embedded vectors are a collection of their own, an image of
the plain one. It is filled under a new number while the last one answers, and becomes the one that
answers in one step, after it is on the disk: a crash at any moment leaves what was there.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metrack.checks import Ints

Vectors = NDArray[np.float32]

BLOCK = 4096  # vectors that are embedded at a time
NOBODY = -1  # where there are fewer items than asked for


class Image(NamedTuple):
    """The vectors, embedded by the metric of some moment."""

    number: int
    weight: Vectors  # (width, n_features)
    collection: Any  # what the store knows it by


class Store(ABC):
    """A collection of vectors that can be searched through a metric.

    Ids are whole numbers from 0, each of one vector. `add`, `query` and `refresh` may be called
    from any thread; nothing waits for a `refresh`. A subclass says how its library does the rest.
    """

    n_features: int

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self._adding = threading.Lock()
        self._refreshing = threading.Lock()
        self._image = self._newest()
        if self._image is not None:
            self._complete(self._image)  # what was added after the image was written

    @property
    def weight(self) -> Vectors | None:
        """By which vectors are embedded; None: not at all, as they came."""
        image = self._image
        return None if image is None else image.weight

    def __len__(self) -> int:
        return len(self._ids(self._plain))

    def add(self, ids: ArrayLike, vectors: ArrayLike) -> None:
        """Take up items with new ids; they are found from now on.

        Parameters
        ----------
        ids : array (n_items,) of whole numbers
        vectors : array (n_items, n_features)
        """
        rows, points = check_ids(ids), check_vectors(vectors, self.n_features)
        if len(rows) != len(points):
            raise ValueError(f"{len(rows)} ids, but {len(points)} vectors; give one each")
        with self._adding:
            known = ~np.isnan(self._vectors(self._plain, rows)[:, 0])
            if known.any():
                raise ValueError(
                    f"id {rows[known][0]} is in the store already; ids are of one item"
                )
            self._fill(self._plain, rows, points)
            if (image := self._image) is not None:
                self._fill(image.collection, rows, points @ image.weight.T)

    def query(self, vectors: ArrayLike, k: int) -> Ints:
        """Ids of the k nearest items, by the embedding that the store has, the nearest first.

        Parameters
        ----------
        vectors : array (n_queries, n_features)
            Plain ones.
        k : int

        Returns
        -------
        array (n_queries, k)
            -1 at the end where there are fewer items.
        """
        points, image = check_vectors(vectors, self.n_features), self._image
        if image is None:
            return self._nearest(self._plain, points, k)
        return self._nearest(image.collection, points @ image.weight.T, k)

    def vectors(self, ids: Ints) -> Vectors:
        """The plain vectors of items (n_items, n_features); NaN where there is no such item."""
        return self._vectors(self._plain, ids)

    def ids(self) -> Ints:
        """All items."""
        return self._ids(self._plain)

    def blocks(self) -> Iterator[tuple[Ints, Vectors]]:
        """All items and their plain vectors, some at a time."""
        ids = self.ids()
        for start in range(0, len(ids), BLOCK):
            some = ids[start : start + BLOCK]
            yield some, self.vectors(some)

    def refresh(self, weight: ArrayLike) -> int:
        """Embed all vectors anew, by rows of a linear layer, and search these from then on.

        Returns how many were embedded. Queries are answered by what there was until then.
        """
        rows = np.ascontiguousarray(weight, dtype=np.float32)
        with self._refreshing:
            number = 1 if self._image is None else self._image.number + 1
            self._drop(number)  # what a crash may have left
            image = Image(number, rows, self._make(number, len(rows)))
            for ids, points in self.blocks():
                self._fill(image.collection, ids, points @ rows.T)
            with self._adding:
                self._complete(image)
                self._keep(image)
                self._image = image
            self._drop(number - 2)  # a query may still be reading the last one
            return len(self._ids(image.collection))

    def _complete(self, image: Image) -> None:
        """Embed what an image lacks."""
        lacking = np.setdiff1d(self.ids(), self._ids(image.collection))
        for start in range(0, len(lacking), BLOCK):
            some = lacking[start : start + BLOCK]
            self._fill(image.collection, some, self.vectors(some) @ image.weight.T)

    @abstractmethod
    def _fill(self, collection: Any, ids: Ints, vectors: Vectors) -> None:
        """Add items to a collection."""

    @abstractmethod
    def _nearest(self, collection: Any, vectors: Vectors, k: int) -> Ints:
        """What `query` returns, of a collection."""

    @abstractmethod
    def _ids(self, collection: Any) -> Ints:
        """All that a collection holds."""

    @abstractmethod
    def _vectors(self, collection: Any, ids: Ints) -> Vectors:
        """Those of some items; NaN where there is none."""

    @abstractmethod
    def _make(self, number: int, width: int) -> Any:
        """An empty collection for an image."""

    @abstractmethod
    def _keep(self, image: Image) -> None:
        """Have an image on the disk; the last step makes it the newest, or nothing does."""

    @abstractmethod
    def _newest(self) -> Image | None:
        """The image with the highest number that is complete."""

    @abstractmethod
    def _drop(self, number: int) -> None:
        """Remove an image, or what there is of it."""


def check_vectors(vectors: ArrayLike, n_features: int) -> Vectors:
    """Vectors of a store, as they are kept."""
    found = np.ascontiguousarray(vectors, dtype=np.float32)
    if found.ndim != 2 or found.shape[1] != n_features:
        raise ValueError(
            f"vectors must have shape (n, {n_features}), as those in the store; got {found.shape}"
        )
    wrong = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if wrong.size:
        raise ValueError(f"vector {wrong[0]} contains NaN or infinity")
    return found


def check_ids(ids: ArrayLike) -> Ints:
    """Ids of new items."""
    found = np.asarray(ids)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu") or (found < 0).any():
        raise ValueError(
            "ids must be a list of whole numbers from 0, such as rows of a table; got "
            f"{found.dtype} of shape {found.shape}"
        )
    found = found.astype(np.int64)
    numbers, counts = np.unique(found, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"id {numbers[counts > 1][0]} is given twice; ids are of one item")
    return found


def in_order(wanted: Ints, ids: Ints, vectors: Vectors, n_features: int) -> Vectors:
    """Vectors of the wanted items, out of those that were found; NaN for the others."""
    found = np.full((len(wanted), n_features), np.nan, np.float32)
    if len(ids):
        order = np.argsort(ids)
        at = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
        there = ids[order[at]] == wanted
        found[there] = vectors[order[at[there]]]
    return found


def padded(ids: Any, k: int) -> Ints:
    """Rows of ids, each filled up to k."""
    found = np.full((len(ids), k), NOBODY, np.int64)
    for row, some in zip(found, ids, strict=True):
        row[: len(some)] = some
    return found
