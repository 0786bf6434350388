"""A memory of late pairs, and which of them a learner revisits.

One step a pair uses little of what the pair says. Between two pairs, learners therefore take
further steps on earlier pairs of their own interval. Learners with a very short memory would only
learn the same few pairs by heart; those with a very long one are left as they are, for streams that
drift too fast to learn from, and get what was learned by revisiting with the iterate that they are
born with.
"""

from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.kernels import Difference, Floats, Ints, copy, inner
from metrack.engine.records import counts, floats

SHORTEST, LONGEST = 32, 256  # intervals of the learners that revisit


class Memory(NamedTuple):
    """The last pairs, in the units of their time; no slots where none is revisited."""

    # Finite squares: no feature is beyond 1e40, no unit below 1e-100.
    u: Annotated[Floats, floats("slots", "n", least=-1e145, most=1e145)]
    y: Annotated[Floats, floats("slots", least=-1.0, most=1.0)]
    where: Annotated[Ints, counts("n")]  # all features
    written: Annotated[Ints, counts(1)]  # pairs so far
    # State of the generator.
    drawn: Annotated[Ints, counts(1, least=-(1 << 63), most=(1 << 63) - 1)]


def new_memory(n_features: int, replays: int) -> Memory:
    """An empty memory, with slots only where pairs are to be revisited."""
    slots = LONGEST if replays > 0 else 0
    return Memory(
        np.zeros((slots, n_features)),
        np.zeros(slots),
        np.arange(n_features),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
    )


def check(memory: Memory, replays: int, n_pairs: int) -> None:
    """Refuse a memory that so many pairs cannot have led to; its arrays hold what they declare."""
    slots, written = (LONGEST, n_pairs) if replays > 0 else (0, 0)
    if memory.y.size != slots:
        raise ValueError(f"the memory has {memory.y.size} slots, expected {slots}")
    if not np.array_equal(memory.where, np.arange(memory.where.size)):
        raise ValueError("the memory does not name all features in their order")
    if memory.written[0] != written:
        raise ValueError(
            f"the memory counts {memory.written[0]:,} pairs, and the learners {n_pairs:,}"
        )


def widen(memory: Memory, more: int) -> Memory:
    """A memory of so many more features, which have been 0 so far."""
    n_features = memory.where.size + more
    return memory._replace(u=np.pad(memory.u, ((0, 0), (0, more))), where=np.arange(n_features))


@inner
def remember(memory: Memory, u: Difference, y: float) -> None:
    """Put a pair in the place of the oldest."""
    slot = memory.written[0] % memory.y.size
    copy(memory.u[slot], u.full, u.full.size)
    memory.y[slot] = y
    memory.written[0] += 1


@inner
def draw(memory: Memory) -> int:
    """A number that looks random: a linear congruential generator (Knuth's), its upper bits."""
    memory.drawn[0] = memory.drawn[0] * 6364136223846793005 + 1442695040888963407
    return int((memory.drawn[0] >> 33) & 0x3FFFFFFF)


@inner
def slot_of(memory: Memory, drawn: int, length: float) -> int:
    """Where a drawn one of the last pairs is, of as many as the interval has rounds."""
    recent = min(memory.written[0], min(memory.y.size, int(length)))
    return int((memory.written[0] - 1 - drawn % recent) % memory.y.size)


@inner
def remembered(memory: Memory, slot: int) -> Difference:
    """The difference u of a remembered pair."""
    return Difference(memory.u[slot], memory.where, memory.u[slot])
