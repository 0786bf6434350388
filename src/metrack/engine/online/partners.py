"""Which remembered points a new one is compared with.

Near points of another class and far ones of its own tell most; but where classes overlap, the
nearest of another class are there by chance, and comparing with them alone teaches chance. So a
partner is the nearest of a few that are drawn, and there are the more to draw from the more rarely
a point's nearest one is of another class: as many for all partners of a kind together as have about
one among them that would mislead.
"""

from typing import NamedTuple

import numpy as np

from metrack.engine.numerics.kernels import Floats, Ints, inner, kernel, routine, square_distance
from metrack.engine.online.nearest import EMPTY

CANDIDATES = 32  # at most
PER_PAIR = CANDIDATES  # uniform numbers
COMPARED, MISLED = range(2)


class Slots(NamedTuple):
    """The points remembered: of the first slots the latest, of the others a sample of all before.

    What came after them waits in the rows behind: a new point is compared before it has a slot.
    """

    labels: Ints  # EMPTY where there is none
    rows: Ints  # where each slot's point is
    images: Floats  # by row; distances are taken between these
    clock: Ints  # points seen; the kind of pair whose turn it is: 0 similar, 1 dissimilar
    doubt: Floats  # points that were compared, and how often the nearest is of another class
    n_recent: int


class Drawn(NamedTuple):
    """Pairs of rows, and whether they are alike, +1 or -1."""

    pairs: Ints
    y: Floats


@kernel
def draw(slots: Slots, new: Ints, uniforms: Floats, partners: Ints, drawn: Drawn) -> int:
    """Pair new points with those in the slots, each before it takes a slot itself.

    Similar and dissimilar pairs take turns; where there is no partner of the kind whose turn it is,
    a point draws no more. ``new`` are labels; rows of these points come after those of the slots.
    ``uniforms`` are (n_points, n_pairs * PER_PAIR + 1), ``partners`` (n_slots,) for working in.
    ``drawn``, as many as can be, is filled from the start; returns how many there are.
    """
    n, last = 0, uniforms.shape[1] - 1
    for i in range(new.size):
        row = slots.labels.size + i
        _compare(slots, new[i], row)
        n_candidates = _n_candidates(slots, last // PER_PAIR)
        for k in range(last // PER_PAIR):
            numbers = uniforms[i, k * PER_PAIR : (k + 1) * PER_PAIR]
            slot = _partner(slots, new[i], row, numbers[:n_candidates], partners)
            if slot == EMPTY:
                break
            drawn.pairs[n, 0], drawn.pairs[n, 1] = row, slots.rows[slot]
            drawn.y[n] = 1.0 if slots.clock[1] == 0 else -1.0
            slots.clock[1] = 1 - slots.clock[1]
            n += 1
        _remember(slots, new[i], row, uniforms[i, last])
    return n


@routine
def _compare(slots: Slots, label: int, row: int) -> None:
    """Count how often the nearest point is of another class."""
    images, n = slots.images, slots.images.shape[1]
    same = other = np.inf
    for slot in range(slots.labels.size if n > 0 else 0):
        if slots.labels[slot] != EMPTY:
            far = square_distance(images[slots.rows[slot]], images[row], n)
            if slots.labels[slot] == label:
                same = min(same, far)
            else:
                other = min(other, far)
    if same < np.inf and other < np.inf:
        slots.doubt[COMPARED] = min(slots.doubt[COMPARED] + 1.0, slots.labels.size)
        misled = 1.0 if other < same else 0.0
        slots.doubt[MISLED] += (misled - slots.doubt[MISLED]) / slots.doubt[COMPARED]


@routine
def _partner(slots: Slots, label: int, row: int, uniforms: Floats, partners: Ints) -> int:
    """The nearest of some drawn among those with the same label, or among those with another."""
    n, alike, images = 0, slots.clock[1] == 0, slots.images
    for slot in range(slots.labels.size):
        own = slots.labels[slot]
        if own != EMPTY and (own == label) == alike:
            partners[n] = slot
            n += 1
    found, nearest = EMPTY, np.inf
    for k in range(uniforms.size if n > 0 else 0):
        slot = partners[int(uniforms[k] * n)]
        far = square_distance(images[slots.rows[slot]], images[row], images.shape[1])
        if far < nearest:
            found, nearest = slot, far
    return found


@inner
def _n_candidates(slots: Slots, n_pairs: int) -> int:
    """How many to draw a partner from, where half of the pairs are of each kind."""
    if slots.images.shape[1] == 0:
        return 1
    together = 1.0 / max(slots.doubt[MISLED], 1.0 / slots.labels.size)
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
