"""Vector stores that follow a metric: 100,000 items of 384 features, and a question that changes.

The items are made of 6,000 questions to a bank, embedded by a sentence encoder and projected on 384
directions: each lies between two questions of the same intent. `MetricTracker` learns 3,000 pairs
of one question (same group), then 3,000 of another (same intent), then of the first again. Measured
is the share of the 10 nearest, by exact search under the metric of now, that 200 questions find
that are not among the items, on five seeds; and, on one, times of queries, also while vectors are
embedded anew, and how long that takes. One thread.

    python benchmarks/stores.py [--items 100000] [--store "FAISS, flat"] [--out stores.json]
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from sklearn.decomposition import PCA

from benchmarks.family_streams import banking_path
from metrack import MetricTracker
from metrack.stores import Search

N_FEATURES, N_QUERIES, N_PAIRS, K = 384, 200, 3_000, 10
CANDIDATES = (1, 2, 5, 10, 20)
SEEDS = 5
AT_ONCE = 5_000  # items that are added


def data(n_items, rng):
    """Items, queries, and pairs of both questions."""
    with np.load(banking_path(), allow_pickle=False) as kept:
        X = PCA(N_FEATURES, svd_solver="covariance_eigh").fit_transform(kept["X"].astype(float))
        questions = {name: kept[name] for name in ("group", "intent")}
    X, intent = X.astype(np.float32), questions["intent"]
    held, rest = np.split(rng.permutation(len(X)), [N_QUERIES])
    first = rng.choice(rest, n_items)
    second = np.empty(n_items, int)
    for each in np.unique(intent):
        second[intent[first] == each] = rng.choice(
            rest[intent[rest] == each], np.sum(intent[first] == each)
        )
    between = rng.random((n_items, 1), dtype=np.float32)
    items = between * X[first] + (1.0 - between) * X[second]
    pairs = {name: judged(X, rest, labels, rng) for name, labels in questions.items()}
    return items, X[held], pairs


def judged(X, rest, labels, rng):
    """As many alike pairs as others."""
    rows = rng.choice(rest, (40 * N_PAIRS, 2))
    y = labels[rows[:, 0]] == labels[rows[:, 1]]
    half = [np.flatnonzero(y == alike)[: N_PAIRS // 2] for alike in (True, False)]
    chosen = rng.permutation(np.concatenate(half))
    return X[rows[chosen]], y[chosen]


def nearest(weight, items, queries, k):
    """By comparison with all."""
    embedded, asked = items @ weight.T, queries @ weight.T
    squares = np.einsum("ij,ij->i", embedded, embedded) - 2.0 * (asked @ embedded.T)
    rows = np.argpartition(squares, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(squares, rows, axis=1), axis=1)
    return np.take_along_axis(rows, order, axis=1)


def recall(found, truth):
    return float((truth[:, :, None] == found[:, None]).any(axis=2).mean())


class Moment:
    """A tracker, as it was when it was asked last."""

    def __init__(self, metric):
        self.metric = metric

    def for_neighbours(self):
        return self.metric

    def to_linear(self):
        return self.metric.to_linear()


def asked_one_by_one(search, queries, going_on=lambda: True):
    """Ids, and milliseconds of each query."""
    found, times = [], []
    for query in queries:
        start = time.perf_counter()
        found.append(search.query(query, K).ids[0])
        times.append(1e3 * (time.perf_counter() - start))
        if not going_on():
            break
    return np.array(found), times


def measure(store, items, queries, metrics, truth):
    """All figures of one store."""
    began = time.perf_counter()
    for start in range(0, len(items), AT_ONCE):
        some = np.arange(start, min(start + AT_ONCE, len(items)))
        store.add(some, items[some])
    result = {"add": time.perf_counter() - began}
    moment = Moment(metrics[0])
    rerank = Search(store, moment, may_miss=1.0)
    rerank.refresh().result()
    moment.metric = metrics[1]
    told = rerank.refresh().result()
    found, times = asked_one_by_one(rerank, queries)
    result["rerank"] = {"recall": recall(found, truth), "ms": np.median(times), "told": told.missed}
    refresh = Search(store, Moment(metrics[0]))
    refresh.refresh().result()
    refresh.tracker.metric = metrics[1]
    before, _ = asked_one_by_one(refresh, queries)
    under_way, meanwhile = refresh.refresh(), []
    while not under_way.done():
        meanwhile += asked_one_by_one(refresh, queries, lambda: not under_way.done())[1]
    told = under_way.result()
    print(f"    {told.why}", flush=True)
    found, times = asked_one_by_one(refresh, queries)
    result["refresh"] = {
        "before": recall(before, truth),
        "recall": recall(found, truth),
        "ms": np.median(times),
        "meanwhile": [np.median(meanwhile), np.quantile(meanwhile, 0.99), np.max(meanwhile)],
        "asked": len(meanwhile),
        "seconds": told.seconds,
        **{name: getattr(told, name) for name in ("embedded", "missed", "at_most", "left")},
    }
    return result


def usearch(folder, exact=False):
    from usearch.index import Index

    from metrack.stores.usearch import UsearchStore

    plain = Index(ndim=N_FEATURES, metric="l2sq", dtype="f32")
    return UsearchStore(plain, folder / "images", exact)


def exact_usearch(folder):
    return usearch(folder, exact=True)


def faiss(folder):
    import faiss

    from metrack.stores.faiss import FaissStore

    return FaissStore(faiss.IndexIDMap2(faiss.IndexFlatL2(N_FEATURES)), folder / "images")


def lancedb(folder):
    import lancedb
    import pyarrow as pa

    from metrack.stores.lancedb import LanceStore

    db = lancedb.connect(folder / "db")
    columns = {"id": pa.int64(), "vector": pa.list_(pa.float32(), N_FEATURES)}
    db.create_table("items", schema=pa.schema(columns))
    return LanceStore(db, "items")


def qdrant(folder):
    from qdrant_client import QdrantClient, models

    from metrack.stores.qdrant import QdrantStore

    client = QdrantClient(":memory:")  # on disk each point is a transaction of its own
    vectors = models.VectorParams(size=N_FEATURES, distance=models.Distance.EUCLID)
    client.create_collection("items", vectors)
    return QdrantStore(client, "items")


STORES = {
    "usearch, graph": ("usearch", usearch),
    "usearch, exact": ("usearch", exact_usearch),
    "FAISS, flat": ("faiss-cpu", faiss),
    "LanceDB, on disk": ("lancedb", lancedb),
    "Qdrant, local": ("qdrant-client", qdrant),
}


def curves(n_items, seed):
    """Items, queries, two metrics, the nearest under the second, and recall by candidates."""
    items, queries, pairs = data(n_items, np.random.default_rng(seed))
    tracker, metrics = MetricTracker(), []
    for name in ("group", "intent", "group"):
        metrics.append(tracker.partial_fit(*pairs[name]).for_neighbours())
    weights = [np.eye(N_FEATURES, dtype=np.float32)]
    weights += [each.components_.astype(np.float32) for each in metrics]
    truth, found = nearest(weights[2], items, queries, K), {}
    for name, weight, now in (
        ("plain vectors, the first switch", weights[0], weights[2]),
        ("plain vectors, the second switch", weights[0], weights[3]),
        ("embedded by the former question", weights[1], weights[2]),
    ):
        near = nearest(weight, items, queries, K * CANDIDATES[-1])
        best = truth if now is weights[2] else nearest(now, items, queries, K)
        found[name] = [recall(near[:, : K * times], best) for times in CANDIDATES]
    return items, queries, metrics[:2], truth, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--store", choices=STORES, nargs="*", default=list(STORES))
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore", "Local mode is not recommended")
    runs = [curves(asked.items, seed) for seed in range(SEEDS)]
    items, queries, metrics, truth, _ = runs[0]
    means = {name: np.mean([each[-1][name] for each in runs], axis=0) for name in runs[0][-1]}
    for name, mean in means.items():
        each = [round(float(run[-1][name][CANDIDATES.index(5)]), 3) for run in runs]
        print(f"{name}: recall by candidates {mean.round(3)}; with five times as many {each}")
    result = {
        "items": asked.items,
        "features": N_FEATURES,
        "pairs": N_PAIRS,
        "candidates": CANDIDATES,
        "seeds": SEEDS,
        "recall": {name: mean.tolist() for name, mean in means.items()},
        "stores": {},
    }
    for name in asked.store:
        package, make = STORES[name]
        print(f"{name} ({version(package)})", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            found = measure(make(Path(folder)), items, queries, metrics, truth)
        result["stores"][name] = {"version": version(package), **found}
        print(f"    {found}", flush=True)
    if asked.out is not None:
        asked.out.write_text(json.dumps(result, default=float) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
