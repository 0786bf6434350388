"""What all streams of pairs have in common."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrack.checks import Floats, Ints, number, whole
from metrack.streams.blocks import pieces
from metrack.streams.sampling import PairSampler
from metrack.streams.schedule import Schedule, Segment

RandomState = int | np.random.RandomState | None
BLOCK = 1024  # pairs whose random numbers are drawn together


class PairStream:
    """A stream of judged pairs that knows how it drifts.

    Everything comes from ``random_state`` and the step's number, so that any access in any order
    gives what iterating gives. A subclass says what a pair is made of, in `pairs`.

    Parameters
    ----------
    partitions : mapping from a name to an array (n_points,)
        Labels of the points, for each partition of them.
    schedule : iterable of Segment
    similar : float or None
        Share of similar pairs; None leaves it to chance.
    label_noise : float
        Share of judgements that are turned around.
    random_state : int, RandomState or None

    Attributes
    ----------
    random_state : int
        What everything comes from.
    """

    def __init__(
        self,
        partitions: Mapping[Any, Ints],
        schedule: Iterable[Segment],
        similar: float | None,
        label_noise: float,
        random_state: RandomState,
    ) -> None:
        self.similar = None if similar is None else number("similar", similar, 0.0, 1.0)
        self.label_noise = number("label_noise", label_noise, 0.0, 1.0)
        self.random_state = seed_of(random_state)
        self._schedule = Schedule(schedule, partitions)
        self._samplers = [PairSampler(codes, self.similar) for codes in partitions.values()]

    @property
    def schedule(self) -> tuple[Segment, ...]:
        """The segments, in order."""
        return self._schedule.segments

    @property
    def marks(self) -> list[tuple[int, str]]:
        """Where each segment starts, and its name."""
        names = [segment.name for segment in self.schedule]
        return list(zip(self._schedule.starts.tolist(), names, strict=True))

    @property
    def switches(self) -> list[int]:
        """Where the partition changes; a gradual change is centred there."""
        changed = np.flatnonzero(np.diff(self._schedule.codes)) + 1
        switches: list[int] = self._schedule.starts[changed].tolist()
        return switches

    def __len__(self) -> int:
        return self._schedule.length

    def __iter__(self) -> Iterator[tuple[Any, Any, int]]:
        for start in range(0, len(self), BLOCK):
            pairs, y = self.pairs(start, min(start + BLOCK, len(self)))
            for (x, z), judgement in zip(pairs, y.tolist(), strict=True):
                yield x, z, judgement

    def pairs(self, start: int = 0, stop: int | None = None) -> tuple[NDArray[Any], Ints]:
        """Pairs and judgements of the steps from ``start`` up to, not including, ``stop``."""
        raise NotImplementedError

    def rows(self, start: int = 0, stop: int | None = None) -> tuple[Ints, Ints]:
        """Point numbers of the pairs (n_pairs, 2), and judgements y, +1 alike or -1 not alike."""
        start, stop = self._range(start, stop)
        uniforms = self._uniforms(start, stop)
        asked = self._schedule.asked(np.arange(start, stop), uniforms[:, 3])
        rows = np.empty((stop - start, 2), dtype=np.int64)
        y = np.empty(stop - start, dtype=np.int64)
        for code, sampler in enumerate(self._samplers):
            chosen = asked == code
            rows[chosen] = sampler.draw(uniforms[chosen, :3])
            y[chosen] = sampler.judge(rows[chosen])
        return rows, np.where(uniforms[:, 4] < self.label_noise, -y, y)

    def partition(self, t: int) -> Hashable:
        """Which partition is asked for at step t; within a blend, the likelier one."""
        return self._schedule.partitions[self._code(t)]

    def labels(self, t: int) -> Ints:
        """Class of each point at step t, 0, 1, ...; within a blend, of the likelier partition."""
        return self._samplers[self._code(t)].codes.copy()

    def _code(self, t: int) -> int:
        return int(self._schedule.codes[self._schedule.segment(self._step(t))])

    def _step(self, t: int) -> int:
        if whole("t", t, least=0) >= len(self):
            raise ValueError(f"t is {t}, but the stream has the steps 0 to {len(self) - 1}")
        return int(t)

    def _range(self, start: int, stop: int | None) -> tuple[int, int]:
        first = whole("start", start, least=0)
        last = len(self) if stop is None else whole("stop", stop, least=0)
        if not first <= last <= len(self):
            raise ValueError(
                f"start={start}, stop={stop}: ask for 0 <= start <= stop <= {len(self)}, "
                "the length of the stream"
            )
        return first, last

    def _uniforms(self, start: int, stop: int) -> Floats:
        """Five uniform numbers per step: two points, alike or not, which partition, noise."""
        drawn = [
            generator(self.random_state, "pairs", block).random((BLOCK, 5))[part]
            for block, part in pieces(start, stop, BLOCK)
        ]
        return np.concatenate(drawn) if drawn else np.empty((0, 5))


def seed_of(random_state: RandomState) -> int:
    """A whole number that says it all: the given one, or one that is drawn."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int((random_state or np.random.RandomState()).randint(2**31))
    return whole("random_state", random_state, least=0)


def generator(seed: int, purpose: str, number: int = 0) -> np.random.Generator:
    """Random numbers of their own for each purpose and number, all from one seed."""
    key = (*purpose.encode(), number)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
