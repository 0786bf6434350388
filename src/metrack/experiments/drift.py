"""The paper's drift study: what one trial is, as a function of the study's seed and its number.

2,000 points in 25 dimensions, two clusterings in subspaces of their own, and thousands of judged
pairs while the question and the space change. Every method follows the same pairs. Now and then all
points are embedded: k-NN error is measured on the first 500 of them, each left out in turn, and
k-means looks for the clusters.
"""

import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from metrack.checks import Floats, Ints, whole
from metrack.evaluate import kmeans_nmi, leave_one_out_error
from metrack.experiments.methods import METHODS, Choice, Follower, tuned
from metrack.experiments.report import Json
from metrack.streams import DriftingClusters, Segment, paper_schedule

Name = TypeVar("Name", bound=Hashable)

N_NEIGHBORS = 5
N_TESTED = 500
N_EVEN = 12  # evaluations at even distances
FIRST = 50  # pairs from the start and each switch to an evaluation; then twice as many, and so on
USUAL = 6000  # pairs; in shorter streams they come earlier
REFERENCES = ("raw", "true metric")  # no metric at all, and the one that made the data
LEVEL = 0.8  # of the NMI


class Scale(NamedTuple):
    """Length of a schedule, and its drift per pair in units of `paper_schedule`'s."""

    n_pairs: int
    speed: float


# In the long one learners converge between changes, as the paper's do; in the fast one none does.
SCHEDULES = {"long": Scale(24_000, 0.25), "fast": Scale(6000, 1.0)}


def _knn_error(embedded: Floats, labels: Ints, _seed: int) -> float:
    tested = min(N_TESTED, len(embedded))
    return leave_one_out_error(embedded, labels, N_NEIGHBORS, tested)


def _nmi(embedded: Floats, labels: Ints, seed: int) -> float:
    return kmeans_nmi(embedded, labels, random_state=seed)


MEASURES: dict[str, Callable[[Floats, Ints, int], float]] = {"knn_error": _knn_error, "nmi": _nmi}


@dataclass(frozen=True)
class Study:
    """A study's settings: all that its numbers depend on, but for the number of trials.

    Parameters
    ----------
    methods : tuple of str
    seed : int
    schedule : str
        One of `SCHEDULES`.
    n_pairs : int
        Length of a trial's stream; 0 is the schedule's own. The drift per pair stays.
    settings : dict, optional
        Arguments of each method's estimator, for each measure; by default those that were tuned.
    segments : tuple of Segment, optional
        Others than the schedule's.
    n_even : int
        Evaluations at even distances.
    """

    methods: tuple[str, ...] = tuple(METHODS)
    seed: int = 0
    schedule: str = "long"
    n_pairs: int = 0
    settings: Mapping[str, Choice] | None = None
    segments: tuple[Segment, ...] = ()
    n_even: int = N_EVEN

    def __post_init__(self) -> None:
        whole("seed", self.seed, least=0)
        if self.schedule not in SCHEDULES:
            raise ValueError(f"unknown schedule {self.schedule!r}; known: {', '.join(SCHEDULES)}")
        scale = SCHEDULES[self.schedule]
        segments = self.segments or paper_schedule(self.n_pairs or scale.n_pairs, scale.speed)
        filled: dict[str, Any] = {
            "segments": segments,
            "n_pairs": sum(segment.length for segment in segments),
            "settings": tuned(self.schedule) if self.settings is None else self.settings,
        }
        for name, value in filled.items():
            object.__setattr__(self, name, value)

    @property
    def switches(self) -> list[int]:
        """Pairs seen when the question changes."""
        ends = np.cumsum([segment.length for segment in self.segments]).tolist()
        return [
            end
            for end, (old, new) in zip(ends, pairwise(self.segments), strict=False)
            if old.partition != new.partition
        ]

    def choice(self, name: str) -> Choice:
        """Arguments of a method's estimator, for each measure; of an unknown one none."""
        settings = self.settings or {}
        return settings.get(name) or {measure: {} for measure in MEASURES}

    def stream(self, number: int) -> DriftingClusters:
        """The stream of a trial."""
        return DriftingClusters(schedule=self.segments, random_state=trial_seed(self.seed, number))

    def steps(self) -> Ints:
        """Pairs seen at each evaluation: evenly, at segments' ends, and denser after switches."""
        ends = np.cumsum([segment.length for segment in self.segments])
        even = np.arange(1, self.n_even + 1) * self.n_pairs / self.n_even
        first = FIRST * min(1.0, self.n_pairs / USUAL)
        dense = [
            start + first * 2.0 ** np.arange(np.ceil(np.log2(max((stop - start) / first, 1.0))))
            for start, stop in pairwise([0, *self.switches, self.n_pairs])
        ]
        steps = np.unique(np.rint(np.concatenate([ends, even, *dense])).astype(np.int64))
        return steps[steps > 0]

    def describe(self) -> Json:
        """The settings as JSON."""
        return {
            "methods": list(self.methods),
            "seed": self.seed,
            "schedule": self.schedule,
            "n_pairs": self.n_pairs,
            "settings": {name: self.choice(name) for name in self.methods},
        }


def trial_seed(seed: int, number: int) -> int:
    """A seed of its own for each trial of each study."""
    sequence = np.random.SeedSequence(seed, spawn_key=(*b"trial", number))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


class Contestant:
    """A method on a stream, as it was tuned for each measure: one estimator, or one for each.

    Parameters
    ----------
    name : str
        Of a method.
    choice : mapping from a measure to the estimator's arguments
    random_state : int
    """

    def __init__(self, name: str, choice: Choice, random_state: int) -> None:
        self.followers: list[Follower] = []
        self.of: list[int] = []  # the follower of each measure
        chosen = [dict(choice[measure]) for measure in MEASURES]
        for settings in chosen:
            same = chosen.index(settings)
            if same == len(self.of):
                self.followers.append(Follower(name, settings, random_state))
                self.of.append(len(self.followers) - 1)
            else:
                self.of.append(self.of[same])

    def follow(self, pairs: Floats, y: Ints, classes: Ints) -> None:
        """Go on with some pairs."""
        for follower in self.followers:
            follower.follow(pairs, y, classes)

    def measure(self, points: Floats, labels: Ints, seed: int) -> list[float]:
        """Each measure of the points' embedding."""
        embedded = [follower.embed(points) for follower in self.followers]
        return [
            find(embedded[at], labels, seed)
            for at, find in zip(self.of, MEASURES.values(), strict=True)
        ]


def run_trial(study: Study, number: int) -> dict[str, Floats]:
    """One trial: for each reference and method the two measures (2, n_steps), in MEASURES' order.

    A method's numbers depend on neither the other methods nor on what ran before.
    """
    contestants = {name: Contestant(name, study.choice(name), number) for name in study.methods}
    stream, steps = study.stream(number), study.steps()
    return references(stream, steps, number) | track(stream, steps, contestants, number)


def references(stream: DriftingClusters, steps: Ints, number: int) -> dict[str, Floats]:
    """Measures of the raw points and of the true metric: a rotation changes neither of them."""
    found = {name: np.empty((len(MEASURES), len(steps))) for name in REFERENCES}
    known: dict[Hashable, list[list[float]]] = {}
    for i, step in enumerate(steps.tolist()):
        asked = stream.partition(step - 1)
        if asked not in known:
            points, labels = stream.points(step - 1), stream.labels(step - 1)
            true = points @ stream.components(step - 1).T
            known[asked] = [
                [find(X, labels, number) for find in MEASURES.values()] for X in (points, true)
            ]
        for name, values in zip(REFERENCES, known[asked], strict=True):
            found[name][:, i] = values
    return found


def track(
    stream: DriftingClusters, steps: Ints, contestants: Mapping[Name, Contestant], number: int
) -> dict[Name, Floats]:
    """Measures (2, n_steps) of each contestant, all on the same pairs."""
    found = {name: np.empty((len(MEASURES), len(steps))) for name in contestants}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a refit of few iterations need not have converged
        for i, (start, stop) in enumerate(pairwise([0, *steps.tolist()])):
            pairs, y = stream.pairs(start, stop)
            points, labels = stream.points(stop - 1), stream.labels(stop - 1)
            classes = labels[stream.rows(start, stop)[0]]
            for name, contestant in contestants.items():
                contestant.follow(pairs, y, classes)
                found[name][:, i] = contestant.measure(points, labels, number)
    return found


def segment_weights(study: Study) -> list[Floats]:
    """Weight of each evaluation in the mean over each segment, and over the whole stream, last.

    An evaluation stands for the pairs since the one before.
    """
    steps = study.steps()
    gaps = np.diff(steps, prepend=0).astype(np.float64)
    ends = np.cumsum([segment.length for segment in study.segments])
    inside = [
        (steps > end - part.length) & (steps <= end)
        for end, part in zip(ends, study.segments, strict=True)
    ]
    return [np.where(here, gaps, 0.0) / gaps[here].sum() for here in (*inside, steps > 0)]
