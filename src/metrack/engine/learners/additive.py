"""A bank of additive learners: margin learners whose steps add to M, and that forget.

Steps in the LogDet geometry multiply: a direction that was shrunk is slow to grow again, and pairs
far out pull hard. An additive learner starts at 0 and takes the implicit hinge step in the
Frobenius geometry, M <- kept (M - b uu'): what many pairs ask for adds up, what few do averages
out. It is a linear classifier of the products u_i u_j, and M is a form that need not be a metric:
what is read is the nearest metric, of one learner or of the whole ensemble. It predicts by M + cI,
c small, so that its squared distances have a scale from the first pair on and never lose it.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

import numpy as np

from metrack.engine.learners.always_on import AlwaysOnBank
from metrack.engine.learners.bank import Predictions, Row
from metrack.engine.learners.calibration import MEMORY, NONE, calibrate, scales
from metrack.engine.learners.replay import Material
from metrack.engine.numerics.divergences import FROBENIUS, LARGEST
from metrack.engine.numerics.kernels import Floats, add_scaled, inner, kernel, mix
from metrack.engine.numerics.losses import HINGE
from metrack.engine.numerics.pairs import Chunk, Difference, difference, form, rest, sign
from metrack.engine.numerics.records import TINY, floats
from metrack.engine.numerics.steps import IMPLICIT, Question, Way, signed_step

PLAIN = 0.02  # c
SMALLEST = 1e-3  # size: then the matrix itself is made smaller
USUAL_RATE = 0.5  # of a memory of one pair; see `lengths`


class Pace(NamedTuple):
    """What tells learners apart, an entry each."""

    rate: Floats
    forgets: Floats  # this share of M at each pair


class Additive(NamedTuple):
    """The state of J learners. M is a matrix times its size: a pair without loss only forgets."""

    matrix: Annotated[Floats, floats("J", "n", "n", least=-LARGEST, most=LARGEST)]
    size: Annotated[Floats, floats("J", least=TINY, most=1.0)]
    mu: Annotated[Floats, floats("J", least=1.0, most=LARGEST)]


class AdditiveBank(AlwaysOnBank):
    """Learners whose steps add to M, with paces of their own; all are always on."""

    NEEDS = ("rate", "memory")
    name = "additive"
    pace: Pace

    def __init__(self, n_features: int, pace: Pace) -> None:
        super().__init__(n_features, len(pace.rate))
        self.pace = pace
        J = self.n_learners
        self.learners = Additive(np.zeros((J, n_features, n_features)), np.ones(J), np.ones(J))

    @classmethod
    def of_rows(cls, rows: Sequence[Row], n_features: int) -> Self:
        """A row's memory is 1 over what is forgotten at each pair."""
        rates, memories = (
            np.array(each, float) for each in zip(*[(r.rate, r.memory) for r in rows], strict=True)
        )
        return cls(n_features, Pace(rates, 1.0 / memories))

    @property
    def lengths(self) -> Floats:
        """Memory length L of each learner, at most that of its forgetting.

        Its rate is that of a COMID learner for L pairs, a usual one over the root of L.
        """
        rate, forgets = self.pace
        return np.maximum(1.0 / np.maximum(forgets, (rate / USUAL_RATE) ** 2), 1.0)

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict and learn a chunk, one pair after another."""
        learn(self.learners, self.pace, material.chunk, predictions, np.zeros(self.n_features))
        calibrate(self.calibration, predictions, material.chunk.y, MEMORY)

    @property
    def _scales(self) -> Floats:
        """By how much distances are multiplied; where nothing was seen, they are plain ones."""
        return np.where(self.calibration.total > NONE, scales(self.calibration), 1.0 / PLAIN)

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of the learners' forms: on their directions, and beyond them."""
        weights = p * self._scales
        plain = PLAIN * float(weights.sum())
        found: Floats = np.tensordot(weights * self.learners.size, self.learners.matrix, 1)
        return found + plain * np.eye(self.n_features), plain

    def change_basis(self, old: "AdditiveBank", turn: Floats) -> None:
        """Go on from what a bank has learned, with other directions; see `Bank`."""
        n = self.n_features
        kept = turn[: old.n_features, :n]
        self.learners = old.learners._replace(matrix=kept.T @ old.learners.matrix @ kept)
        self.calibration = old.calibration

    def continue_from(self, old: "AdditiveBank") -> None:
        """Go on from what a bank has learned, with perhaps fewer features."""
        more = self.n_features - old.n_features
        matrix = np.pad(old.learners.matrix, ((0, 0), (0, more), (0, more)))
        self.learners = old.learners._replace(matrix=matrix)
        self.calibration = old.calibration


@kernel
def learn(
    learners: Additive, pace: Pace, chunk: Chunk, predictions: Predictions, full: Floats
) -> None:
    """Predict and learn all pairs of a chunk; ``full`` is working memory."""
    for row in range(chunk.y.size):
        u, y = difference(chunk, row, full), chunk.y[row]
        plain = PLAIN * (u.norm2 + rest(chunk.whole, row, u.norm2))
        for j in range(learners.mu.size):
            q = learners.size[j] * form(learners.matrix[j], u)
            predictions.q[row, j] = q + plain
            if y != 0.0:
                _take_step(learners, pace, j, u, y, q)


@inner
def _take_step(learners: Additive, pace: Pace, j: int, u: Difference, y: float, q: float) -> None:
    weight, mu = abs(y), learners.mu[j]
    way = Way(IMPLICIT, HINGE, FROBENIUS)
    b = signed_step(way, Question(pace.rate[j] * weight, sign(y), q, mu, u.norm2))
    learners.mu[j] = min(max(mu + b, 1.0), LARGEST)
    matrix, n = learners.matrix[j], u.full.size
    if b != 0.0:
        added = b / learners.size[j]
        for i in range(n):
            add_scaled(matrix[i], -added * u.full[i], u.full, n)
    learners.size[j] *= 1.0 - pace.forgets[j] * min(weight, 1.0)
    if learners.size[j] < SMALLEST:
        for i in range(n):
            mix(learners.size[j], matrix[i], 0.0, u.full, n)
        learners.size[j] = 1.0
