"""Which pairs of the past a learner replays.

One step a pair uses little of what the pair says. Between two pairs, learners therefore take
further steps on recent pairs: a learner whose interval has a length of L on some of the last L
pairs, whenever its interval began. Learners with very short intervals would only learn the same few
pairs by heart; those with very long ones are left as they are, for streams that drift too fast to
learn from, and get what replays have taught with the iterate that they start from.

Pairs before a chunk are in the memory, those of the chunk in the chunk itself.
"""

from typing import Any, NamedTuple

import numpy as np

from metrack.engine.learners.memory import Past, ReplayBuffer, new_buffer, number_of, store
from metrack.engine.numerics.kernels import Floats, Ints, Record, copy, dot, inner, kernel
from metrack.engine.numerics.pairs import Chunk, Difference, Pairs, dense_row, rest
from metrack.engine.numerics.records import Structure, counts

DOUBLE_UP_TO = 64  # features

# Which pairs are drawn.
GENERATOR = Structure(state=counts(1, least=-(1 << 63), most=(1 << 63) - 1))


class Material(NamedTuple):
    """What a bank learns from."""

    chunk: Chunk
    recent: ReplayBuffer  # the pairs before the chunk
    past: Past


class Minibatch(NamedTuple):
    """Pairs to learn from together."""

    u: Any  # a row each, in double or single precision
    y: Floats
    rest: Floats  # squared lengths beyond these features
    asked: Floats  # what each asks for; working memory, as what follows
    power: Floats


class Replayed(NamedTuple):
    """Working memory for a replayed pair."""

    u: Floats  # (n,)
    where: Ints  # all features


def last_pairs(material: Material, stop: int, most: int) -> ReplayBuffer:
    """The last pairs before a row of the chunk as dense rows, the oldest first."""
    chunk, recent = material.chunk, material.recent
    first = max(chunk.seen + stop - most, 0)
    slots = np.arange(first, chunk.seen) % len(recent.y)
    rows = Pairs(chunk.u, chunk.where, chunk.starts, chunk.y)
    own = rows.part(max(first - chunk.seen, 0), stop)
    dense, none = new_buffer(recent.u.shape[1], len(own.y)), np.empty(0)
    store(dense, Chunk(*own, none, none, 0))
    return ReplayBuffer(
        np.concatenate([recent.u[slots], dense.u]), np.concatenate([recent.y[slots], dense.y]), none
    )


@inner
def draw(generator: Record) -> int:
    """A number that looks random: a linear congruential generator (Knuth's), its upper bits."""
    own = generator[0]
    own.state = own.state * 6364136223846793005 + 1442695040888963407
    return int((own.state >> 33) & 0x3FFFFFFF)


@inner
def replayed_y(material: Material, row: int) -> float:
    """The label of a pair of the chunk or, where the row is negative, from before it."""
    chunk, buffer = material.chunk, material.recent
    return float(chunk.y[row] if row >= 0 else buffer.y[(chunk.seen + row) % buffer.y.size])


@inner
def replayed_rest(material: Material, row: int, norm2: float) -> float:
    """What the squared length of such a pair is beyond the features at hand."""
    chunk, buffer = material.chunk, material.recent
    if row >= 0:
        return rest(chunk.whole, row, norm2)
    return rest(buffer.whole, (chunk.seen + row) % buffer.y.size, norm2)


@inner
def replayed(material: Material, row: int, work: Replayed) -> Difference:
    """The difference of a pair of the chunk or, where the row is negative, from before it.

    It is dense: so it makes no difference where it comes from. Of longer ones, the first features
    are taken.
    """
    chunk, buffer = material.chunk, material.recent
    u, n = work.u, work.u.size
    if row < 0:
        u = buffer.u[(chunk.seen + row) % buffer.y.size][:n]
    else:
        dense_row(chunk, row, u)
    return Difference(u, work.where, u, dot(u, u, n))


def new_minibatch(size: int, width: int) -> Minibatch:
    """Room for so many pairs; of many features in single precision, in half the time."""
    kind = np.float64 if width <= DOUBLE_UP_TO else np.float32
    y, rest, asked = np.zeros((3, size))
    return Minibatch(np.zeros((size, width), kind), y, rest, asked, np.zeros((2, size)))


@kernel
def latest(material: Material, stop: int, found: Minibatch) -> None:
    """The last pairs before a row of the chunk, in their order."""
    size = found.y.size
    for i in range(size):
        _take_up(material, stop - size + i, found, i)


@kernel
def draw_recent(material: Material, stop: int, window: int, number: int, found: Minibatch) -> None:
    """Some of the last pairs before a row of the chunk, by a number that no other draw has."""
    within = min(material.chunk.seen + stop, window)
    drawn = number_of(number)
    for i in range(found.y.size):
        drawn = number_of(drawn + i)
        _take_up(material, stop - 1 - drawn % within, found, i)


@kernel
def draw_past(past: Past, number: int, found: Minibatch) -> None:
    """Some of all pairs, half of them alike; none where there are none."""
    width, drawn = found.u.shape[1], number_of(number)
    for i in range(found.y.size):
        found.y[i] = 0.0
        if past.seen[0] + past.seen[1] == 0:
            continue
        kind = i % 2 if past.seen[i % 2] > 0 else 1 - i % 2
        # Every other number is left out, so that saved states go on with the draws they had ahead.
        drawn = number_of(number_of(drawn + i) + i)
        place = drawn % min(past.seen[kind], past.u.shape[1])
        copy(found.u[i], past.u[kind, place], width)
        found.y[i] = past.y[kind, place]
        norm2 = dot(found.u[i], found.u[i], width)
        found.rest[i] = max(past.whole[kind, place] - norm2, 0.0)


@inner
def _take_up(material: Material, row: int, found: Minibatch, i: int) -> None:
    """A pair of the chunk or, where the row is negative, from before it."""
    chunk, buffer = material.chunk, material.recent
    u, n = found.u[i], found.u.shape[1]
    if row < 0:
        copy(u, buffer.u[(chunk.seen + row) % buffer.y.size], n)
    else:
        dense_row(chunk, row, u)
    found.y[i] = replayed_y(material, row)
    found.rest[i] = replayed_rest(material, row, dot(u, u, n))
