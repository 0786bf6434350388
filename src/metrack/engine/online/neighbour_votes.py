"""Votes of nearest neighbours, mixed: how many of them, of how long a window, by which metric.

How experts vote and are weighed is in `votes`; here are what is kept, and what is asked of it.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from metrack.engine.ensemble.combiners.adaptive_share import ADAPTIVE_SHARE
from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.numerics.records import counts, floats
from metrack.engine.online.nearest import EMPTY, Nearest, embed, new_memory
from metrack.engine.online.votes import (
    N_ROWS,
    SHARE,
    Sight,
    State,
    Table,
    Trust,
    Work,
    activate_all,
    points_per_row,
    read_weights,
    vote,
    vote_and_learn,
)

NEIGHBOURS = (1, 3, 7, 15, 31)  # 2^j - 1
RATIO = 5  # of a window and the next shorter one; of the ring and the reserve
COMBINER, RECORD = ADAPTIVE_SHARE, ADAPTIVE_SHARE.record
ERRORS, CHANGES = -2, -1  # columns of the history behind those of the experts


class Kept(NamedTuple):
    """What a saved state has of the memory, and of how points are compared."""

    points: Annotated[Floats, floats("filled", "n")]
    codes: Annotated[Ints, counts("slots", least=EMPTY)]
    arrived: Annotated[Ints, counts("slots")]
    missed: Annotated[Ints, counts("slots", most=1)]
    units: Annotated[Floats, floats("n", least=0.0)]
    columns: Annotated[Floats, floats("n", "rank")]
    noticed: Annotated[Ints, counts(2)]  # points at the last change, and when it was for the metric


class Parts(NamedTuple):
    """All that a saved state has."""

    kept: Kept
    trust: Trust


class Past(NamedTuple):
    """What was, stretch by stretch of the stream."""

    stops: Ints  # points seen at the end of each
    weights: Floats  # mean ones: stretches x metrics x windows x numbers of neighbours
    errors: Floats  # share of points
    changes: Ints  # noticed


class NeighbourVotes:
    """Nearest neighbours of a stream's points, point by point; the longest window has so many."""

    def __init__(self, n_features: int, longest: int) -> None:
        self.table = Table(windows_up_to(longest), np.array(NEIGHBOURS))
        self.n_points = 0
        self.memory = new_memory(longest + max(longest // RATIO, 1), n_features)
        self.noticed = np.zeros(2, np.int64)
        self.trust = _new_trust(self.table.shape)
        images = np.zeros_like(self.memory.points)
        self.sight = Sight(np.ones(n_features), np.eye(n_features), images)

    @property
    def filled(self) -> Ints:
        """The slots that hold points."""
        return np.flatnonzero(self.memory.codes != EMPTY)

    def latest(self, n: int) -> Ints:
        """The slots of the latest points, the newest first."""
        longest = int(self.table.windows[-1])
        return (self.n_points - 1 - np.arange(min(n, self.n_points, longest))) % longest

    @property
    def units(self) -> Floats:
        """What features are multiplied by, to be in their own units."""
        return self.sight.units

    @property
    def weights(self) -> Floats:
        """How much each expert is trusted: metrics x windows x numbers of neighbours."""
        p = np.empty(math.prod(self.table.shape))
        read_weights(RECORD, self.trust.statistics, p)
        return p.reshape(self.table.shape)

    def observe(self, points: Floats, codes: Ints, order: Ints) -> Ints:
        """Predict the code of each point's class, then learn it; EMPTY where none was known.

        Of classes with the same share of the votes, the one of the least ``order`` is predicted.
        """
        predicted = np.empty(len(points), np.int64)
        work = self._work(len(order))
        vote_and_learn(self._state, RECORD, self.n_points, points, codes, order, work, predicted)
        self.n_points += len(points)
        return predicted

    def predict_proba(self, points: Floats, n_classes: int) -> Floats:
        """Each class's share of the votes, (n_points, n_classes)."""
        masses = np.zeros((len(points), n_classes))
        vote(self._state, RECORD, self.n_points, points, self._work(n_classes), masses)
        masses /= masses.sum(axis=1, keepdims=True)  # rounded
        return masses

    def look(self, units: Floats, columns: Floats) -> None:
        """Compare points in other units; and by another metric, if it matters.

        It does where another one of the latest points is nearest to one of them. Points are
        multiplied by ``units`` to be in features' own ones, by ``columns`` to be embedded.
        """
        self.sight = self.sight._replace(units=units)
        probe = self.memory.points[self.latest(self.table.windows[:2][-1])]
        if not np.array_equal(_nearest(probe @ columns), _nearest(probe @ self.sight.columns)):
            self.embed_by(np.ascontiguousarray(columns))

    def embed_by(self, columns: Floats) -> None:
        """Compare points by another metric."""
        filled = self.filled
        found = np.empty((len(filled), columns.shape[1]))
        embed(self.memory.points[filled], columns, np.arange(len(columns)), found)
        images = np.zeros((len(self.memory.codes), columns.shape[1]))
        images[filled] = found
        self.sight = self.sight._replace(columns=columns, images=images)

    def notice(self, last_change: int) -> None:
        """Note that the metric's losses rose, where its last change is not known yet."""
        if last_change > self.noticed[1]:
            self.noticed[:] = self.n_points, last_change
            row = (self.n_points - 1) // points_per_row(self.n_points)
            self.trust.history[row, CHANGES] += 1.0

    def past(self) -> Past:
        """What was along the stream."""
        stride = points_per_row(self.n_points)
        n_rows = -(-self.n_points // stride)
        stops = np.minimum(np.arange(1, n_rows + 1) * stride, self.n_points)
        lengths = np.diff(stops, prepend=0)
        rows = self.trust.history[:n_rows]
        weights = rows[:, :ERRORS] / lengths[:, None]
        errors, changes = rows[:, ERRORS] / lengths, rows[:, CHANGES].astype(np.int64)
        return Past(stops, weights.reshape(-1, *self.table.shape), errors, changes)

    def widen(self, n_features: int) -> None:
        """Give points more features, which are 0 so far; the metric says nothing about them yet."""
        more = n_features - self.memory.points.shape[1]
        points = np.pad(self.memory.points, ((0, 0), (0, more)))
        self.memory = self.memory._replace(points=points)
        self.sight = self.sight._replace(
            units=np.pad(self.sight.units, (0, more), constant_values=1.0),
            columns=np.pad(self.sight.columns, ((0, more), (0, 0))),
        )

    def renumber(self, kept: Ints) -> None:
        """Let the i-th of the classes ``kept`` have the number i; no other has points."""
        held = self.filled
        self.memory.codes[held] = np.searchsorted(kept, self.memory.codes[held])

    def pack(self) -> Parts:
        """For a saved state."""
        memory = self.memory._replace(points=self.memory.points[self.filled])
        kept = Kept(*memory, self.sight.units, self.sight.columns, self.noticed)
        return Parts(kept, self.trust)

    def unpack(self, parts: Parts, n_points: int) -> None:
        """Go on from what was saved, where it is what so many points can have led to."""
        kept, trust = parts
        longest = int(self.table.windows[-1])
        like = self.memory.codes.shape, self.trust.statistics.shape, self.trust.history.shape
        if (kept.codes.shape, trust.statistics.shape, trust.history.shape) != like:
            raise ValueError("the votes are of another number of points or experts")
        filled = kept.codes != EMPTY
        ring = np.arange(longest) < n_points
        if len(kept.points) != filled.sum() or not np.array_equal(filled[:longest], ring):
            raise ValueError(f"the memory does not hold what {n_points:,} points leave there")
        if kept.noticed[0] > n_points:
            raise ValueError(f"a change is noticed at point {kept.noticed[0]:,} of {n_points:,}")
        self.memory.points[filled] = kept.points
        for name in ("codes", "arrived", "missed"):
            getattr(self.memory, name)[:] = getattr(kept, name)
        self.trust, self.noticed, self.n_points = trust, kept.noticed, n_points
        self.sight = self.sight._replace(units=kept.units)
        self.embed_by(kept.columns)

    @property
    def _state(self) -> State:
        return State(self.memory, self.sight, self.table, self.trust)

    def _work(self, n_classes: int) -> Work:
        n_metrics, n_windows, n_numbers = self.table.shape
        n_experts, most = n_metrics * n_windows * n_numbers, NEIGHBOURS[-1]
        shape = n_metrics, n_windows, most
        return Work(
            Nearest(np.empty(shape), np.empty(shape, np.int64)),
            np.empty(self.sight.columns.shape[1]),
            np.arange(len(self.sight.columns)),
            np.zeros((n_experts, most)),
            np.empty(n_experts),
            np.empty(n_experts),
            np.zeros(n_classes),
            np.zeros(n_classes, np.int64),
        )


def windows_up_to(longest: int) -> Ints:
    """Lengths of the nested windows, rising: each ``RATIO`` times the next shorter one."""
    found = [longest]
    while found[-1] // RATIO >= RATIO:
        found.append(found[-1] // RATIO)
    return np.array(found[::-1])


def _new_trust(shape: tuple[int, int, int]) -> Trust:
    """All share with those who forget least: nothing speaks for a shorter memory yet."""
    n_experts = math.prod(shape)
    statistics = np.zeros((n_experts + COMBINER.own_rows, COMBINER.n_statistics))
    activate_all(RECORD, statistics, n_experts)
    share = np.zeros(shape)
    share[:, -1] = 1.0 / share[:, -1].size
    statistics[:n_experts, SHARE] = share.ravel()
    return Trust(statistics, np.zeros((N_ROWS, n_experts + 2)))


def _nearest(images: Floats) -> Ints:
    """Which of the other points is nearest to each."""
    far = cdist(images, images)
    np.fill_diagonal(far, np.inf)
    found: Ints = np.argmin(far, axis=1)
    return found
