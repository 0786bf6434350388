"""Makes a store of each kind in a folder, empty or as it was left: what the tests run on."""

import warnings
from pathlib import Path

N_FEATURES = 8


def usearch(folder, fresh=True):
    from usearch.index import Index

    from metrack.stores.usearch import UsearchStore

    plain = Index(ndim=N_FEATURES, metric="l2sq", dtype="f32")
    if not fresh:
        plain.load(str(folder / "plain"))
    return UsearchStore(plain, folder / "images", exact=True)  # a graph may miss an item


def faiss(folder, fresh=True):
    import faiss

    from metrack.stores.faiss import FaissStore

    if fresh:
        plain = faiss.IndexIDMap2(faiss.IndexFlatL2(N_FEATURES))
    else:
        plain = faiss.read_index(str(folder / "plain"))
    return FaissStore(plain, folder / "images")


def lancedb(folder, fresh=True):
    import lancedb
    import pyarrow as pa

    from metrack.stores.lancedb import LanceStore

    db = lancedb.connect(folder / "db")
    if fresh:
        columns = {"key": pa.int64(), "of": pa.list_(pa.float32(), N_FEATURES), "text": pa.string()}
        db.create_table("items", schema=pa.schema(columns))
    return LanceStore(db, "items", id="key", vector="of")


def qdrant(folder, fresh=True):
    from qdrant_client import QdrantClient, models

    from metrack.stores.qdrant import QdrantStore

    client = QdrantClient(path=str(folder / "db"))
    if fresh:
        vectors = {"of": models.VectorParams(size=N_FEATURES, distance=models.Distance.EUCLID)}
        client.create_collection("items", vectors)
    return QdrantStore(client, "items", "of")


KINDS = {"usearch": usearch, "faiss": faiss, "lancedb": lancedb, "qdrant_client": qdrant}


def left(store, folder):
    """Have on the disk what is the user's to keep, and let go of it."""
    kind = type(store).__name__
    if kind == "UsearchStore":
        store._plain.save(str(folder / "plain"))
    elif kind == "FaissStore":
        import faiss

        with store._plain.reading() as index:
            faiss.write_index(index, str(folder / "plain"))
    elif kind == "QdrantStore":
        store._client.close()


def crash_at(kind, folder, step):
    """A process that embeds anew, and ends at some step as if its power were cut."""
    import os

    import numpy as np

    warnings.simplefilter("ignore")
    store = KINDS[kind](Path(folder), fresh=False)
    method, done = getattr(store, step), []

    def cut(*args):
        if done:  # the first block was embedded
            os._exit(9)
        done.append(method(*args))

    def at_once(*args):
        os._exit(9)

    setattr(store, step, cut if step == "_fill" else at_once)
    store.refresh(np.eye(N_FEATURES)[1:2])
