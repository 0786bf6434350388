"""Online ITML and LEGO: squared distances on their way to fixed targets, O(n^2) a step.

The metric is kept as a factor L with M = L'L, and moved as by `representations.dense_factor`.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.ensemble.scaler import SCALER, check, to_scale, unit
from metrack.engine.numerics.divergences import LARGEST
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, Record, inner, kernel
from metrack.engine.numerics.pairs import SMALLEST, Chunk, Pairs, difference
from metrack.engine.numerics.records import Structure, counts, floats
from metrack.engine.numerics.steps import towards_target
from metrack.engine.representations.dense_factor import factor_distance, update_factor

ITML, LEGO = range(2)
METHODS = {"itml": ITML, "lego": LEGO}


class Target(NamedTuple):
    """How the metric moves: similar pairs to at most ``upper``, others to at least ``lower``."""

    method: int
    rate: float
    upper: float
    lower: float
    scaled: bool  # u is measured in units of its root mean square


class Metric(NamedTuple):
    """The learner's state."""

    factor: Annotated[Floats, floats("n", "n", least=-LARGEST, most=LARGEST)]  # L
    mu: Annotated[Floats, floats(1, least=0.0)]  # its threshold on squared distances


COUNTERS = Structure(pairs=counts(1))  # or triplets


class Work(NamedTuple):
    """Working memory of a pass over a chunk."""

    full: Floats
    w: Floats  # Lu
    r: Floats  # L'Lu


class DenseLearner:
    """One learner of a dense matrix, in the place of an `Ensemble`."""

    STATE = ("counters", "scaler", "learners")

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.counters: Record = COUNTERS()
        self.scaler: Record = SCALER()

    def holders(self) -> dict[str, Any]:
        """What has state, by name; see `Ensemble`."""
        return {"learner": self}

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        check(self.scaler, self.n_pairs)

    @property
    def n_pairs(self) -> int:
        """How many pairs, or triplets, have been learned."""
        return int(self.counters["pairs"][0])


class DenseMetric(DenseLearner):
    """One learner of a metric of full rank."""

    def __init__(self, n_features: int, rule: Target) -> None:
        super().__init__(n_features)
        self.rule = rule
        self.learners = Metric(np.eye(n_features), np.array([0.5 * (rule.upper + rule.lower)]))

    def observe(self, pairs: Pairs, draws: Floats) -> Floats:
        """Loss suffered on each pair before learning from it; nothing here is drawn."""
        n = self.n_features
        chunk = to_scale(self.scaler, pairs, self._spread, self.n_pairs)
        losses = np.empty(len(pairs.y))
        work = Work(np.zeros(n), np.empty(n), np.empty(n))
        observe_pairs(self.learners, self.rule, chunk, losses, work)
        self.counters["pairs"] += len(losses)
        return losses

    def continue_from(self, old: "DenseMetric") -> None:
        """Go on from what a learner has learned, with perhaps fewer features.

        The others have been 0 so far: there the metric is at its start.
        """
        factor = np.eye(self.n_features)
        factor[: old.n_features, : old.n_features] = old.learners.factor
        self.learners = old.learners._replace(factor=factor)
        self.counters, self.scaler = old.counters, old.scaler

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        super().check()
        if self.rule.upper > self.rule.lower:
            raise ValueError(f"the target {self.rule.upper} is above {self.rule.lower}")

    @property
    def _spread(self) -> float:
        return 1.0 if self.rule.scaled else 0.0

    @property
    def mu(self) -> Floats:
        """The threshold."""
        return self.learners.mu

    @property
    def unit(self) -> float:
        """Square of the length in which u is measured."""
        return unit(self.scaler, self._spread)

    def metric(self, expert: int) -> Factored:
        """The metric; there is no other expert than 0."""
        _, lengths, vectors = np.linalg.svd(self.learners.factor)
        return Factored(lengths**2 / self.unit, vectors, 0.0)


@kernel
def observe_pairs(learner: Metric, rule: Target, chunk: Chunk, losses: Floats, work: Work) -> None:
    """Predict, suffer and learn all pairs."""
    L, rate = learner.factor, min(rule.rate, LARGEST)
    for row in range(chunk.y.size):
        u = difference(chunk, row, work.full)
        q = factor_distance(L, u, work.w)
        weight = abs(chunk.y[row])
        g = rule.upper if chunk.y[row] > 0.0 else rule.lower
        violated = q > g if chunk.y[row] > 0.0 else q < g
        losses[row] = weight * (q - g) ** 2 if violated else 0.0
        if rule.method == LEGO:
            losses[row] *= 0.5
        if not violated or q < SMALLEST or weight == 0.0:
            continue
        e = min(rate * weight, LARGEST)
        ratio = 1.0 / (1.0 + towards_target(e, q, g)) if rule.method == ITML else _lego(e, q, g)
        update_factor(L, work.w, work.r, q, ratio, u.norm2, 1.0)


@inner
def _lego(rate: float, q: float, g: float) -> float:
    """Q' / q of the implicit step: rate q'^2 q + (1 - rate g q) q' - q = 0."""
    half = 0.5 * (1.0 - rate * g * q)
    root = math.hypot(half, math.sqrt(rate) * q)
    # Of two forms of the solution, the one in which nothing cancels.
    return 1.0 / (half + root) if half > 0.0 else (root - half) / (rate * q * q)
