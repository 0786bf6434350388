"""Search by a tracked metric: candidates of a store, ordered by the metric of the moment.

What a store has embedded grows old as the metric moves. Its candidates are ordered anew, so only
those matter that are not among them. How many those are is measured: on the latest queries, whose
nearest are looked for among all items. Where too many are missing, the store embeds anew.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta

from metrack.checks import Floats, Ints, number, whole
from metrack.stores.store import NOBODY, Store, Vectors, check_vectors

PROBES, NEAREST = 200, 10  # latest queries, or items, and how many of the nearest each has
SURE = 0.95


class Found(NamedTuple):
    """The nearest items of each query, the nearest first; at the end -1 and infinity, if fewer."""

    ids: Ints
    distances: Floats


class Refreshed(NamedTuple):
    """What a refresh has found, and done.

    Attributes
    ----------
    embedded : int
        Items that were embedded anew; 0: that was not called for.
    missed : float
        Share of the 10 nearest items, by the metric of the moment, that were not among the
        candidates: of the 200 latest queries, or items drawn at random where there were fewer.
    at_most : float
        What it is at most for all queries like these, with a confidence of 95 %.
    allowed : float
        What it may be before vectors are embedded anew.
    left : float
        The share after that; what the store itself misses.
    seconds : float
    """

    embedded: int
    missed: float
    at_most: float
    allowed: float
    left: float
    seconds: float

    @property
    def why(self) -> str:
        """The same in a sentence."""
        found = (
            f"{self.missed:.1%} of the nearest items are not among the candidates (at most "
            f"{self.at_most:.1%}; {self.allowed:.1%} are allowed)"
        )
        if not self.embedded:
            return f"{found}: nothing to do"
        return f"{found}: {self.embedded:,} items were embedded anew, which leaves {self.left:.1%}"


class Search:
    """The nearest items by a metric that moves, in a vector store.

    Queries never wait: not for learning, nor for embedding. They go by the metric that the last
    `refresh` took up, and by what the store has at the moment.

    Parameters
    ----------
    store : Store
        Such as `metrack.stores.qdrant.QdrantStore`.
    tracker : MetricTracker or any other learner of a linear metric
        Its `for_neighbours` is followed, or where it has none what it has learned.
    candidates : int
        How many times as many items are taken from the store as are asked for.
    may_miss : float
        Share of the nearest items that may not be among them before all are embedded anew. With 1
        that is never done: the store keeps nothing but the plain vectors.
    random_state : int
        For which items are drawn to measure it.
    """

    def __init__(
        self,
        store: Store,
        tracker: Any,
        candidates: int = 5,
        may_miss: float = 0.05,
        random_state: int = 0,
    ) -> None:
        read = getattr(tracker, "for_neighbours", None)
        if not hasattr(tracker, "to_linear"):
            raise TypeError(
                f"tracker is a {type(tracker).__name__}; stores follow linear metrics, such as "
                "that of MetricTracker()"
            )
        self.store, self.tracker = store, tracker
        self.candidates = whole("candidates", candidates)
        self.may_miss = number("may_miss", may_miss, most=1.0)
        self._read: Callable[[], Any] = read or (lambda: tracker)
        self._rng = np.random.default_rng(random_state)
        self._weight = store.weight
        self._latest = np.empty((0, store.n_features), np.float32)
        self._left = 0.0
        self._lock = threading.Lock()
        self._refreshing: Future[Refreshed] | None = None

    def add(self, ids: ArrayLike, vectors: ArrayLike) -> None:
        """Take up items with new ids; see `Store.add`."""
        self.store.add(ids, vectors)

    def query(self, vectors: ArrayLike, k: int = 10) -> Found:
        """The k nearest items of each vector.

        Parameters
        ----------
        vectors : array (n_queries, n_features), or (n_features,) for one
            As they come from the encoder.
        k : int
        """
        points = check_vectors(np.atleast_2d(np.asarray(vectors)), self.store.n_features)
        ids = self.store.query(points, self.candidates * whole("k", k))
        self._latest = np.concatenate([self._latest, points])[-PROBES:]
        return self._nearest(points, ids, k, self._weight)

    def _nearest(self, points: Vectors, ids: Ints, k: int, weight: Vectors | None) -> Found:
        """The nearest of candidates."""
        flat = self.store.vectors(ids.ravel()).reshape(*ids.shape, -1)
        apart = flat - points[:, None]
        apart = apart if weight is None else apart @ weight.T
        distances = np.sqrt(np.einsum("ijk,ijk->ij", apart, apart).astype(float))
        distances[np.isnan(distances)] = np.inf  # gone since, or fewer
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        distances = np.take_along_axis(distances, order, axis=1)
        chosen = np.take_along_axis(ids, order, axis=1)
        return Found(np.where(np.isfinite(distances), chosen, NOBODY), distances)

    def refresh(self) -> Future[Refreshed]:
        """Take up the metric of the moment, and embed all vectors anew where that is called for.

        It returns at once; the work is done by a thread. ``refresh().result()`` waits for it, and
        tells what was done and why. While one is under way, it is what further calls return.
        """
        with self._lock:
            if self._refreshing is None or self._refreshing.done():
                thread = ThreadPoolExecutor(1, "metrack-refresh")
                self._refreshing = thread.submit(self._refresh)
                thread.shutdown(wait=False)
            return self._refreshing

    def _refresh(self) -> Refreshed:
        began = time.monotonic()
        weight = np.ascontiguousarray(self._read().to_linear().weight, np.float32)
        if weight.shape[1] != self.store.n_features:
            raise ValueError(
                f"the metric is of {weight.shape[1]} features, the store of {self.store.n_features}"
            )
        self._weight = weight
        probes, nearest = self._probes(weight)
        missed = self._missed(probes, nearest)
        at_most = bound(missed, len(probes))
        embedded, left = 0, missed
        if at_most - self._left > self.may_miss and not _same(weight, self.store.weight):
            embedded = self.store.refresh(weight)
            left = self._left = self._missed(probes, nearest)
        seconds = time.monotonic() - began
        return Refreshed(embedded, missed, at_most, self.may_miss, left, seconds)

    def _probes(self, weight: Vectors) -> tuple[Vectors, Ints]:
        """Some vectors, and the nearest items of each: by comparison with every one."""
        asked, ids = self._latest, self.store.ids()
        drawn = self._rng.choice(ids, min(PROBES - len(asked), len(ids)), replace=False)
        probes = np.concatenate([asked, self.store.vectors(drawn)])
        itself = np.concatenate([np.full(len(asked), NOBODY), drawn])
        there = ~np.isnan(probes[:, 0])  # and not gone since
        probes, itself = probes[there], itself[there]
        images = probes @ weight.T
        best = np.full((len(probes), NEAREST), NOBODY, np.int64)
        squares = np.full((len(probes), NEAREST), np.inf, np.float32)
        for some, points in self.store.blocks():
            embedded = points @ weight.T
            norms = np.einsum("ij,ij->i", embedded, embedded)
            squares_here = norms - 2.0 * (images @ embedded.T)
            squares_here[itself[:, None] == some] = np.inf
            both = np.concatenate([squares, squares_here], axis=1)
            of = np.concatenate([best, np.broadcast_to(some, (len(probes), len(some)))], axis=1)
            first = np.argpartition(both, NEAREST - 1, axis=1)[:, :NEAREST]
            squares = np.take_along_axis(both, first, axis=1)
            best = np.take_along_axis(of, first, axis=1)
        return probes, best

    def _missed(self, probes: Vectors, nearest: Ints) -> float:
        """The share of the nearest that are not among the candidates."""
        if not len(probes):
            return 0.0
        found = self.store.query(probes, self.candidates * NEAREST)
        there = (nearest[:, :, None] == found[:, None]).any(axis=2) | (nearest == NOBODY)
        return float(1.0 - there.mean())


def bound(share: float, n: int) -> float:
    """What a mean share of n items is at most for all items (Clopper and Pearson).

    Each share is from 0 to 1, so it varies no more than a coin that has the same mean.
    """
    hits = share * n
    return float(beta.ppf(SURE, hits + 1.0, n - hits)) if hits < n else 1.0


def _same(one: Vectors, other: Vectors | None) -> bool:
    return other is not None and np.array_equal(one, other)
