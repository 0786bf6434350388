"""USearch: an index in memory, images of it in a folder."""

from pathlib import Path
from typing import Any

import numpy as np

from metrack.checks import Ints
from metrack.stores import files
from metrack.stores.store import Image, Store, Vectors, in_order, padded

try:
    from usearch.index import Index
except ImportError:
    raise ImportError('usearch is missing: pip install "metrack[stores]"') from None

EFFORT = 512  # candidates that a search on the graph keeps: 64, the library's own, miss 1 %


class UsearchStore(Store):
    """A `usearch.index.Index` that is searched through a metric.

    Parameters
    ----------
    index : usearch.index.Index
        Of plain vectors, each with a key of its own. To save it is yours.
    folder : path
        For the embedded vectors; made if missing.
    exact : bool
        Compare with all embedded vectors, instead of the near ones on a graph.
    """

    def __init__(self, index: Index, folder: str | Path, exact: bool = False) -> None:
        self.n_features = int(index.ndim)
        self._folder, self._exact = Path(folder), exact
        super().__init__(index)

    def _fill(self, collection: Any, ids: Ints, vectors: Vectors) -> None:
        collection.add(ids.astype(np.uint64), vectors)

    def _nearest(self, collection: Any, vectors: Vectors, k: int) -> Ints:
        found = collection.search(vectors, k, exact=self._exact)
        if found.keys.ndim == 1:  # of one query
            return padded([found.keys], k)
        return padded([keys[:n] for keys, n in zip(found.keys, found.counts, strict=True)], k)

    def _ids(self, collection: Any) -> Ints:
        return np.asarray(collection.keys[:]).astype(np.int64)

    def _vectors(self, collection: Any, ids: Ints) -> Vectors:
        there = ids[(ids >= 0) & np.atleast_1d(collection.contains(ids.astype(np.uint64)))]
        some = np.unique(there)
        vectors = np.asarray(collection.get(some.astype(np.uint64)), np.float32)
        return in_order(ids, some, vectors, self.n_features)

    def _make(self, number: int, width: int) -> Any:
        return Index(ndim=width, metric="l2sq", dtype="f32", expansion_search=EFFORT)

    def _keep(self, image: Image) -> None:
        files.keep(self._folder, image.number, image.weight, image.collection.save)

    def _newest(self) -> Image | None:
        if (found := files.newest(self._folder)) is None:
            return None
        number, weight, path = found
        index = self._make(number, len(weight))
        index.load(path)
        return Image(number, weight, index)

    def _drop(self, number: int) -> None:
        files.drop(self._folder, number)
