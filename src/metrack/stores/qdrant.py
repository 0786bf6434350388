"""Qdrant: a collection of a server's, or on disk in the client's local mode, images beside it."""

import base64
from typing import Any

import numpy as np

from metrack.checks import Ints
from metrack.stores.store import Image, Store, Vectors, in_order, padded

try:
    from qdrant_client import QdrantClient, models
except ImportError:
    raise ImportError('qdrant_client is missing: pip install "metrack[stores]"') from None

AT_ONCE = 1024  # points


class QdrantStore(Store):
    """A collection of Qdrant that is searched through a metric.

    Parameters
    ----------
    client : QdrantClient
        Of a server, or ``QdrantClient(path=...)``. Beside the collection are
        ``<collection>-metrack``, with a point for each image, and the newest images,
        ``<collection>-metrack-1`` and so on.
    collection : str
        Its points have whole numbers as ids.
    vector : str or None
        Name of the plain vectors, where they have one.
    """

    def __init__(self, client: QdrantClient, collection: str, vector: str | None = None) -> None:
        described: Any = client.get_collection(collection).config.params.vectors
        self.n_features = int((described if vector is None else described[vector]).size)
        self._client, self._name, self._vector = client, collection, vector
        self._images = f"{collection}-metrack"
        super().__init__(collection)

    def _using(self, collection: str) -> str | None:
        return self._vector if collection == self._name else None

    def _fill(self, collection: Any, ids: Ints, vectors: Vectors) -> None:
        using = self._using(collection)
        for start in range(0, len(ids), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            points = [
                models.PointStruct(id=id, vector=each if using is None else {using: each})
                for id, each in zip(ids[some].tolist(), vectors[some].tolist(), strict=True)
            ]
            self._client.upsert(collection, points, wait=True)

    def _nearest(self, collection: Any, vectors: Vectors, k: int) -> Ints:
        using = self._using(collection)
        asked = [models.QueryRequest(query=v, limit=k, using=using) for v in vectors.tolist()]
        found = self._client.query_batch_points(collection, asked)
        return padded([[point.id for point in each.points] for each in found], k)

    def _ids(self, collection: Any) -> Ints:
        ids: list[Any] = []
        start: Any = None
        while True:
            points, start = self._client.scroll(
                collection, limit=100 * AT_ONCE, offset=start, with_payload=False
            )
            ids += [point.id for point in points]
            if start is None:
                return np.array(ids, np.int64)

    def _vectors(self, collection: Any, ids: Ints) -> Vectors:
        wanted, using = np.unique(ids[ids >= 0]).tolist(), self._using(collection)
        found = [
            (point.id, point.vector if using is None else point.vector[using])
            for start in range(0, len(wanted), AT_ONCE)
            for point in self._client.retrieve(
                collection, wanted[start : start + AT_ONCE], with_payload=False, with_vectors=True
            )
        ]
        known = np.array([id for id, _ in found], np.int64)
        vectors = np.array([vector for _, vector in found], np.float32)
        return in_order(ids, known, vectors, self.n_features)

    def _make(self, number: int, width: int) -> Any:
        name = f"{self._images}-{number}"
        self._client.create_collection(
            name, models.VectorParams(size=width, distance=models.Distance.EUCLID)
        )
        return name

    def _keep(self, image: Image) -> None:
        """One point, which is there or not: it makes the image the newest."""
        if not self._client.collection_exists(self._images):
            self._client.create_collection(
                self._images, models.VectorParams(size=1, distance=models.Distance.EUCLID)
            )
        weight = base64.b64encode(image.weight.tobytes()).decode("ascii")
        point = models.PointStruct(id=image.number, vector=[0.0], payload={"weight": weight})
        self._client.upsert(self._images, [point], wait=True)

    def _newest(self) -> Image | None:
        if not self._client.collection_exists(self._images):
            return None
        kept = self._client.scroll(self._images, limit=AT_ONCE)[0]  # the last two, or fewer
        if not kept:
            return None
        number, payload = max((int(point.id), point.payload or {}) for point in kept)
        flat = np.frombuffer(base64.b64decode(payload["weight"]), np.float32)
        weight = flat.reshape(-1, self.n_features)
        return Image(number, weight, f"{self._images}-{number}")

    def _drop(self, number: int) -> None:
        if number > 0 and self._client.collection_exists(self._images):
            self._client.delete(self._images, [number], wait=True)
        if self._client.collection_exists(name := f"{self._images}-{number}"):
            self._client.delete_collection(name)
