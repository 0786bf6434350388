"""What a stream asks, when, and how fast the world turns meanwhile."""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from metrack.checks import Floats, Ints, number, whole

# Root-mean-square angle, in radians, by which one step turns a point.
SLOW, MODERATE, FAST = 0.01, 0.03, 0.06


@dataclass(frozen=True)
class Segment:
    """A stretch of a stream in which one partition of the points decides what is alike.

    Parameters
    ----------
    name : str
        What plots and tables call it.
    partition : hashable
        Which partition decides: a name of `DriftingClusters`, a label column of `LabelledStream`.
    length : int
        Number of pairs.
    drift : float
        Size of the random rotation at each step: the root-mean-square angle, in radians, by which
        it turns a point.
    blend : int
        Length of a gradual change into this segment: in a window of so many steps centred on its
        start, each pair is judged by the old or the new partition, the new one with a probability
        that rises evenly from 0 to 1. With 0 the change is abrupt.

    Examples
    --------
    >>> from metrack.streams import Segment
    >>> Segment("B fast", "B", length=1000, drift=0.06)
    Segment(name='B fast', partition='B', length=1000, drift=0.06, blend=0)
    """

    name: str
    partition: Hashable
    length: int
    drift: float = 0.0
    blend: int = 0

    def __post_init__(self) -> None:
        whole(f"length of segment {self.name!r}", self.length)
        number(f"drift of segment {self.name!r}", self.drift, 0.0, math.pi)
        whole(f"blend of segment {self.name!r}", self.blend, least=0)


class Schedule:
    """Segments one after another, and what holds at each step.

    Parameters
    ----------
    segments : iterable of Segment
    partitions : iterable
        The partitions a segment may name.
    """

    def __init__(self, segments: Iterable[Segment], partitions: Iterable[Hashable]) -> None:
        self.segments = _segments(segments)
        self.partitions = list(partitions)
        for segment in self.segments:
            if segment.partition not in self.partitions:
                raise ValueError(
                    f"segment {segment.name!r} names partition {segment.partition!r}; "
                    f"there are {', '.join(map(repr, self.partitions))}"
                )
        _check_blends(self.segments)
        ends = np.cumsum([segment.length for segment in self.segments])
        self.length = int(ends[-1])
        self.starts: Ints = np.concatenate([[0], ends[:-1]])
        self.codes: Ints = np.array([self.partitions.index(s.partition) for s in self.segments])

    def segment(self, t: int | Ints) -> Ints:
        """Number of the segment that step t lies in."""
        return np.searchsorted(self.starts, t, side="right") - 1

    def drift(self, t: Ints) -> Floats:
        """Size of the rotation that leads to each step; nothing leads to step 0."""
        sizes = np.array([segment.drift for segment in self.segments])
        drift: Floats = np.where(t == 0, 0.0, sizes[self.segment(t)])
        return drift

    def asked(self, t: Ints, uniforms: Floats) -> Ints:
        """Which partition judges the pair of each step: the segment's, or within a blend a draw."""
        codes: Ints = self.codes[self.segment(t)]
        for i, segment in enumerate(self.segments):
            if segment.blend:
                share_of_new = (t + 0.5 - self.starts[i]) / segment.blend + 0.5
                within = (share_of_new > 0) & (share_of_new < 1)
                drawn = np.where(uniforms < share_of_new, self.codes[i], self.codes[i - 1])
                codes = np.where(within, drawn, codes)
        return codes


def paper_schedule(n_pairs: int = 6000, speed: float = 1.0) -> tuple[Segment, ...]:
    """The drift study of the COMID-SADL paper, stretched to a length.

    Partition A, static; then B with moderate, fast and again moderate drift; then A with slow
    drift. The paper gives neither the lengths nor the rates. Here the two stretches of A take a
    quarter of the stream each, and a step turns points by 0.01 (slow), 0.03 (moderate) or 0.06
    (fast) radians.

    Parameters
    ----------
    n_pairs : int
        Length of the whole; the rates do not change with it.
    speed : float
        Factor by which all three rates are larger.

    Examples
    --------
    >>> from metrack.streams import paper_schedule
    >>> [(segment.name, segment.length) for segment in paper_schedule(1200)]
    [('A static', 300), ('B moderate', 200), ('B fast', 200), ('B moderate', 200), ('A slow', 300)]
    >>> [segment.drift for segment in paper_schedule(24_000, speed=0.25)]
    [0.0, 0.0075, 0.015, 0.0075, 0.0025]
    """
    plan = [
        ("A static", 0.0, 3),
        ("B moderate", MODERATE, 2),
        ("B fast", FAST, 2),
        ("B moderate", MODERATE, 2),
        ("A slow", SLOW, 3),
    ]
    whole("n_pairs", n_pairs, least=len(plan))
    number("speed", speed, 0.0)
    ends = np.cumsum([0, *(share for _, _, share in plan)]) * n_pairs / 12
    ends = np.floor(ends + 0.5).astype(int)
    return tuple(
        Segment(name, name[0], int(stop - start), speed * drift)
        for (name, drift, _), (start, stop) in zip(plan, pairwise(ends), strict=True)
    )


def abrupt(*partitions: Hashable, length: int, drift: float = 0.0) -> tuple[Segment, ...]:
    """One partition after another, changing from one pair to the next.

    Parameters
    ----------
    *partitions : hashable
    length : int
        Pairs of each segment.
    drift : float
        Size of the rotation at each step, throughout.

    Examples
    --------
    >>> from metrack.streams import abrupt
    >>> [(segment.partition, segment.length) for segment in abrupt("A", "B", length=500)]
    [('A', 500), ('B', 500)]
    """
    return gradual(*partitions, length=length, blend=0, drift=drift)


def gradual(
    *partitions: Hashable, length: int, blend: int, drift: float = 0.0
) -> tuple[Segment, ...]:
    """One partition after another, each fading into the next over ``blend`` pairs.

    Parameters
    ----------
    *partitions : hashable
    length : int
        Pairs of each segment.
    blend : int
        Pairs of each change; see `Segment`.
    drift : float
        Size of the rotation at each step, throughout.

    Examples
    --------
    >>> from metrack.streams import gradual
    >>> gradual("A", "B", length=500, blend=200)[1]
    Segment(name='B', partition='B', length=500, drift=0.0, blend=200)
    """
    return tuple(
        Segment(str(partition), partition, length, drift, blend if i else 0)
        for i, partition in enumerate(partitions)
    )


def recurring(
    *partitions: Hashable, length: int, cycles: int = 2, blend: int = 0, drift: float = 0.0
) -> tuple[Segment, ...]:
    """Partitions that come back: the whole sequence, ``cycles`` times.

    Parameters
    ----------
    *partitions : hashable
    length : int
        Pairs of each segment.
    cycles : int
        How often the sequence runs.
    blend : int
        Pairs of each change; 0 is abrupt.
    drift : float
        Size of the rotation at each step, throughout.

    Examples
    --------
    >>> from metrack.streams import recurring
    >>> [segment.name for segment in recurring("A", "B", length=500, cycles=2)]
    ['A', 'B', 'A', 'B']
    """
    sequence = partitions * whole("cycles", cycles)
    return gradual(*sequence, length=length, blend=blend, drift=drift)


def _segments(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    found = tuple(segments)
    if not found:
        raise ValueError("the schedule is empty; give at least one Segment")
    for i, segment in enumerate(found):
        if not isinstance(segment, Segment):
            raise ValueError(f"schedule[{i}] is {segment!r}; a schedule is a sequence of Segment")
    return found


def _check_blends(segments: tuple[Segment, ...]) -> None:
    if segments[0].blend:
        raise ValueError(
            f"segment {segments[0].name!r} is the first, so there is nothing to blend from; "
            "leave out its blend"
        )
    for old, new in pairwise(segments):
        if new.blend and new.partition == old.partition:
            raise ValueError(
                f"segment {new.name!r} blends partition {new.partition!r} into itself; "
                "leave out its blend"
            )
    for segment, after in zip(segments, [*(s.blend for s in segments[1:]), 0], strict=True):
        taken = (segment.blend + after) / 2
        if taken > segment.length:
            raise ValueError(
                f"segment {segment.name!r} has {segment.length} pairs, but the blends at its two "
                f"ends take {taken:g} of them; shorten the blends"
            )
