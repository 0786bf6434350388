"""Votes of nearest neighbours, mixed: how many of them, of how long a window, by which metric.

An expert is a metric, a window and a number k. It predicts the classes of the k nearest points of
its window, each by 1 / distance, and loses half the Brier score, which is in [0, 1] and mixable:
there is no better rate than 2 for Hedge on it, which is the one of ``adaptive_share`` (Vovk and
Zhdanov, 2009: rate 1 for the whole score). What is put out is the experts' mean by their weights.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from metrack.engine.ensemble.combiners.adaptive_share import ADAPTIVE_SHARE
from metrack.engine.ensemble.combiners.cbce import TIE
from metrack.engine.ensemble.combiners.protocol import (
    Activation,
    activate,
    probabilities,
    update,
)
from metrack.engine.numerics.kernels import (
    Floats,
    Ints,
    combine,
    copy,
    fill,
    inner,
    kernel,
    routine,
)
from metrack.engine.numerics.records import counts, floats
from metrack.engine.online.nearest import (
    EMPTY,
    Memory,
    Nearest,
    Point,
    embed,
    find_nearest,
    make_room,
    new_memory,
)

METRICS = ("given units", "own units", "tracked")
NEIGHBOURS = (1, 3, 7, 15, 31)  # 2^j - 1
RATIO = 5  # of a window and the next shorter one; of the ring and the reserve
N_ROWS = 256  # of the history
COMBINER, RECORD = ADAPTIVE_SHARE, ADAPTIVE_SHARE.record
SHARE = 0  # statistic of an expert; of the combiner itself: rounds so far
ERRORS, CHANGES = -2, -1  # columns of the history behind those of the experts


class Trust(NamedTuple):
    """What is known of the experts, and what was in the past."""

    statistics: Annotated[Floats, floats("rows", "statistics")]
    # Sums of the experts' weights, of errors and of changes noticed, over as many points as a row
    # stands for; rows are merged two by two when all are full.
    history: Annotated[Floats, floats(N_ROWS, "columns", least=0.0)]


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


class Sight(NamedTuple):
    """How points are compared."""

    units: Floats  # features are multiplied by these
    columns: Floats  # (n_features, rank): what points are embedded by
    images: Floats  # the points of the memory, embedded


class Work(NamedTuple):
    """Working memory for a point."""

    nearest: Nearest
    image: Floats  # the point, embedded
    order: Ints  # of features
    shares: Floats  # experts x neighbours: what each of these has of the vote
    p: Floats
    losses: Floats
    masses: Floats  # of the classes
    held: Ints  # of the classes, in the reserve


class Table(NamedTuple):
    """The experts' numbers."""

    windows: Ints
    neighbours: Ints

    @property
    def shape(self) -> tuple[int, int, int]:
        """Metrics, windows (the last is all that is remembered) and numbers of neighbours."""
        return len(METRICS), len(self.windows) + 1, len(self.neighbours)


class State(NamedTuple):
    """All that a pass over points works on."""

    memory: Memory
    sight: Sight
    table: Table
    trust: Trust


class NeighbourVotes:
    """Nearest neighbours of a stream's points, point by point.

    Parameters
    ----------
    n_features : int
    longest : int
        Points of the longest window.
    """

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
        _read_weights(RECORD, self.trust.statistics, p)
        return p.reshape(self.table.shape)

    def observe(self, points: Floats, codes: Ints, order: Ints) -> Ints:
        """Predict the class of each point, then learn it.

        Parameters
        ----------
        points : array (n_points, n_features)
        codes : array (n_points,)
        order : array (n_classes,)
            Of classes with the same share of the votes, the one of the least number is predicted.

        Returns
        -------
        array (n_points,)
            Codes; EMPTY where no class was known.
        """
        predicted = np.empty(len(points), np.int64)
        work = self._work(len(order))
        _observe(self._state, RECORD, self.n_points, points, codes, order, work, predicted)
        self.n_points += len(points)
        return predicted

    def predict_proba(self, points: Floats, n_classes: int) -> Floats:
        """Each class's share of the votes, (n_points, n_classes)."""
        masses = np.zeros((len(points), n_classes))
        _judge(self._state, RECORD, self.n_points, points, self._work(n_classes), masses)
        masses /= masses.sum(axis=1, keepdims=True)  # rounded
        return masses

    def look(self, units: Floats, columns: Floats) -> None:
        """Compare points in other units; and by another metric, if it matters.

        It does where another one of the latest points is nearest to one of them.

        Parameters
        ----------
        units : array (n_features,)
            What features are multiplied by, to be in their own units.
        columns : array (n_features, rank)
            What points are multiplied by to be embedded.
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
            self.trust.history[(self.n_points - 1) // self._stride, CHANGES] += 1.0

    @property
    def _stride(self) -> int:
        """Points for which a row of the history stands."""
        return max(1, 1 << (-(-self.n_points // N_ROWS) - 1).bit_length())

    def past(self) -> Past:
        """What was along the stream."""
        stride = self._stride
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
    _activate(RECORD, statistics, n_experts)
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


@kernel
def _activate(record: Any, statistics: Floats, n_experts: int) -> None:
    for j in range(n_experts):
        activate(record, statistics[j], Activation(1.0, 1.0, n_experts))


@kernel
def _read_weights(record: Any, statistics: Floats, p: Floats) -> None:
    _weigh(record, statistics, p)


@inner
def _weigh(record: Any, statistics: Floats, p: Floats) -> None:
    """Leave the experts' weights for the next round."""
    probabilities(record, statistics, p.size, statistics[p.size, SHARE] + 1.0, p)


@kernel
def _observe(
    state: State,
    record: Any,
    n_points: int,
    points: Floats,
    codes: Ints,
    order: Ints,
    work: Work,
    predicted: Ints,
) -> None:
    for row in range(codes.size):
        t = n_points + row
        _ask(state, record, t, points[row], work)
        predicted[row] = _most_voted(work, order)
        missed = predicted[row] != codes[row]
        _clear(work)
        _learn_trust(state, record, codes[row], work)
        _note(state.trust.history, t, work.p, missed)
        _remember(state, t, points[row], codes[row], missed, work)


@kernel
def _judge(
    state: State, record: Any, n_points: int, points: Floats, work: Work, masses: Floats
) -> None:
    for row in range(len(points)):
        _ask(state, record, n_points, points[row], work)
        copy(masses[row], work.masses, work.masses.size)
        fill(work.masses, 0.0, work.masses.size)


@routine
def _ask(state: State, record: Any, t: int, point: Floats, work: Work) -> None:
    """Let all experts vote; their weights and the classes' shares of the votes are left in work."""
    sight, windows = state.sight, state.table.windows
    squares, codes = work.nearest
    newest, rank = (t - 1) % windows[-1], work.image.size
    combine(work.image, point, sight.columns, work.order, work.order.size, rank)
    seen = Point(point, sight.units, work.image)
    find_nearest(state.memory, sight.images, newest, seen, windows, work.nearest)
    _weigh(record, state.trust.statistics, work.p)
    expert = 0
    for metric in range(codes.shape[0]):
        for window in range(codes.shape[1]):
            for k in state.table.neighbours:
                shares, voted = work.shares[expert], codes[metric, window]
                _vote(squares[metric, window], voted, k, shares)
                for i in range(k):
                    if shares[i] > 0.0:
                        work.masses[voted[i]] += work.p[expert] * shares[i]
                expert += 1


@inner
def _vote(squares: Floats, codes: Ints, k: int, shares: Floats) -> None:
    """Shares of the k nearest, by 1 / distance; where points are equal to this one, they alone."""
    total = 0.0
    for i in range(k):
        if codes[i] == EMPTY:
            shares[i] = 0.0
        elif squares[0] == 0.0:
            shares[i] = 1.0 if squares[i] == 0.0 else 0.0
        else:
            shares[i] = 1.0 / math.sqrt(squares[i])
        total += shares[i]
    if total > 0.0:
        for i in range(k):
            shares[i] /= total


@routine
def _most_voted(work: Work, order: Ints) -> int:
    """The class with the largest share of the votes; the first one, where several have it."""
    found = EMPTY
    for each in work.nearest.codes.flat:
        code = int(each)
        if code == EMPTY:
            continue
        more = work.masses[code] - (work.masses[found] if found != EMPTY else -1.0)
        if more > 0.0 or (more == 0.0 and order[code] < order[found]):
            found = code
    return found


@inner
def _clear(work: Work) -> None:
    for code in work.nearest.codes.flat:
        if code != EMPTY:
            work.masses[code] = 0.0


@routine
def _learn_trust(state: State, record: Any, code: int, work: Work) -> None:
    """A point on which all lose the same is no round: it says nothing about any of them.

    So a stretch of a single class leaves trust as it was, and who knows the others keeps it.
    """
    expert, codes = 0, work.nearest.codes
    for metric in range(codes.shape[0]):
        for window in range(codes.shape[1]):
            for k in state.table.neighbours:
                work.losses[expert] = _loss(work.shares[expert], codes[metric, window], k, code)
                expert += 1
    least, most = work.losses[0], work.losses[0]
    for j in range(work.p.size):
        least, most = min(least, work.losses[j]), max(most, work.losses[j])
    if most - least > TIE:
        update(record, state.trust.statistics, work.p.size, work.p, work.losses)


@inner
def _loss(shares: Floats, codes: Ints, k: int, code: int) -> float:
    """Half the Brier score of an expert."""
    total = 1.0
    for i in range(k):
        if codes[i] == code:
            total -= 2.0 * shares[i]
        for j in range(k):
            if codes[i] == codes[j]:
                total += shares[i] * shares[j]
    return float(min(max(0.5 * total, 0.0), 1.0))  # rounded


@routine
def _note(history: Floats, t: int, p: Floats, missed: bool) -> None:
    """Add to the row of a point's time; t points came before it."""
    stride = _points_per_row(t + 1)
    if t == stride // 2 * N_ROWS and t > 0:
        _merge(history)
    row = history[t // stride]
    for j in range(p.size):
        row[j] += p[j]
    row[p.size] += missed


@inner
def _points_per_row(n_points: int) -> int:
    """How many points a row of the history stands for: the least power of two that is enough."""
    stride = 1
    while stride * N_ROWS < n_points:
        stride *= 2
    return stride


@inner
def _merge(history: Floats) -> None:
    """Let each row stand for twice as many points."""
    for row in range(N_ROWS):
        for j in range(history.shape[1]):
            both = history[2 * row, j] + history[2 * row + 1, j] if 2 * row < N_ROWS else 0.0
            history[row, j] = both


@routine
def _remember(state: State, t: int, point: Floats, code: int, missed: bool, work: Work) -> None:
    memory, sight, n_ring = state.memory, state.sight, state.table.windows[-1]
    slot = t % n_ring
    place = make_room(memory, n_ring, slot, work.held)
    if place != EMPTY:
        copy(sight.images[place], sight.images[slot], work.image.size)
    copy(memory.points[slot], point, point.size)
    copy(sight.images[slot], work.image, work.image.size)
    memory.codes[slot], memory.arrived[slot] = code, t + 1
    memory.missed[slot] = missed
