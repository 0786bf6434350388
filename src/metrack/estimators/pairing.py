"""Pairs from labelled points: each new point is compared with a bounded buffer of past ones.

One part of the buffer holds the most recent points, the other a uniform sample of all before them
(Vitter's reservoir), so that it follows drift and still knows what came first.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from metrack.engine.numerics.kernels import Floats, Ints, inner, kernel
from metrack.engine.numerics.records import MOST, Flag, Number, Sizes, counts, floats
from metrack.estimators.inputs import LARGEST, PairBatch, Points
from metrack.estimators.online import OnlineLearner
from metrack.estimators.settings import is_number, whole

CHUNK = 1024  # points that are paired at a time
EMPTY = -1  # label of a slot that holds no point
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
        Each point takes ``pairs_per_point + 1`` numbers, so that batches of any sizes give the same
        pairs.
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
        arrays = {"labels": self.labels, "clock": self.clock}
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
        for start in range(0, len(labels), CHUNK):
            stop = start + CHUNK
            self._teach(learner, X[start:stop], self._encode(labels[start:stop]))

    def widen(self, n_features: int) -> None:
        """Give dense points more features, which are 0 so far."""
        if self.points is not None:
            more = n_features - self.points.shape[1]
            self.points = np.pad(self.points, ((0, 0), (0, more)))

    def _teach(self, learner: OnlineLearner, X: Points, codes: Ints) -> None:
        n_points = len(codes)
        points, rows = self._points_with(X), np.arange(self.size)
        uniforms = self.rng.random_sample((n_points, self.pairs_per_point + 1))
        pairs = np.empty((n_points * self.pairs_per_point, 2), np.int64)
        y = np.empty(len(pairs))
        n = draw(self.labels, rows, self.clock, self.n_recent, codes, uniforms, pairs, y)
        if n > 0:
            learner.observe_batch(PairBatch(pairs[:n], points, points.shape[1]), y[:n])
        self._keep(points, rows)

    def _points_with(self, X: Any) -> Any:
        """The slots' points, followed by new ones."""
        n_new, n_features = X.shape
        given_sparse: bool = sp.issparse(X)
        if self.points is None:
            self.sparse, shape = given_sparse, (self.size, n_features)
            self.points = sp.csr_array(shape) if given_sparse else np.zeros(shape)
        if self.sparse:
            return sp.vstack([self.points, sp.csr_array(X)], format="csr")
        room = len(self.points) - self.size
        if room < n_new:
            self.points = np.pad(self.points, ((0, n_new - room), (0, 0)))
        self.points[self.size : self.size + n_new] = X.toarray() if given_sparse else X
        return self.points

    def _keep(self, points: Any, rows: Ints) -> None:
        """Let each slot hold the point of the given row."""
        if self.sparse:
            self.points = points[rows]
        else:
            moved = np.flatnonzero(rows != np.arange(self.size))
            points[moved] = points[rows[moved]]

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


@kernel
def draw(
    labels: Ints,
    rows: Ints,
    clock: Ints,
    n_recent: int,
    new: Ints,
    uniforms: Floats,
    pairs: Ints,
    y: Floats,
) -> int:
    """Pair new points with those in the slots, each before it takes a slot itself.

    Parameters
    ----------
    labels, rows : array (n_slots,)
        Label of each slot's point, and the row where that point is; both change.
    clock : array (2,)
        Points seen, and the kind of pair whose turn it is; changes.
    n_recent : int
        How many slots, the first, are for the most recent points.
    new : array (n_points,)
        Labels of the new points; their rows come after those of the slots.
    uniforms : array (n_points, pairs_per_point + 1)
    pairs, y : array (n_points * pairs_per_point, 2) and (n_points * pairs_per_point,)
        Where the rows of each pair and its label +1 or -1 go.

    Returns
    -------
    int
        The number of pairs.
    """
    n_pairs = 0
    last = uniforms.shape[1] - 1
    for i in range(new.size):
        for k in range(last):
            alike = clock[1] == 0
            slot = _partner(labels, new[i], alike, uniforms[i, k])
            if slot == EMPTY:
                break
            pairs[n_pairs, 0], pairs[n_pairs, 1] = labels.size + i, rows[slot]
            y[n_pairs] = 1.0 if alike else -1.0
            clock[1] = 1 - clock[1]
            n_pairs += 1
        _remember(labels, rows, clock, n_recent, new[i], labels.size + i, uniforms[i, last])
    return n_pairs


@inner
def _partner(labels: Ints, label: int, alike: bool, uniform: float) -> int:
    """A slot drawn among those with the same label, or among those with another."""
    n = 0
    for slot in range(labels.size):
        if labels[slot] != EMPTY and (labels[slot] == label) == alike:
            n += 1
    left = int(uniform * n)
    for slot in range(labels.size):
        if labels[slot] != EMPTY and (labels[slot] == label) == alike:
            if left == 0:
                return slot
            left -= 1
    return EMPTY


@inner
def _remember(
    labels: Ints, rows: Ints, clock: Ints, n_recent: int, label: int, row: int, uniform: float
) -> None:
    """Give a point the slot of the oldest recent one, which the reservoir then may take."""
    older = clock[0] - n_recent  # points that have left the recent slots before
    if n_recent > 0:
        slot = clock[0] % n_recent
        old_label, old_row = labels[slot], rows[slot]
        labels[slot], rows[slot] = label, row
        label, row = old_label, old_row
    clock[0] += 1
    n_sampled = labels.size - n_recent
    if older >= 0 and n_sampled > 0:
        place = older if older < n_sampled else int(uniform * (older + 1))
        if place < n_sampled:
            labels[n_recent + place], rows[n_recent + place] = label, row
