"""The last pairs, and which of them a learner replays.

One step a pair uses little of what the pair says. Between two pairs, learners therefore take
further steps on recent pairs: a learner whose interval has a length of L on some of the last L
pairs, whenever its interval began. Learners with very short intervals would only learn the same few
pairs by heart; those with very long ones are left as they are, for streams that drift too fast to
learn from, and get what replays have taught with the iterate that they start from.

Pairs before a chunk are in the buffer, those of the chunk in the chunk itself: banks only read, so
that any number of them may share a buffer, and the chunk is added after all have learned it.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrack.engine.numerics.kernels import Floats, Ints, Record, copy, dot, fill, inner, kernel
from metrack.engine.numerics.pairs import HEAVIEST, Chunk, Difference, Pairs, part, rest
from metrack.engine.numerics.records import Structure, counts, floats

SAME = 1e-12  # directions whose cosine is that near to 1 are of the same pair
DOUBLE_UP_TO = 64  # features


class ReplayBuffer(NamedTuple):
    """The last pairs in the units of their time: pair t (counted from 0) is in slot t mod slots."""

    # No slots where nothing is replayed. Squares are finite: no feature is beyond 1e40, no unit
    # below 1e-100.
    u: Annotated[Floats, floats("slots", "width", least=-1e145, most=1e145)]
    y: Annotated[Floats, floats("slots", least=-HEAVIEST, most=HEAVIEST)]


# Which pairs are drawn.
GENERATOR = Structure(state=counts(1, least=-(1 << 63), most=(1 << 63) - 1))


class Past(NamedTuple):
    """Some of all the pairs so far, drawn evenly, those alike and the others apart."""

    u: Annotated[Floats, floats(2, "kept", "width", least=-1e145, most=1e145)]
    y: Annotated[Floats, floats(2, "kept", least=-HEAVIEST, most=HEAVIEST)]
    whole: Annotated[Floats, floats(2, "kept", least=0.0, most=1e300)]  # |u|^2 of the whole pairs
    seen: Annotated[Ints, counts(2)]  # pairs of each kind that these were drawn from


class Material(NamedTuple):
    """What a bank learns from."""

    chunk: Chunk
    recent: ReplayBuffer  # the pairs before the chunk
    whole: Floats  # their |u|^2, as in the chunk
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


def moved(kept: Floats, slots: int, n_pairs: int) -> Floats:
    """What was kept of each of the last of so many pairs, in another number of slots."""
    found = np.zeros((slots, *kept.shape[1:]))
    if min(slots, len(kept)) > 0:
        last = np.arange(max(n_pairs - min(slots, len(kept)), 0), n_pairs)
        found[last % slots] = kept[last % len(kept)]
    return found


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


class Places(NamedTuple):
    """Where pairs are kept: among the last, by their numbers, and among those of all the past."""

    recent: Ints
    past: NDArray[np.bool_]


def places_of(buffer: ReplayBuffer, past: Past, u: Floats, n_pairs: int) -> Places:
    """Where pairs with these differences are kept, of so many."""
    slots, size = np.flatnonzero(same(buffer.u, u)), max(len(buffer.y), 1)
    among_past = same(past.u.reshape(-1, past.u.shape[2]), u)
    # A slot has the latest pair whose number it is, modulo their number.
    numbers = n_pairs - 1 - (n_pairs - 1 - slots) % size
    return Places(numbers, among_past.reshape(past.y.shape))


def forget(buffer: ReplayBuffer, past: Past, places: Places, n_pairs: int) -> int:
    """Let the pairs in these places ask for nothing; returns how many did."""
    size = len(buffer.y)
    slots = places.recent[places.recent >= n_pairs - size] % max(size, 1)
    found = slots[buffer.y[slots] != 0.0]
    buffer.y[found] = 0.0
    if places.past.shape != past.y.shape:
        return len(found)
    kept = int(np.sum(places.past & (past.y != 0.0)))
    past.y[places.past] = 0.0
    return max(len(found), kept)


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


def new_past(kept: int, width: int) -> Past:
    """Nothing yet; room for so many pairs of each kind."""
    return Past(
        np.zeros((2, kept, width)),
        np.zeros((2, kept)),
        np.zeros((2, kept)),
        np.zeros(2, np.int64),
    )


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


def check_past(past: Past, most: int, width: int) -> None:
    """Refuse another number of places or features."""
    kept = past.u.shape[1]
    if kept > most or kept < min(int(past.seen.max()), most) or past.u.shape[2] != width:
        raise ValueError(
            f"{past.seen.max():,} pairs of the past are {past.u.shape}, expected at most "
            f"{(2, most, width)}"
        )


def widen_past(past: Past, n_features: int) -> Past:
    """The same with more features, which have been 0 so far."""
    more = n_features - past.u.shape[2]
    return past._replace(u=np.pad(past.u, ((0, 0), (0, 0), (0, more))))


def from_buffer(buffer: ReplayBuffer, whole: Floats, slots: Ints) -> Minibatch:
    """The pairs in these slots."""
    u = buffer.u[slots]
    norm2 = np.einsum("ij,ij->i", u, u)
    rest = np.maximum(whole[slots] - norm2, 0.0) if whole.size > 0 else np.zeros(len(slots))
    return Minibatch(u, buffer.y[slots], rest, np.empty(0), np.empty((0, 0)))


def new_minibatch(size: int, width: int) -> Minibatch:
    """Room for so many pairs; of many features in single precision, in half the time."""
    return Minibatch(
        np.zeros((size, width), np.float64 if width <= DOUBLE_UP_TO else np.float32),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros((2, size)),
    )


@kernel
def remember(past: Past, block: Minibatch) -> None:
    """Let each pair of a block take a place with the chance that keeps all pairs' chances even.

    It is Vitter's algorithm R, for each kind of pairs.
    """
    kept, width = past.u.shape[1], past.u.shape[2]
    for row in range(block.y.size):
        if block.y[row] == 0.0:
            continue
        kind = 0 if block.y[row] > 0.0 else 1
        place = past.seen[kind]
        past.seen[kind] += 1
        if place >= kept:
            place = number_of(2 * place + kind) % (place + 1)
        if place < kept:
            copy(past.u[kind, place], block.u[row], width)
            past.y[kind, place] = block.y[row]
            past.whole[kind, place] = dot(block.u[row], block.u[row], width) + block.rest[row]


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
def draw_past(past: Past, balanced: bool, number: int, found: Minibatch) -> None:
    """Some of all pairs: as they came, or half of them alike; none where there are none."""
    n_alike, n_others = past.seen[0], past.seen[1]
    width, drawn = found.u.shape[1], number_of(number)
    for i in range(found.y.size):
        found.y[i] = 0.0
        if n_alike + n_others == 0:
            continue
        drawn = number_of(drawn + i)
        kind = i % 2 if balanced else int(drawn % (n_alike + n_others) >= n_alike)
        if past.seen[kind] == 0:
            kind = 1 - kind
        drawn = number_of(drawn + i)
        place = drawn % min(past.seen[kind], past.u.shape[1])
        copy(found.u[i], past.u[kind, place], width)
        found.y[i] = past.y[kind, place]
        norm2 = dot(found.u[i], found.u[i], width)
        found.rest[i] = max(past.whole[kind, place] - norm2, 0.0)


@inner
def _take_up(material: Material, row: int, found: Minibatch, i: int) -> None:
    """A pair of the chunk or, where the row is negative, from before it."""
    chunk, buffer = material.chunk, material.recent
    u, n, width = found.u[i], found.u.shape[1], chunk.where.size
    if row < 0:
        copy(u, buffer.u[(chunk.seen + row) % buffer.y.size], n)
    elif chunk.starts.size == 0:
        copy(u, chunk.u[row * width : row * width + n], n)
    else:
        fill(u, 0.0, n)
        for k in range(chunk.starts[row], chunk.starts[row + 1]):
            u[chunk.where[k]] = chunk.u[k]
    found.y[i] = replayed_y(material, row)
    found.rest[i] = replayed_rest(material, row, dot(u, u, n))


@inner
def number_of(counter: int) -> int:
    """A number that looks random, of a counter: splitmix's finaliser, without its lowest bits."""
    mixed = (counter + 1) * -7046029254386353131
    mixed = (mixed ^ ((mixed >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    mixed = (mixed ^ ((mixed >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return int(((mixed ^ ((mixed >> 31) & 0x1FFFFFFFF)) >> 20) & 0x7FFFFFFFFFF)
