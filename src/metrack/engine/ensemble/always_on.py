"""A bank of learners that are always on: steps in the LogDet geometry, and replays.

What a pair asks of a learner is its kind's to say (`asked`, a small file each: `margin`, `target`);
here is what all kinds share. Learners differ by rate, by the strength of the pull to plain
distance, and by how many of the last pairs they replay, which is their memory.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.ensemble.bank import Predictions
from metrack.engine.ensemble.calibration import MEMORY, calibrate, new_calibration, scales
from metrack.engine.ensemble.kinds import Asked, Question, asked, kind_of
from metrack.engine.ensemble.replay import (
    GENERATOR,
    Material,
    Replayed,
    draw,
    replayed,
    replayed_rest,
    replayed_y,
)
from metrack.engine.numerics.divergences import BURG
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, Ints, Record, inner, kernel, routine
from metrack.engine.numerics.pairs import Difference, difference, rest, sign
from metrack.engine.numerics.records import TINY, counts, floats
from metrack.engine.representations.dense_factor import (
    DENSE_FACTOR,
    DenseFactor,
    Scratch,
    change_basis,
    squared_distance,
    update,
)
from metrack.engine.representations.protocol import Geometry, Step

MOST_REPLAYS, LONGEST_WINDOW = 1 << 10, 1 << 16


class Pace(NamedTuple):
    """What tells learners apart, an entry each."""

    rate: Annotated[Floats, floats("J", least=TINY)]
    rho: Annotated[Floats, floats("J", least=0.0)]
    replays: Annotated[Ints, counts("J", most=MOST_REPLAYS)]  # recent pairs replayed after each
    window: Annotated[Ints, counts("J", least=1, most=LONGEST_WINDOW)]  # of how many
    outside: Annotated[Floats, floats("J", least=0.0)]  # weight of plain distance beyond a basis


class State(NamedTuple):
    """All that learning changes."""

    learners: DenseFactor
    generator: Record


class Work(NamedTuple):
    """Working memory of a pass over a chunk."""

    scratch: Scratch
    full: Floats
    replayed: Replayed
    drawn: Ints


class AlwaysOnBank:
    """Learners of one kind, on dense factors, with paces of their own.

    Parameters
    ----------
    n_features : int
    kind : NamedTuple
        What a pair asks for; see `kinds`.
    pace : Pace
    """

    first_interval = 0

    def __init__(self, n_features: int, kind: Any, pace: Pace) -> None:
        self.n_features = n_features
        self.kind = kind
        self.pace = pace
        n_learners = len(pace.rate)
        self.learners: DenseFactor = DENSE_FACTOR.new_learners(
            n_learners, n_features, self._geometry, True
        )
        self.generator: Record = GENERATOR()
        self.calibration = new_calibration(n_learners)

    @property
    def _geometry(self) -> Geometry:
        return Geometry(BURG, self.n_features)

    @property
    def name(self) -> str:
        """Of the kind of learners."""
        return kind_of(self.kind).name

    @property
    def learning_rates(self) -> Floats:
        """Learning rate of each learner."""
        return self.pace.rate

    @property
    def lengths(self) -> Floats:
        """Memory length of each learner: what it replays, else the steps that leave 5 % of one."""
        forgotten = np.maximum(-np.log(0.05) / self.pace.rate, 1.0)
        return np.where(self.pace.replays > 0, self.pace.window, forgotten)

    @property
    def mu(self) -> Floats:
        """Threshold of each learner."""
        return self.calibration.threshold

    @property
    def recent(self) -> int:
        """How many of the last pairs must be kept, to be replayed."""
        return int(np.where(self.pace.replays > 0, self.pace.window, 0).max(initial=0))

    def n_active(self, t: int) -> int:
        """All of them."""
        return len(self.pace.rate)

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict and learn a chunk, one pair after another."""
        n, most = self.n_features, int(self.pace.replays.max(initial=0))
        work = Work(
            DENSE_FACTOR.make_scratch(self.learners, n),
            np.zeros(n),
            Replayed(np.empty(n), np.arange(n)),
            np.empty(most, np.int64),
        )
        state = State(self.learners, self.generator)
        learn(state, self.kind, self.pace, material, predictions, work)
        calibrate(self.calibration, predictions, material.chunk.y, MEMORY)

    def metric(self, j: int, unit: float) -> Factored:
        """Metric of learner j, over ``unit``."""
        return DENSE_FACTOR.metric(
            self.learners, j, self._geometry, unit / scales(self.calibration)[j]
        )

    def mixture(self, p: Floats, unit: float) -> Factored:
        """The weighted sum of the first learners' metrics, over ``unit``."""
        n = self.n_features
        weights = np.sqrt(p * scales(self.calibration)[: len(p)] / unit)
        rows = (weights[:, None, None] * self.learners.factor[: len(p)]).reshape(-1, n)
        values, vectors = np.linalg.eigh(rows.T @ rows)
        return Factored(np.maximum(values[::-1], 0.0), vectors.T[::-1], 0.0)

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of the learners' metrics: on their directions, and beyond them."""
        weights = p * scales(self.calibration)
        rows = (np.sqrt(weights)[:, None, None] * self.learners.factor).reshape(-1, self.n_features)
        return rows.T @ rows, float(weights @ self.pace.outside)

    def change_basis(self, old: "AlwaysOnBank", turn: Floats) -> None:
        """Go on from what a bank has learned, with other directions; see `basis.BankOnBasis`."""
        width = self.n_features
        self.learners = change_basis(old.learners, turn[:, :width], self.pace.outside)
        self.generator, self.calibration = old.generator, old.calibration

    def continue_from(self, old: Any) -> None:
        """Go on from what a bank has learned, with perhaps fewer features."""
        self.learners = DENSE_FACTOR.widen(old.learners, self.learners, self._geometry)
        self.generator, self.calibration = old.generator, old.calibration

    def check(self, n_features: int) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        n_learners = len(self.pace.rate)
        if not n_learners == len(self.learners.mu) == len(self.calibration.slope):
            raise ValueError(f"{n_learners} paces for {len(self.learners.mu)} learners")


@kernel
def learn(
    state: State,
    kind: Any,
    pace: Pace,
    material: Material,
    predictions: Predictions,
    work: Work,
) -> None:
    """Predict and learn all pairs of a chunk."""
    learners, chunk = state.learners, material.chunk
    geometry = Geometry(BURG, work.full.size)
    for row in range(chunk.y.size):
        u = difference(chunk, row, work.full)
        beyond = rest(chunk.whole, row, u.norm2)
        for j in range(learners.mu.size):
            q = squared_distance(learners, work.scratch, j, geometry, u)
            pair = Pair(u, chunk.y[row], q, pace.outside[j] * beyond)
            predictions.q[row, j] = q + pair.beyond
            _take_step(state, kind, pace, work, j, pair)
        if chunk.y[row] == 0.0:
            continue  # a pair that teaches nothing
        for k in range(work.drawn.size):
            work.drawn[k] = draw(state.generator)
        for j in range(learners.mu.size):
            _replay(state, kind, pace, material, row, work, j)


class Pair(NamedTuple):
    """A pair at hand, and the learner's squared distance: in its features, and beyond them."""

    u: Difference
    y: float
    q: float
    beyond: float


@inner
def _take_step(state: State, kind: Any, pace: Pace, work: Work, j: int, pair: Pair) -> None:
    learners, rate = state.learners, pace.rate[j] * abs(pair.y)
    question = Question(rate, sign(pair.y), pair.q + pair.beyond, learners.mu[j])
    answer: Asked = asked(kind, question)
    learners.mu[j] = answer.mu
    step = Step(pair.q, answer.b, rate * pace.rho[j])
    update(learners, work.scratch, j, Geometry(BURG, work.full.size), pair.u, step)


@routine
def _replay(
    state: State, kind: Any, pace: Pace, material: Material, row: int, work: Work, j: int
) -> None:
    """Further steps of learner j, on some of the pairs in its window."""
    geometry = Geometry(BURG, work.full.size)
    within = min(material.chunk.seen + row + 1, pace.window[j])
    for k in range(pace.replays[j]):
        again = row - work.drawn[k] % within
        u, y = replayed(material, again, work.replayed), replayed_y(material, again)
        q = squared_distance(state.learners, work.scratch, j, geometry, u)
        beyond = pace.outside[j] * replayed_rest(material, again, u.norm2)
        _take_step(state, kind, pace, work, j, Pair(u, y, q, beyond))
