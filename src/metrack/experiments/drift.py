"""The paper's drift study: what one trial is, as a function of the study's seed and its number.

2,000 points in 25 dimensions, two clusterings in subspaces of their own, and 6,000 judged pairs
while the question and the space change. Every method follows the same pairs. Now and then all
points are embedded: k-NN error is measured on the first 500 of them, each left out in turn, and
k-means looks for the clusters.
"""

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from metrack.checks import Floats, Ints, whole
from metrack.evaluate import kmeans_nmi, leave_one_out_error
from metrack.experiments.methods import METHODS, Follower, Settings, tuned
from metrack.experiments.report import Json
from metrack.streams import DriftingClusters, Segment, paper_schedule

N_NEIGHBORS = 5
N_TESTED = 500
N_EVEN = 24  # evaluations at even distances
AFTER = (50, 100, 150, 200)  # and so many pairs after the start and each switch, of 6,000
REFERENCES = ("raw", "true metric")  # no metric at all, and the one that made the data
MEASURES = ("knn_error", "nmi")


@dataclass(frozen=True)
class Study:
    """A study's settings: all that its numbers depend on, but for the number of trials.

    Parameters
    ----------
    methods : tuple of str
    seed : int
    n_pairs : int
        Length of a trial's stream.
    settings : dict
        Arguments of each method's estimator; by default those that were tuned.
    segments : tuple of Segment, optional
        Another schedule than the paper's; ``n_pairs`` is its length then.
    """

    methods: tuple[str, ...] = tuple(METHODS)
    seed: int = 0
    n_pairs: int = 6000
    settings: Mapping[str, Settings] = field(default_factory=tuned)
    segments: tuple[Segment, ...] | None = None

    def __post_init__(self) -> None:
        whole("seed", self.seed, least=0)
        if self.segments is None:
            paper_schedule(self.n_pairs)  # refuses a length that is too short
        elif sum(segment.length for segment in self.segments) != self.n_pairs:
            raise ValueError(f"n_pairs is {self.n_pairs}, which is not the length of the segments")

    @property
    def schedule(self) -> tuple[Segment, ...]:
        """The segments of a trial's stream."""
        return self.segments or paper_schedule(self.n_pairs)

    @property
    def switches(self) -> list[int]:
        """Pairs seen when the question changes."""
        ends = np.cumsum([segment.length for segment in self.schedule]).tolist()
        return [
            end
            for end, (old, new) in zip(ends, pairwise(self.schedule), strict=False)
            if old.partition != new.partition
        ]

    def stream(self, number: int) -> DriftingClusters:
        """The stream of a trial."""
        return DriftingClusters(schedule=self.schedule, random_state=trial_seed(self.seed, number))

    def steps(self) -> Ints:
        """Pairs seen at each evaluation: evenly, at segments' ends, and denser after switches."""
        ends = np.cumsum([segment.length for segment in self.schedule])
        even = np.arange(1, N_EVEN + 1) * self.n_pairs / N_EVEN
        starts = np.array([0, *self.switches])
        dense = starts[:, None] + np.array(AFTER) * self.n_pairs / 6000
        steps = np.rint(np.concatenate([ends, even, dense.ravel()])).astype(np.int64)
        steps = np.unique(steps)
        return steps[(steps > 0) & (steps <= self.n_pairs)]

    def describe(self) -> Json:
        """The settings as JSON."""
        return {
            "methods": list(self.methods),
            "seed": self.seed,
            "n_pairs": self.n_pairs,
            "settings": {name: dict(self.settings.get(name, {})) for name in self.methods},
        }


def trial_seed(seed: int, number: int) -> int:
    """A seed of its own for each trial of each study."""
    sequence = np.random.SeedSequence(seed, spawn_key=(*b"trial", number))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def run_trial(study: Study, number: int) -> dict[str, Floats]:
    """One trial: for each method and reference the two measures (2, n_steps), in MEASURES' order.

    A method's numbers depend on neither the other methods nor on what ran before.
    """
    stream, steps = study.stream(number), study.steps()
    followers = {
        name: Follower(name, study.settings.get(name, {}), random_state=number)
        for name in study.methods
    }
    found = {name: np.empty((2, len(steps))) for name in (*REFERENCES, *followers)}
    known: dict[Hashable, list[Floats]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a refit of few iterations need not have converged
        for i, (start, stop) in enumerate(zip([0, *steps[:-1]], steps, strict=True)):
            pairs, y = stream.pairs(start, stop)
            points, labels = stream.points(stop - 1), stream.labels(stop - 1)
            classes = labels[stream.rows(start, stop)[0]]
            asked = stream.partition(stop - 1)
            if asked not in known:  # a rotation changes neither of them
                true = points @ stream.components(stop - 1).T
                known[asked] = [measure(X, labels, number) for X in (points, true)]
            for name, values in zip(REFERENCES, known[asked], strict=True):
                found[name][:, i] = values
            for name, follower in followers.items():
                follower.follow(pairs, y, classes)
                found[name][:, i] = measure(follower.embed(points), labels, number)
    return found


def measure(embedded: Floats, labels: Ints, seed: int) -> Floats:
    """k-NN error and k-means NMI of an embedding."""
    tested = min(N_TESTED, len(embedded))
    return np.array(
        [
            leave_one_out_error(embedded, labels, N_NEIGHBORS, tested),
            kmeans_nmi(embedded, labels, random_state=seed),
        ]
    )


def segment_weights(study: Study) -> list[Floats]:
    """Weight of each evaluation in the mean over each segment, and over the whole stream, last.

    An evaluation stands for the pairs since the one before.
    """
    steps = study.steps()
    gaps = np.diff(steps, prepend=0).astype(np.float64)
    ends = np.cumsum([segment.length for segment in study.schedule])
    inside = [
        (steps > end - part.length) & (steps <= end)
        for end, part in zip(ends, study.schedule, strict=True)
    ]
    return [np.where(here, gaps, 0.0) / gaps[here].sum() for here in (*inside, steps > 0)]
