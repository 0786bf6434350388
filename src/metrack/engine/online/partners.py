"""Which remembered points a new one is compared with.

Where classes drift, what was long ago misleads; where they do not, many points tell more than the
latest few. So a partner comes from a window of the latest points: the ring of these, half of it,
half of that, or all that is remembered. How often a new point's nearest one in a window is of
another class tells what the window is worth, and Hedge, at its rate for so many points, weighs the
windows by it. A window without points of both kinds misleads, too: where a class stays for a while,
the shortest window would be right whatever has drifted.

Near points of another class and far ones of its own tell most; but where classes overlap, the
nearest of another class are there by chance, and comparing with them alone teaches chance. So a
partner is the nearest of a few that are drawn, and there are the more to draw from the more rarely
a point's nearest one is of another class: as many for all partners of a kind together as have about
one among them that would mislead.
"""

import math
from typing import NamedTuple

import numpy as np

from metrack.engine.numerics.kernels import Floats, Ints, inner, kernel, routine, square_distance
from metrack.engine.online.nearest import EMPTY

CANDIDATES = 32  # at most
PER_PAIR = CANDIDATES  # uniform numbers
PER_POINT = 2  # more of them
COMPARED, MISLED = range(2)


class Slots(NamedTuple):
    """The points remembered: of the first slots the latest, of the others a sample of all before.

    What came after them waits in the rows behind: a new point is compared before it has a slot.
    """

    labels: Ints  # EMPTY where there is none
    rows: Ints  # where each slot's point is
    images: Floats  # by row; distances are taken between these
    clock: Ints  # points seen; the kind of pair whose turn it is: 0 similar, 1 dissimilar
    doubt: Floats  # points that were compared; for each window how often its nearest one misleads
    windows: Ints  # lengths, rising; the last one is that of all slots
    n_recent: int


class Work(NamedTuple):
    """What is found anew for each point."""

    order: Ints  # slots that hold points, the latest first, and behind them the sample
    partners: Ints
    misled: Floats  # for each window 1 where its nearest point misleads
    weights: Floats  # of windows


class Drawn(NamedTuple):
    """Pairs of rows, and whether they are alike, +1 or -1."""

    pairs: Ints
    y: Floats


def windows_of(n_recent: int, n_slots: int) -> Ints:
    """Lengths: the ring of recent points, halves of it, and all slots."""
    halves = [n_recent >> i for i in reversed(range(n_recent.bit_length()))]
    return np.array(halves if n_recent == n_slots else [*halves, n_slots])


def new_doubt(n_windows: int) -> Floats:
    """As if one of two points had been misled."""
    return np.concatenate([[2.0], np.full(n_windows, 0.5)])


def new_work(n_slots: int, n_windows: int) -> Work:
    """Room."""
    slots = np.empty(n_slots, np.int64), np.empty(n_slots, np.int64)
    return Work(*slots, np.empty(n_windows), np.empty(n_windows))


@kernel
def draw(slots: Slots, new: Ints, uniforms: Floats, work: Work, drawn: Drawn) -> int:
    """Pair new points with those in the slots, each before it takes a slot itself.

    Similar and dissimilar pairs take turns; where there is no partner of the kind whose turn it is,
    a point draws no more. Two pairs after one another share a window, and the windows of a point
    are spread over all, each as often as it weighs.

    Parameters
    ----------
    slots : Slots
    new : array (n_points,)
        Labels of the new points; their rows come after those of the slots.
    uniforms : array (n_points, n_pairs * PER_PAIR + PER_POINT)
    work : Work
    drawn : Drawn
        As many as can be; filled from the start.

    Returns
    -------
    int
        The number of pairs.
    """
    n, n_pairs = 0, uniforms.shape[1] // PER_PAIR
    for i in range(new.size):
        row = slots.labels.size + i
        n_filled = _sort(slots, work.order)
        _compare(slots, new[i], row, work, n_filled)
        _weigh(slots.doubt, work.weights)
        n_candidates = _n_candidates(slots, n_pairs)
        for k in range(n_pairs):
            place = (uniforms[i, -2] + (k // 2) * 2.0 / n_pairs) % 1.0
            window = _window(work.weights, place)
            numbers = uniforms[i, k * PER_PAIR : (k + 1) * PER_PAIR]
            slot = _partner(slots, new[i], row, window, numbers[:n_candidates], work, n_filled)
            if slot == EMPTY:
                break
            drawn.pairs[n, 0], drawn.pairs[n, 1] = row, slots.rows[slot]
            drawn.y[n] = 1.0 if slots.clock[1] == 0 else -1.0
            slots.clock[1] = 1 - slots.clock[1]
            n += 1
        _remember(slots, new[i], row, uniforms[i, -1])
    return n


@routine
def _sort(slots: Slots, order: Ints) -> int:
    """Leave the slots that hold points in ``order``, the latest first; return their number."""
    n = int(min(slots.clock[0], slots.n_recent))
    for back in range(n):
        order[back] = (slots.clock[0] - 1 - back) % slots.n_recent
    for slot in range(slots.n_recent, slots.labels.size):
        if slots.labels[slot] != EMPTY:
            order[n] = slot
            n += 1
    return n


@routine
def _compare(slots: Slots, label: int, row: int, work: Work, n_filled: int) -> None:
    """Count in which windows the nearest point is of another class, or all are of one."""
    images, n, i = slots.images, slots.images.shape[1], 0
    same = other = np.inf
    for window in range(slots.windows.size if n > 0 else 0):
        while i < min(slots.windows[window], n_filled):
            slot = work.order[i]
            far = square_distance(images[slots.rows[slot]], images[row], n)
            if slots.labels[slot] == label:
                same = min(same, far)
            else:
                other = min(other, far)
            i += 1
        work.misled[window] = 0.0 if same < other < np.inf else 1.0
    if same < np.inf and other < np.inf:
        doubt = slots.doubt
        doubt[COMPARED] = min(doubt[COMPARED] + 1.0, slots.labels.size)
        for window in range(slots.windows.size):
            gap = work.misled[window] - doubt[MISLED + window]
            doubt[MISLED + window] += gap / doubt[COMPARED]


@inner
def _weigh(doubt: Floats, weights: Floats) -> None:
    """Weigh windows by Hedge: exp(-rate x losses), the rate sqrt(8 ln(windows) / points)."""
    rate = math.sqrt(8.0 * math.log(weights.size) * doubt[COMPARED])
    least, total = 1.0, 0.0
    for window in range(weights.size):
        least = min(least, doubt[MISLED + window])
    for window in range(weights.size):
        weights[window] = math.exp(-rate * (doubt[MISLED + window] - least))
        total += weights[window]
    for window in range(weights.size):
        weights[window] /= total


@inner
def _window(weights: Floats, place: float) -> int:
    """The window at a place in [0, 1), where each has as much room as it weighs."""
    window = 0
    while window < weights.size - 1 and place >= weights[window]:
        place -= weights[window]
        window += 1
    return window


@routine
def _partner(
    slots: Slots, label: int, row: int, window: int, uniforms: Floats, work: Work, n_filled: int
) -> int:
    """The nearest of some drawn from those in a window that have the same label, or another one.

    Where the window has none, they are drawn from the shortest longer one that has.
    """
    images, n, alike = slots.images, 0, slots.clock[1] == 0
    for i in range(n_filled):
        if i == slots.windows[window]:
            if n > 0:
                break
            window += 1
        slot = work.order[i]
        if (slots.labels[slot] == label) == alike:
            work.partners[n] = slot
            n += 1
    found, nearest = EMPTY, np.inf
    for k in range(uniforms.size if n > 0 else 0):
        slot = work.partners[int(uniforms[k] * n)]
        far = square_distance(images[slots.rows[slot]], images[row], images.shape[1])
        if far < nearest:
            found, nearest = slot, far
    return found


@inner
def _n_candidates(slots: Slots, n_pairs: int) -> int:
    """How many to draw a partner from, where half of the pairs are of each kind."""
    if slots.images.shape[1] == 0:
        return 1
    together = 1.0 / max(slots.doubt[-1], 1.0 / slots.labels.size)
    return int(min(max(2.0 * together / n_pairs, 1.0), CANDIDATES))


@inner
def _remember(slots: Slots, label: int, row: int, uniform: float) -> None:
    """Give a point the slot of the oldest recent one, which the reservoir then may take."""
    labels, rows, n_recent = slots.labels, slots.rows, slots.n_recent
    older = slots.clock[0] - n_recent  # points that have left the recent slots before
    if n_recent > 0:
        slot = slots.clock[0] % n_recent
        old_label, old_row = labels[slot], rows[slot]
        labels[slot], rows[slot] = label, row
        label, row = old_label, old_row
    slots.clock[0] += 1
    n_sampled = labels.size - n_recent
    if older >= 0 and n_sampled > 0:
        place = older if older < n_sampled else int(uniform * (older + 1))
        if place < n_sampled:
            labels[n_recent + place], rows[n_recent + place] = label, row
