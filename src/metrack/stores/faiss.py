"""FAISS: an index in memory, images of it in a folder."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from metrack.checks import Ints
from metrack.stores import files
from metrack.stores.store import Image, Store, Vectors, in_order

try:
    import faiss
except ImportError:
    raise ImportError('faiss is missing: pip install "metrack[stores]"') from None


class Guarded:
    """An index that many read at a time, or one writes: FAISS must not read what is written."""

    def __init__(self, index: Any) -> None:
        self._index, self._readers, self._free = index, 0, threading.Condition()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """The index, which nobody writes meanwhile."""
        with self._free:
            self._readers += 1
        try:
            yield self._index
        finally:
            with self._free:
                self._readers -= 1
                self._free.notify_all()

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """The index, which nobody reads meanwhile."""
        with self._free:
            self._free.wait_for(lambda: not self._readers)
            yield self._index


class FaissStore(Store):
    """A FAISS index that is searched through a metric.

    Parameters
    ----------
    index : faiss.IndexIDMap2
        Of plain vectors, which it can give back: ``faiss.IndexIDMap2(faiss.IndexFlatL2(384))``. To
        save it is yours.
    folder : path
        For the embedded vectors; made if missing.
    factory : str
        What the embedded vectors are kept in, as `faiss.index_factory` takes it; "HNSW32" is
        faster, and misses some. Nothing that is trained.
    """

    def __init__(self, index: Any, folder: str | Path, factory: str = "Flat") -> None:
        if not isinstance(index, faiss.IndexIDMap2):
            raise TypeError(
                f"index is a {type(index).__name__}; give faiss.IndexIDMap2(index), which knows ids"
                " and gives vectors back"
            )
        self.n_features = index.d
        self._folder, self._factory = Path(folder), factory
        super().__init__(Guarded(index))

    def _fill(self, collection: Guarded, ids: Ints, vectors: Vectors) -> None:
        with collection.writing() as index:
            index.add_with_ids(vectors, ids)

    def _nearest(self, collection: Guarded, vectors: Vectors, k: int) -> Ints:
        with collection.reading() as index:
            found: Ints = index.search(vectors, k)[1]
        return found

    def _ids(self, collection: Guarded) -> Ints:
        with collection.reading() as index:
            return np.array(faiss.vector_to_array(index.id_map), np.int64)

    def _vectors(self, collection: Guarded, ids: Ints) -> Vectors:
        wanted = np.unique(ids[ids >= 0])
        with collection.reading() as index:
            try:
                vectors = index.reconstruct_batch(wanted)
            except RuntimeError:  # some are not there; to look for them takes longer
                wanted = np.intersect1d(wanted, faiss.vector_to_array(index.id_map))
                vectors = index.reconstruct_batch(wanted)
        return in_order(ids, wanted, vectors, self.n_features)

    def _make(self, number: int, width: int) -> Guarded:
        return Guarded(faiss.IndexIDMap2(faiss.index_factory(width, self._factory)))

    def _keep(self, image: Image) -> None:
        with image.collection.reading() as index:
            files.keep(
                self._folder,
                image.number,
                image.weight,
                lambda path: faiss.write_index(index, path),
            )

    def _newest(self) -> Image | None:
        found = files.newest(self._folder)
        return found and Image(found[0], found[1], Guarded(faiss.read_index(found[2])))

    def _drop(self, number: int) -> None:
        files.drop(self._folder, number)
