"""The last pairs, and which of them a learner replays.

One step a pair uses little of what the pair says. Between two pairs, learners therefore take
further steps on recent pairs: a learner whose interval has a length of L on some of the last L
pairs, whenever its interval began. Learners with very short intervals would only learn the same few
pairs by heart; those with very long ones are left as they are, for streams that drift too fast to
learn from, and get what replays have taught with the iterate that they start from.

Pairs before a chunk are in the buffer, those of the chunk in the chunk itself: banks only read, so
that any number of them may share a buffer, and the chunk is added after all have learned it.
"""

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrack.engine.numerics.kernels import Floats, Ints, Record, copy, dot, fill, inner, kernel
from metrack.engine.numerics.pairs import HEAVIEST, Chunk, Difference, Pairs, part, rest
from metrack.engine.numerics.records import Structure, counts, floats

SAME = 1e-12  # directions whose cosine is that near to 1 are of the same pair
SHORTEST, LONGEST = 32, 256  # intervals of the learners that replay


class ReplayBuffer(NamedTuple):
    """The last pairs in the units of their time: pair t (counted from 0) is in slot t mod slots."""

    # No slots where nothing is replayed. Squares are finite: no feature is beyond 1e40, no unit
    # below 1e-100.
    u: Annotated[Floats, floats("slots", "width", least=-1e145, most=1e145)]
    y: Annotated[Floats, floats("slots", least=-HEAVIEST, most=HEAVIEST)]


# Which pairs are drawn.
GENERATOR = Structure(state=counts(1, least=-(1 << 63), most=(1 << 63) - 1))


class Material(NamedTuple):
    """What a bank learns from."""

    chunk: Chunk
    recent: ReplayBuffer  # the pairs before the chunk
    whole: Floats  # their |u|^2, as in the chunk


class Replayed(NamedTuple):
    """Working memory for a replayed pair."""

    u: Floats  # (n,)
    where: Ints  # all features


def new_buffer(n_features: int, slots: int) -> ReplayBuffer:
    """An empty buffer for so many pairs; none where nothing is replayed."""
    return ReplayBuffer(np.zeros((slots, n_features)), np.zeros(slots))


def check(buffer: ReplayBuffer, slots: int, width: int) -> None:
    """Refuse another number of slots or features."""
    if buffer.u.shape != (slots, width):
        found = "{} slots of {}".format(*buffer.u.shape)
        raise ValueError(f"the replay buffer has {found} features, expected {slots} of {width}")


def widen(buffer: ReplayBuffer, n_features: int) -> ReplayBuffer:
    """A buffer of more features, which have been 0 so far."""
    more = n_features - buffer.u.shape[1]
    return buffer._replace(u=np.pad(buffer.u, ((0, 0), (0, more))))


def same(kept: Floats, given: Floats) -> NDArray[np.bool_]:
    """Which of these differences are among those given, or their opposites.

    They are known by their directions: the units were those of their time.
    """
    cosines = np.abs(_directions(kept) @ _directions(given).T)
    found: NDArray[np.bool_] = np.any(cosines > 1.0 - SAME, axis=1)
    return found


def _directions(u: Floats) -> Floats:
    """Rows of length 1; those of length 0 stay."""
    lengths = np.linalg.norm(u, axis=1, keepdims=True)
    found: Floats = np.divide(u, lengths, where=lengths > 0.0, out=np.zeros_like(u))
    return found


def forget(buffer: ReplayBuffer, slots: Ints) -> int:
    """Let the pairs in these slots ask for nothing; returns how many did."""
    asked = slots[buffer.y[slots] != 0.0]
    buffer.y[asked] = 0.0
    return len(asked)


@kernel
def store(buffer: ReplayBuffer, chunk: Chunk) -> None:
    """Put a chunk's pairs in the place of the oldest."""
    slots, n = buffer.u.shape
    for row in range(max(0, chunk.y.size - slots), chunk.y.size):
        at = (chunk.seen + row) % slots
        buffer.y[at] = chunk.y[row]
        if chunk.starts.size == 0:
            copy(buffer.u[at], chunk.u[row * n : (row + 1) * n], n)
        else:
            fill(buffer.u[at], 0.0, n)
            for i in range(chunk.starts[row], chunk.starts[row + 1]):
                buffer.u[at, chunk.where[i]] = chunk.u[i]


def last_pairs(material: Material, stop: int, most: int) -> ReplayBuffer:
    """The last pairs before a row of the chunk as dense rows, the oldest first."""
    chunk, recent = material.chunk, material.recent
    first = max(chunk.seen + stop - most, 0)
    slots = np.arange(first, chunk.seen) % len(recent.y)
    own = part(Pairs(chunk.u, chunk.where, chunk.starts, chunk.y), max(first - chunk.seen, 0), stop)
    dense, none = new_buffer(recent.u.shape[1], len(own.y)), np.empty(0)
    store(dense, Chunk(*own, none, none, 0))
    return ReplayBuffer(
        np.concatenate([recent.u[slots], dense.u]), np.concatenate([recent.y[slots], dense.y])
    )


@inner
def draw(generator: Record) -> int:
    """A number that looks random: a linear congruential generator (Knuth's), its upper bits."""
    own = generator[0]
    own.state = own.state * 6364136223846793005 + 1442695040888963407
    return int((own.state >> 33) & 0x3FFFFFFF)


@inner
def ago(drawn: int, t: int, length: float) -> int:
    """How long before pair t (counted from 1) the drawn one was, of the last ``length``."""
    return int(drawn % min(t, min(LONGEST, int(length))))


@inner
def replayed_y(material: Material, row: int) -> float:
    """The label of a pair of the chunk or, where the row is negative, from before it."""
    chunk, buffer = material.chunk, material.recent
    return float(chunk.y[row] if row >= 0 else buffer.y[(chunk.seen + row) % buffer.y.size])


@inner
def replayed_rest(material: Material, row: int, norm2: float) -> float:
    """What the squared length of such a pair is beyond the features at hand."""
    chunk, slots = material.chunk, material.recent.y.size
    if row >= 0:
        return rest(chunk.whole, row, norm2)
    return rest(material.whole, (chunk.seen + row) % slots, norm2)


@inner
def replayed(material: Material, row: int, work: Replayed) -> Difference:
    """The difference of a pair of the chunk or, where the row is negative, from before it.

    It is dense: so it makes no difference where it comes from. Of longer ones, the first features
    are taken.
    """
    chunk, buffer = material.chunk, material.recent
    u, n, width = work.u, work.u.size, chunk.where.size
    if row < 0:
        u = buffer.u[(chunk.seen + row) % buffer.y.size][:n]
    elif chunk.starts.size == 0:
        u = chunk.u[row * width : row * width + n]
    else:
        fill(u, 0.0, n)
        for i in range(chunk.starts[row], chunk.starts[row + 1]):
            u[chunk.where[i]] = chunk.u[i]
    return Difference(u, work.where, u, dot(u, u, n))
