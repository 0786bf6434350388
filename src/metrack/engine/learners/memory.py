"""The pairs that learners may go through again: the last ones, and some of all the past.

The last pairs are kept in a ring, one after another. Of all the past, pairs of each kind are drawn
evenly, into room that grows by doubling up to a bound. Banks only read: any number of them may
share a memory, and a chunk is added after all have learned it.
"""

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrack.engine.numerics.kernels import Floats, Ints, copy, dot, inner, kernel
from metrack.engine.numerics.pairs import HEAVIEST, Chunk, dense_row
from metrack.engine.numerics.records import counts, floats


class ReplayBuffer(NamedTuple):
    """The last pairs in the units of their time: pair t (counted from 0) is in slot t mod slots."""

    # No slots where nothing is replayed. Squares are finite: no feature is beyond 1e40, no unit
    # below 1e-100.
    u: Annotated[Floats, floats("slots", "width", least=-1e145, most=1e145)]
    y: Annotated[Floats, floats("slots", least=-HEAVIEST, most=HEAVIEST)]
    # |u|^2 of the whole pairs; empty where these features are all.
    whole: Annotated[Floats, floats("longer", least=0.0, most=1e300)]


class Past(NamedTuple):
    """Some of all the pairs so far, drawn evenly, those alike and the others apart."""

    u: Annotated[Floats, floats(2, "kept", "width", least=-1e145, most=1e145)]
    y: Annotated[Floats, floats(2, "kept", least=-HEAVIEST, most=HEAVIEST)]
    whole: Annotated[Floats, floats(2, "kept", least=0.0, most=1e300)]  # |u|^2 of the whole pairs
    seen: Annotated[Ints, counts(2)]  # pairs of each kind that these were drawn from


def new_buffer(n_features: int, slots: int, longer: bool = False) -> ReplayBuffer:
    """An empty buffer for so many pairs, which may be longer than what is kept of them."""
    whole = np.zeros(slots if longer else 0)
    return ReplayBuffer(np.zeros((slots, n_features)), np.zeros(slots), whole)


def new_past(kept: int, width: int) -> Past:
    """Nothing yet; room for so many pairs of each kind."""
    return Past(
        np.zeros((2, kept, width)), np.zeros((2, kept)), np.zeros((2, kept)), np.zeros(2, np.int64)
    )


def moved(old: ReplayBuffer, new: ReplayBuffer, n_pairs: int) -> ReplayBuffer:
    """What was kept of the last of so many pairs, in an empty buffer of perhaps more features."""
    slots, known = len(new.y), len(old.y)
    if min(slots, known) == 0:
        return new
    last = np.arange(max(n_pairs - min(slots, known), 0), n_pairs)
    here, there = last % slots, last % known
    new.u[here, : old.u.shape[1]] = old.u[there]
    new.y[here] = old.y[there]
    if new.whole.size > 0:
        u = old.u[there]
        new.whole[here] = old.whole[there] if old.whole.size else np.einsum("ij,ij->i", u, u)
    return new


class Places(NamedTuple):
    """Where pairs are kept: among the last, by their numbers, and among those of all the past."""

    recent: Ints
    past: NDArray[np.bool_]


class Memory:
    """The pairs that may be replayed: the last ones, and some of all the past.

    By features, or directions of a basis: ``width``. ``last`` of the last pairs are kept, and
    ``kept`` of each kind of all the past; pairs may be ``longer`` than what is kept of them.
    """

    STATE = ("recent", "past")

    def __init__(self, width: int, last: int, kept: int, longer: bool) -> None:
        self.last, self.kept, self.longer = last, kept, longer
        self.recent = new_buffer(width, last, longer)
        self.past = new_past(0, width)

    def store(self, chunk: Chunk) -> None:
        """Put a chunk's pairs in the place of the oldest of the last ones."""
        if self.recent.y.size > 0:
            store(self.recent, chunk)

    def keep(self, begin: int, end: int) -> None:
        """Keep some of the last pairs, those from ``begin`` on, of all the past."""
        if self.kept > 0:
            slots = np.arange(begin, end) % len(self.recent.y)
            self.past = with_room(self.past, len(slots), self.kept)
            remember(self.past, self.recent, slots)

    def turn(self, turn: Floats) -> None:
        """Go on with the columns of ``turn`` as directions, by coordinates on those so far."""
        self.recent = self.recent._replace(u=self.recent.u @ turn)
        self.past = self.past._replace(u=self.past.u @ turn[: self.past.u.shape[2]])

    def places(self, recent: NDArray[np.bool_], past: NDArray[np.bool_], n_pairs: int) -> Places:
        """Those that are marked here, of so many pairs, as places in any memory of these pairs."""
        slots, size = np.flatnonzero(recent), max(len(self.recent.y), 1)
        # A slot has the latest pair whose number it is, modulo their number.
        return Places(n_pairs - 1 - (n_pairs - 1 - slots) % size, past)

    def forget(self, places: Places, n_pairs: int) -> int:
        """Let the pairs in these places ask for nothing; returns how many did."""
        y, past = self.recent.y, self.past
        slots = places.recent[places.recent >= n_pairs - len(y)] % max(len(y), 1)
        found = slots[y[slots] != 0.0]
        y[found] = 0.0
        if places.past.shape != past.y.shape:
            return len(found)
        kept = int(np.sum(places.past & (past.y != 0.0)))
        past.y[places.past] = 0.0
        return max(len(found), kept)

    def continue_from(self, old: "Memory", n_pairs: int) -> None:
        """Go on from a memory of perhaps fewer features, which have been 0 so far."""
        self.recent = moved(old.recent, self.recent, n_pairs)
        if self.kept and old.kept:
            more = self.recent.u.shape[1] - old.past.u.shape[2]
            self.past = old.past._replace(u=np.pad(old.past.u, ((0, 0), (0, 0), (0, more))))

    def check(self, width: int) -> None:
        """Refuse another number of places, features or directions."""
        past, most = self.past, self.kept
        kept = past.u.shape[1]
        if kept > most or kept < min(int(past.seen.max()), most) or past.u.shape[2] != width:
            raise ValueError(
                f"{past.seen.max():,} pairs of the past are {past.u.shape}, expected at most "
                f"{(2, most, width)}"
            )
        found = [array.shape for array in self.recent]
        expected = [(self.last, width), (self.last,), (self.last if self.longer else 0,)]
        if found != expected:
            raise ValueError(f"the replay buffer is {found}, expected {expected}")


@kernel
def store(buffer: ReplayBuffer, chunk: Chunk) -> None:
    """Put a chunk's pairs in the place of the oldest."""
    slots = buffer.y.size
    for row in range(max(0, chunk.y.size - slots), chunk.y.size):
        at = (chunk.seen + row) % slots
        buffer.y[at] = chunk.y[row]
        if buffer.whole.size > 0:
            buffer.whole[at] = chunk.whole[row]
        dense_row(chunk, row, buffer.u[at])


def with_room(past: Past, more: int, most: int) -> Past:
    """Pairs of the past with room for so many more of each kind, as long as there are no more."""
    kept, width = past.u.shape[1:]
    wanted = min(most, 1 << (int(past.seen.max()) + more - 1).bit_length())
    if wanted <= kept:
        return past
    wider = new_past(wanted, width)
    for new, known in zip(wider[:3], past[:3], strict=True):
        new[:, :kept] = known
    return wider._replace(seen=past.seen)


@kernel
def remember(past: Past, recent: ReplayBuffer, slots: Ints) -> None:
    """Let each of some pairs take a place with the chance that keeps all pairs' chances even.

    It is Vitter's algorithm R, for each kind of pairs.
    """
    kept, width = past.u.shape[1], past.u.shape[2]
    for at in slots:
        u, y = recent.u[at], recent.y[at]
        if y == 0.0:
            continue
        kind = 0 if y > 0.0 else 1
        place = past.seen[kind]
        past.seen[kind] += 1
        if place >= kept:
            place = number_of(2 * place + kind) % (place + 1)
        if place < kept:
            norm2 = dot(u, u, width)
            copy(past.u[kind, place], u, width)
            past.y[kind, place] = y
            past.whole[kind, place] = max(recent.whole[at], norm2) if recent.whole.size else norm2


@inner
def number_of(counter: int) -> int:
    """A number that looks random, of a counter: splitmix's finaliser, without its lowest bits."""
    mixed = (counter + 1) * -7046029254386353131
    mixed = (mixed ^ ((mixed >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    mixed = (mixed ^ ((mixed >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return int(((mixed ^ ((mixed >> 31) & 0x1FFFFFFFF)) >> 20) & 0x7FFFFFFFFFF)
