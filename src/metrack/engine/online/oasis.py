"""OASIS: a bilinear similarity from triplets, a passive-aggressive step each."""

import math
from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.ensemble.scaler import to_scale, unit, unit_before
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, Record, add_scaled, inner, kernel
from metrack.engine.numerics.pairs import SMALLEST, Chunk, Difference, Pairs, difference, row_times
from metrack.engine.numerics.records import floats
from metrack.engine.online.targets import DenseLearner


class PassiveAggressive(NamedTuple):
    """How a similarity moves."""

    longest: float  # step: C
    scaled: bool  # V is measured in units of its root mean square


class Similarity(NamedTuple):
    """The state of a learner of x'Wz."""

    matrix: Annotated[Floats, floats("n", "n")]  # W


class DenseSimilarity(DenseLearner):
    """One learner of a bilinear similarity x'Wz from triplets, by OASIS.

    Steps are along V = p (p+ - p-)'.
    """

    def __init__(self, n_features: int, rule: PassiveAggressive) -> None:
        super().__init__(n_features)  # its scaler is of |V|
        self.rule = rule
        self.learners = Similarity(np.eye(n_features))

    def observe(self, anchors: Pairs, gaps: Pairs) -> Floats:
        """Loss suffered on each triplet before learning from it.

        ``anchors`` are the rows p, ``gaps`` the rows p+ - p-.
        """
        losses = np.empty(len(anchors.y))
        # V is scaled, and neither of its two sides.
        p, d = (to_scale(self.scaler, rows, 0.0, self.n_pairs) for rows in (anchors, gaps))
        work = np.zeros((2, self.n_features))
        observe_triplets(self.learners.matrix, self.scaler, self.rule, p, d, losses, work)
        self.counters["pairs"] += len(losses)
        return losses

    def matrix(self) -> Floats:
        """W in the units of the data."""
        return self.learners.matrix / math.sqrt(unit(self.scaler, 1.0 if self.rule.scaled else 0.0))

    def metric(self, expert: int) -> Factored:
        """The positive semidefinite part of (W + W') / 2."""
        W = self.matrix()
        values, vectors = np.linalg.eigh(0.5 * (W + W.T))
        kept = values > 0.0
        return Factored(values[kept][::-1], vectors.T[kept][::-1], 0.0)


@kernel
def observe_triplets(
    W: Floats,
    scaler: Record,
    rule: PassiveAggressive,
    anchors: Chunk,
    gaps: Chunk,
    losses: Floats,
    work: Floats,
) -> None:
    """Predict, suffer and learn all triplets."""
    for row in range(losses.size):
        p = difference(anchors, row, work[0])
        d = difference(gaps, row, work[1])
        square = p.norm2 * d.norm2
        losses[row] = 1.0
        if square < SMALLEST:  # as good as p = 0 or p+ = p-: there is nothing to learn
            continue
        length = unit_before(scaler, square, 1.0)
        if not rule.scaled:
            length = 1.0
        score = 0.0
        for i in range(p.where.size):
            score += p.values[i] * row_times(W[p.where[i]], d)
        losses[row] = max(0.0, 1.0 - score / length)
        step = min(rule.longest, losses[row] / (square / length / length)) / length
        if step > 0.0:
            for i in range(p.where.size):
                _add_to_row(W[p.where[i]], step * p.values[i], d)


@inner
def _add_to_row(row: Floats, factor: float, d: Difference) -> None:
    if d.where.size == d.full.size:
        add_scaled(row, factor, d.full, d.full.size)
    else:
        for i in range(d.where.size):
            row[d.where[i]] += factor * d.values[i]
