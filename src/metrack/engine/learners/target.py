"""Target learners: ITML's squared loss on fixed targets (Davis, Kulis, Jain, Sra, Dhillon, 2007).

A similar pair is to have a squared distance of at most UPPER, another of at least LOWER, in units
of the mean |u|^2. Thresholds do not move, so all of a correction goes into the metric. Steps are in
the LogDet geometry: M^-1 moves by b uu', so that the pair's q becomes q / (1 + b q).

A gradient step e of (q - g)^2 multiplies what q lacks of its target by about 1 - 2 e g^2: beyond
e = 1 / g^2 each step goes too far by more than was lacking, and rounding errors grow with it. So
no step goes further than to its target.

Learners differ by rate, by the strength of the pull to plain distance, and by how many of the last
pairs they replay, which is their memory. On a basis, plain distance times a number of their own is
what they have beyond their directions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from metrack.engine.learners.always_on import AlwaysOnBank, sum_of_squares
from metrack.engine.learners.bank import Predictions, Row
from metrack.engine.learners.calibration import MEMORY, calibrate, scales
from metrack.engine.learners.replay import (
    GENERATOR,
    Material,
    Replayed,
    draw,
    replayed,
    replayed_rest,
    replayed_y,
)
from metrack.engine.numerics.divergences import BURG
from metrack.engine.numerics.kernels import Floats, Ints, Record, inner, kernel, routine
from metrack.engine.numerics.pairs import UNIT, Difference, difference, rest
from metrack.engine.numerics.steps import towards_target
from metrack.engine.representations.dense_factor import (
    DENSE_FACTOR,
    DenseFactor,
    Scratch,
    change_basis,
    squared_distance,
    update,
)
from metrack.engine.representations.protocol import Geometry, Step

UPPER, LOWER = 0.25, 1.75
# Pairs replayed after each: a step's cost grows with the square of directions, so that many numbers
# may be gone through, if that makes no fewer than the least, nor more than these.
REPLAYED, LEAST_REPLAYS, REPLAYS, ON_BASIS = 6 * 64**2, 2, 16, 8
PULL = 0.25  # over n_features: a pair says something about one direction, the pull is in all
FEW, OUTSIDE = 32, 0.25  # directions; weight of plain distance beyond so few


class Pace(NamedTuple):
    """What tells learners apart, an entry each."""

    rate: Floats
    rho: Floats
    replays: Ints  # recent pairs replayed after each
    window: Ints  # of how many
    outside: Floats  # weight of plain distance beyond a basis


class Work(NamedTuple):
    """Working memory of a pass over a chunk."""

    scratch: Scratch
    full: Floats
    replayed: Replayed
    drawn: Ints


class TargetBank(AlwaysOnBank):
    """Target learners on dense factors, with paces of their own."""

    STATE = ("learners", "generator", "calibration")
    name = "target"
    pace: Pace

    def __init__(self, n_features: int, pace: Pace) -> None:
        super().__init__(n_features, len(pace.rate))
        self.pace = pace
        self.learners: DenseFactor = DENSE_FACTOR.new_learners(
            self.n_learners, n_features, self._geometry, True
        )
        self.generator: Record = GENERATOR()

    @classmethod
    def of_rows(cls, rows: Sequence[Row], n_features: int) -> Self:
        """A row's memory is how many of the last pairs are replayed from; 0: nothing is."""
        on_basis = rows[0].width > 0
        most = ON_BASIS if on_basis else REPLAYS
        replays = min(max(LEAST_REPLAYS, round(REPLAYED / n_features**2)), most)
        outside = OUTSIDE if on_basis and n_features <= FEW else 1.0
        paces = [
            (
                row.rate,
                row.pull * PULL / n_features,
                replays if row.memory else 0,
                max(row.memory, 1),
                outside,
            )
            for row in rows
        ]
        return cls(n_features, Pace(*map(np.array, zip(*paces, strict=True))))

    @property
    def _geometry(self) -> Geometry:
        return Geometry(BURG, self.n_features)

    @property
    def lengths(self) -> Floats:
        """Memory length of each learner: what it replays, else the steps that leave 5 % of one."""
        forgotten = np.maximum(-np.log(0.05) / self.pace.rate, 1.0)
        return np.where(self.pace.replays > 0, self.pace.window, forgotten)

    @property
    def recent(self) -> int:
        """How many of the last pairs must be kept, to be replayed."""
        return int(np.where(self.pace.replays > 0, self.pace.window, 0).max(initial=0))

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict and learn a chunk, one pair after another."""
        n, most = self.n_features, int(self.pace.replays.max(initial=0))
        work = Work(
            DENSE_FACTOR.make_scratch(self.learners, n),
            np.zeros(n),
            Replayed(np.empty(n), np.arange(n)),
            np.empty(most, np.int64),
        )
        learn(self.learners, self.generator, self.pace, material, predictions, work)
        calibrate(self.calibration, predictions, material.chunk.y, MEMORY)

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of the learners' metrics: on their directions, and beyond them."""
        weights = p * scales(self.calibration)
        found = sum_of_squares(weights, self.learners.factor)
        return found, float(weights @ self.pace.outside)

    def change_basis(self, old: "TargetBank", turn: Floats) -> None:
        """Go on from what a bank has learned, with other directions; see `Bank`."""
        width = self.n_features
        self.learners = change_basis(old.learners, turn[:, :width], self.pace.outside)
        self.generator, self.calibration = old.generator, old.calibration

    def continue_from(self, old: Any) -> None:
        """Go on from what a bank has learned, with perhaps fewer features."""
        self.learners = DENSE_FACTOR.widen(old.learners, self.learners, self._geometry)
        self.generator, self.calibration = old.generator, old.calibration


@kernel
def learn(
    learners: DenseFactor,
    generator: Record,
    pace: Pace,
    material: Material,
    predictions: Predictions,
    work: Work,
) -> None:
    """Predict and learn all pairs of a chunk."""
    chunk = material.chunk
    geometry = Geometry(BURG, work.full.size)
    for row in range(chunk.y.size):
        u = difference(chunk, row, work.full)
        beyond = rest(chunk.whole, row, u.norm2)
        for j in range(learners.mu.size):
            q = squared_distance(learners, work.scratch, j, geometry, u)
            pair = Pair(u, chunk.y[row], q, pace.outside[j] * beyond)
            predictions.q[row, j] = q + pair.beyond
            _take_step(learners, pace, work, j, pair)
        if chunk.y[row] == 0.0:
            continue  # a pair that teaches nothing
        for k in range(work.drawn.size):
            work.drawn[k] = draw(generator)
        for j in range(learners.mu.size):
            _replay(learners, pace, material, row, work, j)


@inner
def asked(rate: float, y: float, squared: float) -> float:
    """A gradient step of (q - g)^2, at most to g, and cut where q would more than double."""
    q = squared / UNIT
    g = UPPER if y > 0.0 else LOWER
    if q <= 0.0 or ((q <= g) if y > 0.0 else (q >= g)):
        return 0.0
    step, to_target = towards_target(rate, q, g), q / g - 1.0  # b q, whatever the units
    return (min(step, to_target) if y > 0.0 else max(step, to_target)) / squared


class Pair(NamedTuple):
    """A pair at hand, and the learner's squared distance: in its features, and beyond them."""

    u: Difference
    y: float
    q: float
    beyond: float


@inner
def _take_step(learners: DenseFactor, pace: Pace, work: Work, j: int, pair: Pair) -> None:
    rate = pace.rate[j] * abs(pair.y)
    b = asked(rate, pair.y, pair.q + pair.beyond)
    step = Step(pair.q, b, rate * pace.rho[j])
    update(learners, work.scratch, j, Geometry(BURG, work.full.size), pair.u, step)


@routine
def _replay(
    learners: DenseFactor, pace: Pace, material: Material, row: int, work: Work, j: int
) -> None:
    """Further steps of learner j, on some of the pairs in its window."""
    geometry = Geometry(BURG, work.full.size)
    within = min(material.chunk.seen + row + 1, pace.window[j])
    for k in range(pace.replays[j]):
        again = row - work.drawn[k] % within
        u, y = replayed(material, again, work.replayed), replayed_y(material, again)
        q = squared_distance(learners, work.scratch, j, geometry, u)
        beyond = pace.outside[j] * replayed_rest(material, again, u.norm2)
        _take_step(learners, pace, work, j, Pair(u, y, q, beyond))
