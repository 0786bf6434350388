"""A point's way through the votes of nearest neighbours: all experts vote, and are judged.

An expert is a metric, a window and a number k. It predicts the classes of the k nearest points of
its window, each by 1 / distance, and loses half the Brier score, which is in [0, 1] and mixable:
there is no better rate than 2 for Hedge on it, which is the one of ``adaptive_share`` (Vovk and
Zhdanov, 2009: rate 1 for the whole score). What is put out is the experts' mean by their weights.
"""

import math
from typing import Annotated, Any, NamedTuple

from metrack.engine.ensemble.combiners.cbce import TIE
from metrack.engine.ensemble.combiners.protocol import Activation, activate, probabilities, update
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
from metrack.engine.numerics.records import floats
from metrack.engine.online.nearest import EMPTY, Memory, Nearest, Point, find_nearest, make_room

METRICS = ("given units", "own units", "tracked")
N_ROWS = 256  # of the history
SHARE = 0  # statistic of an expert; of the combiner itself: rounds so far


class Trust(NamedTuple):
    """What is known of the experts, and what was in the past."""

    statistics: Annotated[Floats, floats("rows", "statistics")]
    # Sums of the experts' weights, of errors and of changes noticed, over as many points as a row
    # stands for; rows are merged two by two when all are full.
    history: Annotated[Floats, floats(N_ROWS, "columns", least=0.0)]


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


@kernel
def activate_all(record: Any, statistics: Floats, n_experts: int) -> None:
    """Start all experts."""
    for j in range(n_experts):
        activate(record, statistics[j], Activation(1.0, 1.0, n_experts))


@kernel
def read_weights(record: Any, statistics: Floats, p: Floats) -> None:
    """Leave the experts' weights for the next round in p."""
    weigh(record, statistics, p)


@inner
def weigh(record: Any, statistics: Floats, p: Floats) -> None:
    """Leave the experts' weights for the next round."""
    probabilities(record, statistics, p.size, statistics[p.size, SHARE] + 1.0, p)


@kernel
def vote_and_learn(
    state: State,
    record: Any,
    n_points: int,
    points: Floats,
    codes: Ints,
    order: Ints,
    work: Work,
    predicted: Ints,
) -> None:
    """Predict the classes of points, and learn from each after it was predicted."""
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
def vote(
    state: State, record: Any, n_points: int, points: Floats, work: Work, masses: Floats
) -> None:
    """Leave each class's share of the votes on each point in ``masses``; nothing is learned."""
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
    weigh(record, state.trust.statistics, work.p)
    expert = 0
    for metric in range(codes.shape[0]):
        for window in range(codes.shape[1]):
            for k in state.table.neighbours:
                shares, voted = work.shares[expert], codes[metric, window]
                _shares_of(squares[metric, window], voted, k, shares)
                for i in range(k):
                    if shares[i] > 0.0:
                        work.masses[voted[i]] += work.p[expert] * shares[i]
                expert += 1


@inner
def _shares_of(squares: Floats, codes: Ints, k: int, shares: Floats) -> None:
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


def points_per_row(n_points: int) -> int:
    """How many points a row of the history stands for: the least power of two that is enough."""
    stride = 1
    while stride * N_ROWS < n_points:
        stride *= 2
    return stride


_points_per_row = inner(points_per_row)


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
