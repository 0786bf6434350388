"""LanceDB: a table on disk, images of it in tables beside it."""

from typing import Any

import numpy as np

from metrack.checks import Ints
from metrack.stores.store import Image, Store, Vectors, in_order, padded

try:
    import pyarrow as pa
except ImportError:
    raise ImportError('pyarrow is missing: pip install "metrack[stores]"') from None

AT_ONCE = 1024  # ids in a condition


class LanceStore(Store):
    """A table of LanceDB that is searched through a metric.

    Parameters
    ----------
    db : lancedb.DBConnection
        As `lancedb.connect` gives it. Beside the table are ``<table>_metrack``, with a row for each
        image, and the newest images, ``<table>_metrack_1`` and so on.
    table : str
        With a column of ids, whole numbers, and one of plain vectors.
    id, vector : str
        Their names.
    """

    def __init__(self, db: Any, table: str, *, id: str = "id", vector: str = "vector") -> None:
        plain = db.open_table(table)
        self._db, self._images, self._id, self._vector = db, f"{table}_metrack", id, vector
        self.n_features = plain.schema.field(vector).type.list_size
        super().__init__(plain)

    def _fill(self, collection: Any, ids: Ints, vectors: Vectors) -> None:
        flat = pa.array(vectors.ravel())
        listed = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        collection.add(pa.table({self._id: ids, self._vector: listed}))

    def _nearest(self, collection: Any, vectors: Vectors, k: int) -> Ints:
        return padded([self._nearest_to(collection, each, k) for each in vectors], k)

    def _nearest_to(self, collection: Any, vector: Vectors, k: int) -> Ints:
        asked = collection.search(vector, vector_column_name=self._vector)
        found = asked.select([self._id, "_distance"]).limit(k).to_arrow()
        ids: Ints = found[self._id].to_numpy()
        return ids

    def _ids(self, collection: Any) -> Ints:
        found = collection.search().select([self._id]).limit(collection.count_rows()).to_arrow()
        return np.array(found[self._id].to_numpy(), np.int64)

    def _vectors(self, collection: Any, ids: Ints) -> Vectors:
        wanted = np.unique(ids[ids >= 0])
        known, flat = np.empty(0, np.int64), np.empty(0, np.float32)
        for start in range(0, len(wanted), AT_ONCE):
            some = ", ".join(map(str, wanted[start : start + AT_ONCE].tolist()))
            asked = collection.search().where(f"{self._id} IN ({some})")
            part = asked.select([self._id, self._vector]).limit(AT_ONCE).to_arrow()
            known = np.concatenate([known, part[self._id].to_numpy()])
            flat = np.concatenate([flat, part[self._vector].combine_chunks().flatten().to_numpy()])
        vectors = flat.reshape(-1, self.n_features).astype(np.float32)
        return in_order(ids, known, vectors, self.n_features)

    def _make(self, number: int, width: int) -> Any:
        columns = {self._id: pa.int64(), self._vector: pa.list_(pa.float32(), width)}
        return self._db.create_table(self._image_name(number), schema=pa.schema(columns))

    def _keep(self, image: Image) -> None:
        """One row, which is there or not: it makes the image the newest."""
        columns = {"number": pa.int64(), "weight": pa.list_(pa.float32())}
        row = [{"number": image.number, "weight": image.weight.ravel()}]
        images = self._db.create_table(self._images, schema=pa.schema(columns), exist_ok=True)
        images.add(row)

    def _newest(self) -> Image | None:
        if self._images not in self._tables():
            return None
        kept = self._db.open_table(self._images).to_arrow().to_pylist()
        if not kept:
            return None
        row = max(kept, key=lambda each: each["number"])
        weight = np.array(row["weight"], np.float32).reshape(-1, self.n_features)
        return Image(row["number"], weight, self._db.open_table(self._image_name(row["number"])))

    def _drop(self, number: int) -> None:
        if self._images in (tables := self._tables()):
            self._db.open_table(self._images).delete(f"number = {number}")
        if (name := self._image_name(number)) in tables:
            self._db.drop_table(name)

    def _image_name(self, number: int) -> str:
        return f"{self._images}_{number}"

    def _tables(self) -> list[str]:
        """All of the database, which lists them page by page."""
        page = self._db.list_tables()
        names = list(page.tables)
        while page.page_token:
            page = self._db.list_tables(page_token=page.page_token)
            names += page.tables
        return names
