"""Pairs from labelled points: each new point is compared with a bounded buffer of past ones.

One part of the buffer holds the most recent points, the other a uniform sample of all before them
(Vitter's reservoir), so that it follows drift and still knows what came first. How far back points
tell something is learned, and which of them tell most depends on the metric of the moment, which is
read now and then; see `engine.online.partners`.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.records import MOST, Flag, Number, Sizes, counts, floats
from metrack.engine.online.nearest import EMPTY, embed
from metrack.engine.online.partners import (
    PER_PAIR,
    PER_POINT,
    Drawn,
    Slots,
    draw,
    new_doubt,
    new_work,
    windows_of,
)
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.inputs import LARGEST, PairBatch, Points
from metrack.estimators.inputs.settings import is_number, whole

CHUNK = 1024  # points that are paired at a time
DIRECTIONS = 256  # of the metric, at most, by which near points are told from far ones
FIRST_LOOK, EVERY = 8, 32  # points, see `next_refresh`
LABELS = (str, int, float)  # kinds of labels that can be saved


class PairBuffer:
    """Slots for points and their labels, and the pairs drawn from them.

    Similar and dissimilar pairs take turns. Where the buffer has no partner of the kind whose turn
    it is, the point draws no more: so the two kinds never differ by more than one in number, and a
    stretch of a single class does not pull the metric to 0.

    Parameters
    ----------
    size : int
        Number of points remembered.
    recent : float in [0, 1]
        Share of them that are the most recent ones.
    pairs_per_point : int
        Most pairs drawn for a new point.
    rng : RandomState
        Each point takes as many numbers, so that batches of any sizes give the same pairs.
    """

    def __init__(self, size: Any, recent: Any, pairs_per_point: Any, rng: Any) -> None:
        if not (is_number(recent) and 0.0 <= recent <= 1.0):
            raise ValueError(f"recent={recent!r}; it must be a share between 0 and 1")
        self.size = whole("buffer_size", size)
        self.n_recent = round(recent * self.size)
        self.pairs_per_point = whole("pairs_per_point", pairs_per_point)
        self.rng = rng
        self.labels = np.full(self.size, EMPTY)
        self.clock = np.zeros(2, np.int64)  # points seen; whose turn it is: 0 similar, 1 dissimilar
        self.windows = windows_of(self.n_recent, self.size)
        self.doubt = new_doubt(len(self.windows))
        self.columns: Any = None  # (n_features, rank): what points are embedded by; None: not yet
        self.images = np.zeros((self.size, 0))  # embedded points, in the order of the points
        self.points: Any = None  # the slots' points, and if dense room for new ones behind them
        self.sparse = False
        self.codes: dict[Hashable, int] = {}
        self.n_codes = 0

    def pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What JSON can say, and the arrays; the generator belongs to the caller."""
        for label in self.codes:
            if not isinstance(label, LABELS):
                kind = type(label).__name__
                raise TypeError(
                    f"label {label!r} is {kind}; labels that can be saved are text or numbers"
                )
        codes = [[label, code] for label, code in self.codes.items()]
        plain = {"codes": codes, "n_codes": self.n_codes, "sparse": self.sparse}
        arrays = {"labels": self.labels, "clock": self.clock, "doubt": self.doubt}
        if self.columns is not None:
            arrays |= {"columns": self.columns, "images": self.images[: self.size]}
        if self.sparse:
            arrays |= {
                "data": self.points.data,
                "indices": self.points.indices.astype(np.int64),
                "indptr": self.points.indptr.astype(np.int64),
            }
        elif self.points is not None:
            arrays |= {"points": self.points[: self.size]}
        return plain, arrays

    def unpack(self, plain: Mapping[str, Any], arrays: Mapping[str, Any], n_features: int) -> None:
        """Take over what `pack` gave, where it is what such a buffer may hold."""
        n_codes = Number(0, MOST, whole=True).checked(plain["n_codes"], "n_codes", {})
        codes = dict(plain["codes"])
        if not all(isinstance(each, LABELS) for each in codes):
            raise ValueError("labels must be text or numbers")
        known = set(codes.values())
        own = all(type(code) is int and 0 <= code < n_codes for code in known)
        if not own or len(known) < len(plain["codes"]):
            raise ValueError("labels must have a number each, of their own")
        sizes = {"slots": self.size, "n": n_features}
        labels = counts("slots", least=EMPTY).checked(arrays["labels"], "labels", sizes)
        clock = counts(2).checked(arrays["clock"], "clock", sizes)
        filled = np.arange(self.size) < clock[0]
        if clock[1] > 1 or not np.array_equal(labels != EMPTY, filled):
            raise ValueError(f"the buffer's slots do not hold what {clock[0]:,} points leave there")
        if not set(labels[filled].tolist()) <= known:
            raise ValueError("the buffer holds labels that have no name")
        self.labels, self.clock, self.codes, self.n_codes = labels, clock, codes, n_codes
        self.sparse = Flag().checked(plain["sparse"], "sparse", {})
        self.points = self._unpack_points(arrays, sizes)
        doubt = floats(1 + len(self.windows), least=0.0, most=self.size)
        self.doubt = doubt.checked(arrays["doubt"], "doubt", sizes)
        if "columns" in arrays:
            self.columns = floats("n", "rank").checked(arrays["columns"], "columns", sizes)
            self.images = floats("slots", "rank").checked(arrays["images"], "images", sizes)

    def _unpack_points(self, arrays: Mapping[str, Any], sizes: Sizes) -> Any:
        if not self.sparse:
            if "points" not in arrays and self.clock[0] == 0:
                return None
            points = floats("slots", "n", least=-LARGEST, most=LARGEST)
            return points.checked(arrays["points"], "points", sizes)
        data = floats("entries", least=-LARGEST, most=LARGEST).checked(
            arrays["data"], "data", sizes
        )
        indices = counts("entries").checked(arrays["indices"], "indices", sizes)
        indptr = counts(self.size + 1).checked(arrays["indptr"], "indptr", sizes)
        found = sp.csr_array((data, indices, indptr), shape=(self.size, sizes["n"]))
        found.check_format(full_check=True)
        return found

    def teach(self, learner: OnlineLearner, X: Points, labels: Sequence[Hashable]) -> None:
        """Draw pairs for each point in turn, let a fitted learner learn them, remember the point.

        Parameters
        ----------
        learner : OnlineLearner
        X : array or CSR matrix (n_points, n_features)
            Checked.
        labels : sequence of n_points class labels
        """
        start, n_features = 0, X.shape[1]
        while start < len(labels):
            seen = int(self.clock[0])
            if is_refresh(seen, n_features):
                self._look(learner)
            stop = start + min(CHUNK, next_refresh(seen, n_features) - seen)
            self._teach(learner, X[start:stop], self._encode(labels[start:stop]))
            start = stop

    def rescale(self, factors: Floats) -> None:
        """Multiply the features of dense points, which are as far apart as before."""
        if self.points is not None:
            self.points *= factors
        if self.columns is not None:
            self.columns = self.columns / factors[:, None]

    def widen(self, n_features: int) -> None:
        """Give dense points more features, which are 0 so far."""
        if self.points is not None:
            more = n_features - self.points.shape[1]
            self.points = np.pad(self.points, ((0, 0), (0, more)))
            if self.columns is not None:
                self.columns = np.pad(self.columns, ((0, more), (0, 0)))

    def _teach(self, learner: OnlineLearner, X: Points, codes: Ints) -> None:
        n_points, n_drawn = len(codes), len(codes) * self.pairs_per_point
        points, rows = self._points_with(X), np.arange(self.size)
        images = self._images_with(X)
        n_numbers = self.pairs_per_point * PER_PAIR + PER_POINT
        uniforms = self.rng.random_sample((n_points, n_numbers))
        drawn = Drawn(np.empty((n_drawn, 2), np.int64), np.empty(n_drawn))
        tallies = self.clock, self.doubt, self.windows
        slots = Slots(self.labels, rows, images, *tallies, self.n_recent)
        n = draw(slots, codes, uniforms, new_work(self.size, len(self.windows)), drawn)
        if n > 0:
            learner.observe_batch(PairBatch(drawn.pairs[:n], points, points.shape[1]), drawn.y[:n])
        self.points, self.images = _kept(points, rows), _kept(images, rows)

    def _look(self, learner: Any) -> None:
        """Tell near points from far ones by the metric of this moment, if the learner has one."""
        if not hasattr(learner, "neighbour_components"):
            return
        self.columns = np.ascontiguousarray(learner.neighbour_components()[:DIRECTIONS].T)
        self.images = self._embed(self.points[: self.size])

    def _embed(self, X: Any) -> Floats:
        """Each point by itself, so that batches of any sizes give the same."""
        if self.columns is None:
            return np.zeros((X.shape[0], 0))
        if sp.issparse(X):
            product: Floats = X @ self.columns
            return product
        images = np.empty((len(X), self.columns.shape[1]))
        embed(X, self.columns, np.arange(X.shape[1]), images)
        return images

    def _points_with(self, X: Any) -> Any:
        """The slots' points, followed by new ones."""
        n_new, n_features = X.shape
        given_sparse: bool = sp.issparse(X)
        if self.points is None:
            self.sparse, shape = given_sparse, (self.size, n_features)
            self.points = sp.csr_array(shape) if given_sparse else np.zeros(shape)
        if self.sparse:
            return sp.vstack([self.points, sp.csr_array(X)], format="csr")
        self.points = _with_room(self.points, self.size, n_new)
        self.points[self.size : self.size + n_new] = X.toarray() if given_sparse else X
        return self.points

    def _images_with(self, X: Any) -> Floats:
        """The slots' embedded points, followed by new ones."""
        self.images = _with_room(self.images, self.size, X.shape[0])
        self.images[self.size : self.size + X.shape[0]] = self._embed(X)
        return self.images

    def _encode(self, labels: Sequence[Hashable]) -> Ints:
        """Numbers in place of labels; those that no slot holds any more are forgotten in time."""
        if len(self.codes) > 4 * self.size:
            held = set(self.labels.tolist())
            self.codes = {label: code for label, code in self.codes.items() if code in held}
        for label in labels:
            if label not in self.codes:
                self.codes[label] = self.n_codes
                self.n_codes += 1
        return np.fromiter(map(self.codes.__getitem__, labels), np.int64, len(labels))


def _with_room(rows: Floats, n_slots: int, n_new: int) -> Floats:
    """The rows of all slots, with room for new ones behind."""
    missing = n_slots + n_new - len(rows)
    return np.pad(rows, ((0, missing), (0, 0))) if missing > 0 else rows


def _kept(points: Any, rows: Ints) -> Any:
    """Points of which the slots hold those of the given rows."""
    if not isinstance(points, np.ndarray):
        return points[rows]
    moved = np.flatnonzero(rows != np.arange(len(rows)))
    points[moved] = points[rows[moved]]
    return points


def next_refresh(n_points: int, n_features: int) -> int:
    """At how many points of a stream, more than so many, the metric of the moment is read next.

    To read it takes as long as to learn from a number of points that grows with that of features:
    so it is read each time that a stream has doubled, and then as often as there are features.
    """
    every = max(EVERY, 1 << (n_features - 1).bit_length())
    if n_points >= every:
        return (n_points // every + 1) * every
    return max(FIRST_LOOK, 1 << n_points.bit_length())


def is_refresh(n_points: int, n_features: int) -> bool:
    """Whether the metric is read after so many points."""
    return n_points > 0 and n_points == next_refresh(n_points - 1, n_features)
