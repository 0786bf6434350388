"""The nearest points in nested windows: one pass for all of them.

The pass goes from the newest point back and keeps the nearest so far. Where a window ends, they are
the nearest of that window: the longest costs a pass, and those inside it cost nothing.
"""

from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.numerics.kernels import (
    Floats,
    Ints,
    combine,
    copy,
    inner,
    kernel,
    reduction,
    routine,
    square_distance,
)
from metrack.engine.numerics.records import counts, floats

EMPTY = -1  # the code of a slot that holds no point


class Memory(NamedTuple):
    """The last points, in a ring, and behind it a reserve of points that have left the ring."""

    points: Annotated[Floats, floats("slots", "n")]
    codes: Annotated[Ints, counts("slots", least=EMPTY)]  # of the points' classes
    arrived: Annotated[Ints, counts("slots")]  # number of the point in the stream, from 1
    missed: Annotated[Ints, counts("slots", most=1)]  # whether its class was predicted wrongly


class Nearest(NamedTuple):
    """What a pass finds by each metric: a row for each window, and one for all remembered."""

    squares: Floats  # metrics x windows x neighbours: of distances, rising
    codes: Ints  # EMPTY where there are not so many points


class Point(NamedTuple):
    """A point that neighbours are looked for, and how it is compared."""

    given: Floats
    units: Floats  # features in their own units are multiplied by these
    image: Floats  # by the metric that is tracked


def new_memory(n_slots: int, n_features: int) -> Memory:
    """Nothing remembered."""
    zeros = np.zeros(n_slots, np.int64), np.zeros(n_slots, np.int64)
    return Memory(np.zeros((n_slots, n_features)), np.full(n_slots, EMPTY), *zeros)


@kernel
def embed(points: Floats, columns: Floats, order: Ints, images: Floats) -> None:
    """Leave in each row of ``images`` the sum of ``columns`` (n_features, rank) times a point.

    A point's image does not depend on what is embedded together with it, as with BLAS it would.
    ``order`` are the numbers of all columns.
    """
    for row in range(len(points)):
        combine(images[row], points[row], columns, order, order.size, columns.shape[1])


@routine
def find_nearest(
    memory: Memory, images: Floats, newest: int, point: Point, windows: Ints, found: Nearest
) -> None:
    """Look for the nearest points in each window; of points equally far the newer come first.

    The first ``windows[-1]`` slots, the longest of rising lengths, are the ring, in which the
    newest point is in the slot ``newest``. ``images`` are all points, embedded.
    """
    codes, window, n_ring = memory.codes, 0, windows[-1]
    _forget(found)
    for back in range(n_ring):
        slot = newest - back if newest >= back else newest - back + n_ring
        if codes[slot] == EMPTY:
            break
        _consider(memory.points[slot], images[slot], codes[slot], point, found)
        if back + 1 == windows[window]:
            _note(found, window)
            window += 1
    while window < windows.size:  # longer than what has been seen
        _note(found, window)
        window += 1
    for slot in range(n_ring, codes.size):
        if codes[slot] != EMPTY:
            _consider(memory.points[slot], images[slot], codes[slot], point, found)


@inner
def _forget(found: Nearest) -> None:
    last = found.codes.shape[1] - 1
    for metric in range(found.codes.shape[0]):
        for i in range(found.codes.shape[2]):
            found.squares[metric, last, i], found.codes[metric, last, i] = np.inf, EMPTY


@inner
def _note(found: Nearest, window: int) -> None:
    """The nearest so far are those of a window."""
    last = found.codes.shape[1] - 1
    for metric in range(found.codes.shape[0]):
        for i in range(found.codes.shape[2]):
            found.squares[metric, window, i] = found.squares[metric, last, i]
            found.codes[metric, window, i] = found.codes[metric, last, i]


@inner
def _consider(given: Floats, image: Floats, code: int, point: Point, found: Nearest) -> None:
    last = found.codes.shape[1] - 1
    squares, codes = found.squares, found.codes
    # To give up a long distance on the way takes longer than to sum it up.
    as_given, in_units = _squares(given, point.given, point.units, given.size)
    _take(as_given, code, squares[0, last], codes[0, last])
    _take(in_units, code, squares[1, last], codes[1, last])
    _take(square_distance(image, point.image, image.size), code, squares[2, last], codes[2, last])


@inner
def _take(far: float, code: int, squares: Floats, codes: Ints) -> None:
    """Let a point take its place among the nearest, if it is one of them."""
    place = squares.size - 1
    if far >= squares[place]:
        return
    while place > 0 and squares[place - 1] > far:
        squares[place], codes[place] = squares[place - 1], codes[place - 1]
        place -= 1
    squares[place], codes[place] = far, code


@reduction
def _squares(a: Floats, b: Floats, units: Floats, n: int) -> tuple[float, float]:
    """Squared distances in the units given, and in other ones."""
    given = other = 0.0
    for i in range(n):
        gap = a[i] - b[i]
        given += gap * gap
        other += (gap * units[i]) ** 2
    return given, other


@inner
def make_room(memory: Memory, n_ring: int, slot: int, held: Ints) -> int:
    """Move the point of a slot of the ring to the reserve; return its place there.

    It takes a free place, or else that of the oldest point of the class that has the most there: so
    a class is not forgotten because others have come more often. ``held``, a number for each
    class, is 0 before and after.
    """
    if memory.codes[slot] == EMPTY:
        return EMPTY
    place = _place(memory, n_ring, memory.codes[slot], held)
    copy(memory.points[place], memory.points[slot], memory.points.shape[1])
    memory.codes[place], memory.arrived[place] = memory.codes[slot], memory.arrived[slot]
    memory.missed[place] = memory.missed[slot]
    return place


@inner
def _place(memory: Memory, n_ring: int, code: int, held: Ints) -> int:
    codes, arrived = memory.codes, memory.arrived
    for place in range(n_ring, codes.size):
        if codes[place] == EMPTY:
            return place
    held[code] += 1
    for place in range(n_ring, codes.size):
        held[codes[place]] += 1
    found = n_ring
    for place in range(n_ring + 1, codes.size):
        more = held[codes[place]] - held[codes[found]]
        if more > 0 or (more == 0 and arrived[place] < arrived[found]):
            found = place
    held[code] = 0
    for place in range(n_ring, codes.size):
        held[codes[place]] = 0
    return found
