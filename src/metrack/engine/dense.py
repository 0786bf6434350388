"""The baselines that hold a whole n x n matrix, and their rank-one updates: O(n^2) a step.

A metric is kept as a factor L with M = L'L, and moved as in `whole`.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.divergences import LARGEST
from metrack.engine.factored import Factored
from metrack.engine.kernels import (
    Difference,
    Floats,
    Ints,
    add_scaled,
    dot,
    inner,
    kernel,
    row_times,
)
from metrack.engine.records import Choice, Flag, Number, counts, floats
from metrack.engine.rounds import SMALLEST, TINY, Pairs, Round, difference, make_round, rescale
from metrack.engine.whole import move_factor, project_factor

ITML, LEGO = range(2)
METHODS = {"itml": ITML, "lego": LEGO}


class Target(NamedTuple):
    """How a factored metric moves: similar pairs to at most ``upper``, others to ``lower``."""

    method: Annotated[int, Choice(METHODS)]
    rate: Annotated[float, Number(TINY)]
    upper: Annotated[float, Number(TINY)]
    lower: Annotated[float, Number(TINY)]
    scaled: Annotated[bool, Flag()]  # u is measured in units of its root mean square


class PassiveAggressive(NamedTuple):
    """How a similarity moves."""

    longest: Annotated[float, Number(TINY)]  # step
    scaled: Annotated[bool, Flag()]  # V is measured in units of its root mean square


class Metric(NamedTuple):
    """The learner's state."""

    factor: Annotated[Floats, floats("n", "n", least=-LARGEST, most=LARGEST)]  # L
    mu: Annotated[Floats, floats(1, least=0.0)]  # its threshold on squared distances


class Similarity(NamedTuple):
    """The state of a learner of x'Wz."""

    matrix: Annotated[Floats, floats("n", "n")]  # W


class Clock(NamedTuple):
    """What a stream has shown so far; every array has one entry."""

    pairs: Annotated[Ints, counts(1)]  # or triplets
    moved: Annotated[Ints, counts(1)]  # those that say something: x != z
    mean_square: Annotated[Floats, floats(1, least=0.0)]  # of |u|, or of |V|, over those


def _new_clock() -> Clock:
    return Clock(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1))


def _check_clock(clock: Clock) -> None:
    if clock.moved[0] > clock.pairs[0]:
        raise ValueError(f"clock.moved counts {clock.moved[0]:,} of {clock.pairs[0]:,} pairs")


class DenseMetric:
    """One learner of a metric of full rank, in the place of a `Bank`.

    Parameters
    ----------
    n_features : int
    rule : Target
    """

    def __init__(self, n_features: int, rule: Target) -> None:
        self.n_features = n_features
        self.rule = rule
        self.clock = _new_clock()
        self.learners = Metric(np.eye(n_features), np.array([0.5 * (rule.upper + rule.lower)]))

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        _check_clock(self.clock)
        if self.rule.upper > self.rule.lower:
            raise ValueError(f"the target {self.rule.upper} is above {self.rule.lower}")

    def observe(self, pairs: Pairs, draws: Floats) -> Floats:
        """Loss suffered on each pair before learning from it; nothing here is drawn."""
        losses = np.empty(len(pairs.y))
        w, r = np.empty(self.n_features), np.empty(self.n_features)
        this = make_round(1, self.n_features)
        observe_pairs(self.learners, self.clock, self.rule, pairs, losses, this, w, r)
        return losses

    def widen(self, n_features: int, capacity: int) -> None:
        """Go on with more features, which have been 0 so far: there the metric is at its start."""
        factor = np.eye(n_features)
        factor[: self.n_features, : self.n_features] = self.learners.factor
        self.learners = self.learners._replace(factor=factor)
        self.n_features = n_features

    def metric(self, j: int) -> Factored:
        """The metric; there is no other than j = 0."""
        _, lengths, vectors = np.linalg.svd(self.learners.factor)
        return Factored(lengths**2 / unit(self.clock, self.rule.scaled), vectors, 0.0)


class DenseSimilarity:
    """One learner of a bilinear similarity x'Wz from triplets, by OASIS.

    Parameters
    ----------
    n_features : int
    rule : PassiveAggressive
        Its steps are at most C, with V = p (p+ - p-)'.
    """

    def __init__(self, n_features: int, rule: PassiveAggressive) -> None:
        self.n_features = n_features
        self.rule = rule
        self.clock = _new_clock()
        self.learners = Similarity(np.eye(n_features))

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        _check_clock(self.clock)

    def observe(self, anchors: Pairs, gaps: Pairs) -> Floats:
        """Loss suffered on each triplet before learning from it.

        ``anchors`` are the rows p, ``gaps`` the rows p+ - p-.
        """
        losses = np.empty(len(anchors.y))
        p, d = make_round(1, self.n_features), make_round(1, self.n_features)
        W = self.learners.matrix
        longest, scaled = self.rule
        observe_triplets(W, self.clock, longest, scaled, anchors, gaps, losses, p, d)
        return losses

    def matrix(self) -> Floats:
        """W in the units of the data."""
        return self.learners.matrix / math.sqrt(unit(self.clock, self.rule.scaled))

    def metric(self, j: int) -> Factored:
        """The positive semidefinite part of (W + W') / 2."""
        W = self.matrix()
        values, vectors = np.linalg.eigh(0.5 * (W + W.T))
        kept = values > 0.0
        return Factored(values[kept][::-1], vectors.T[kept][::-1], 0.0)


def unit(clock: Clock, scaled: bool) -> float:
    """Square of the length in which u, or V, is measured."""
    mean_square = float(clock.mean_square[0])
    return mean_square if scaled and mean_square > 0.0 else 1.0


@kernel
def observe_pairs(
    learner: Metric,
    clock: Clock,
    rule: Target,
    pairs: Pairs,
    losses: Floats,
    this: Round,
    w: Floats,
    r: Floats,
) -> None:
    """Predict, suffer and learn all pairs; ``w`` and ``r`` are working memory."""
    L, rate = learner.factor, min(rule.rate, LARGEST)
    for t in range(pairs.y.size):
        clock.pairs[0] += 1
        u = difference(pairs, t, this)
        norm2 = dot(u.values, u.values, u.where.size)
        if rule.scaled:
            norm2 = rescale(u, norm2, clock.moved, clock.mean_square, 1.0)
        q = project_factor(L, u, w)
        g = rule.upper if pairs.y[t] > 0.0 else rule.lower
        violated = q > g if pairs.y[t] > 0.0 else q < g
        losses[t] = (q - g) ** 2 if violated else 0.0
        if rule.method == LEGO:
            losses[t] *= 0.5
        if not violated or q < SMALLEST:
            continue
        ratio = _itml(rate, q, g) if rule.method == ITML else _lego(rate, q, g)
        move_factor(L, w, r, q, ratio, norm2, 1.0)


@inner
def _itml(rate: float, q: float, g: float) -> float:
    """Q' / q of an explicit step, adapted so that q at most doubles: 1 + k q >= 1/2."""
    return 1.0 / (1.0 + max(2.0 * rate * (q - g) * q, -0.5))


@inner
def _lego(rate: float, q: float, g: float) -> float:
    """Q' / q of the implicit step: rate q'^2 q + (1 - rate g q) q' - q = 0."""
    half = 0.5 * (1.0 - rate * g * q)
    root = math.hypot(half, math.sqrt(rate) * q)
    # Of two forms of the solution, the one in which nothing cancels.
    return 1.0 / (half + root) if half > 0.0 else (root - half) / (rate * q * q)


@kernel
def observe_triplets(
    W: Floats,
    clock: Clock,
    longest: float,
    scaled: bool,
    anchors: Pairs,
    gaps: Pairs,
    losses: Floats,
    this_anchor: Round,
    this_gap: Round,
) -> None:
    """Predict, suffer and learn all triplets: the passive-aggressive step of OASIS."""
    for t in range(losses.size):
        clock.pairs[0] += 1
        p, d = difference(anchors, t, this_anchor), difference(gaps, t, this_gap)
        square = dot(p.values, p.values, p.where.size) * dot(d.values, d.values, d.where.size)
        losses[t] = 1.0
        if square < SMALLEST:  # as good as p = 0 or p+ = p-: there is nothing to learn
            continue
        before = clock.mean_square[0]
        clock.moved[0] += 1
        clock.mean_square[0] += (square - before) / clock.moved[0]
        length = 1.0
        if scaled:
            length = math.sqrt(before if before > 0.0 else square)
        score = 0.0
        for i in range(p.where.size):
            score += p.values[i] * row_times(W[p.where[i]], d)
        losses[t] = max(0.0, 1.0 - score / length)
        step = min(longest, losses[t] / (square / length / length)) / length
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
