"""The one compiled loop that a stream of pairs goes through.

A round is: births -> probabilities -> distances -> prediction -> losses -> weights -> steps ->
pairs revisited. Nothing predicts with a pair that it has learned from.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine import combiners
from metrack.engine.cover import active_levels, levels_born
from metrack.engine.divergences import DIVERGENCES, LARGEST, gain
from metrack.engine.forms import copy_learner, is_full, move, project, step_norm
from metrack.engine.kernels import Difference, Floats, Ints, copy, dot, fill, inner, kernel, routine
from metrack.engine.losses import LOGISTIC, LOSSES, loss, shortfall, slope
from metrack.engine.records import MOST, Choice, Flag, Number, counts, floats
from metrack.engine.replay import (
    LONGEST,
    SHORTEST,
    Memory,
    draw,
    remember,
    remembered,
    slot_of,
)
from metrack.engine.steps import STEPS, signed_step

CONSTANT, INVSQRT = range(2)
SCHEDULES = {"constant": CONSTANT, "invsqrt": INVSQRT}

AVERAGE, SAMPLE, BEST = range(3)
OUTPUTS = {"average": AVERAGE, "sample": SAMPLE, "best": BEST}

CAPPED, SQUASHED, LINEAR = range(3)
WEIGHT_LOSSES = {"capped": CAPPED, "logistic": SQUASHED, "linear": LINEAR}


SPREAD = 2.0  # mean |u|^2 where units are automatic: a pair's weight beside the threshold's
SMALLEST = 1e-200  # a |u|^2 below this has lost its digits

# A change is noticed when the latest losses, of at most WORST each and in units of it, exceed the
# mean of the last USUAL by more than TOLERATED each and ALARM together.
WORST = 2.0
USUAL = 500
TOLERATED = 0.05
ALARM = 7.0
TINY = math.ulp(0.0)  # the least number above 0


class Rule(NamedTuple):
    """What all learners of a bank have in common, and how they are combined."""

    loss: Annotated[int, Choice(LOSSES)]
    divergence: Annotated[int, Choice(DIVERGENCES)]
    step: Annotated[int, Choice(STEPS)]
    schedule: Annotated[int, Choice(SCHEDULES)]
    rho: Annotated[float, Number()]
    capacity: Annotated[int, Number(1, MOST, whole=True)]  # of a learner's rank
    scaled: Annotated[bool, Flag()]  # u is scaled to a mean |u|^2 of SPREAD
    # Of the dyadic cover; 0: all learners are always on.
    first_interval: Annotated[int, Number(0, MOST, whole=True)]
    combiner: Annotated[int, Choice(combiners.COMBINERS)]
    output: Annotated[int, Choice(OUTPUTS)]
    weight_loss: Annotated[int, Choice(WEIGHT_LOSSES)]
    cap: Annotated[float, Number(TINY)]
    replays: Annotated[int, Number(0, MOST, whole=True)]  # pairs revisited after each


class Trust(NamedTuple):
    """The learners' settings and intervals, and what the combiner remembers of each."""

    rate: Annotated[Floats, floats("J", least=0.0)]
    rho: Annotated[Floats, floats("J", least=0.0)]
    length: Annotated[Floats, floats("J", least=1.0)]
    memory: Annotated[Floats, floats("J", combiners.N_MEMORY)]
    p: Annotated[Floats, floats("J", least=0.0, most=1.0)]  # probabilities in the last round
    # What the combiner was told in the last round.
    losses: Annotated[Floats, floats("J", least=0.0, most=1.0)]


class Clock(NamedTuple):
    """What a stream has shown so far, beside the learners; every array has one entry."""

    pairs: Annotated[Ints, counts(1)]
    moved: Annotated[Ints, counts(1)]  # pairs with x != z
    mean_square: Annotated[Floats, floats(1, least=0.0)]  # of |u|, over those
    active: Annotated[Ints, counts(1, least=1)]  # learners in the last round
    # Learner that predicted in the last round; for an average the most trusted.
    selected: Annotated[Ints, counts(1)]
    usual: Annotated[Floats, floats(1, least=0.0, most=1.0)]  # capped loss of late
    # How much the latest losses together exceed it.
    excess: Annotated[Floats, floats(1, least=0.0, most=ALARM)]
    changed: Annotated[Ints, counts(1)]  # pair at which a change was last noticed


class Pairs(NamedTuple):
    """Differences u = x - z of a batch as rows of a CSR matrix.

    Dense rows share one ``where`` of all features.
    """

    u: Floats
    where: Ints
    starts: Ints  # empty where rows are dense
    y: Floats


class Round(NamedTuple):
    """Working memory of one round."""

    values: Floats
    full: Floats
    q: Floats  # squared distance by each learner


def make_round(n_learners: int, n_features: int) -> Round:
    """Allocate for a pass over a batch."""
    return Round(
        values=np.empty(n_features),
        full=np.zeros(n_features),
        q=np.empty(n_learners),
    )


def check(clock: Clock, rule: Rule, n_learners: int) -> None:
    """Refuse counters that contradict each other; their arrays hold what they declare."""
    pairs, active = int(clock.pairs[0]), int(clock.active[0])
    expected = n_learners
    if rule.first_interval > 0:
        expected = max(1, (pairs + rule.first_interval - 1) // rule.first_interval).bit_length()
    if active != expected or active > n_learners:
        raise ValueError(
            f"{active} of {n_learners} learners are active after {pairs:,} pairs, expected "
            f"{expected}"
        )
    for name in ("moved", "changed"):
        if getattr(clock, name)[0] > pairs:
            raise ValueError(f"clock.{name} counts {getattr(clock, name)[0]:,} of {pairs:,} pairs")
    if clock.selected[0] >= active:
        raise ValueError(f"learner {clock.selected[0]} is selected of {active} active ones")


@kernel
def observe(
    learners: Any,
    trust: Trust,
    clock: Clock,
    memory: Memory,
    rule: Rule,
    pairs: Pairs,
    draws: Floats,
    first: int,
    losses: Floats,
    scratch: Any,
    this: Round,
) -> int:
    """Predict, suffer and learn the pairs from ``first`` on; returns where it stopped.

    It stops before the end only where the next pair needs one more learner, or the learners more
    room, than there is: the caller makes room. ``draws`` are uniform numbers, one a pair, for the
    output that samples.
    """
    for t in range(first, pairs.y.size):
        n = _active(rule, clock.pairs[0] + 1, learners.mu.size)
        if n > learners.mu.size or is_full(learners, rule.capacity):
            return t
        clock.pairs[0] += 1
        clock.active[0] = n
        _births(learners, trust, rule, clock.pairs[0])
        combiners.probabilities(rule.combiner, trust.memory, n, clock.pairs[0], trust.p)

        u = difference(pairs, t, this)
        norm2 = dot(u.values, u.values, u.where.size)
        if rule.scaled:
            norm2 = rescale(u, norm2, clock.moved, clock.mean_square, SPREAD)
        y = pairs.y[t]
        for j in range(n):
            this.q[j] = project(learners, scratch, j, rule.divergence, u, norm2)
        q, mu = _predict(learners, trust, clock, rule, this, draws[t] if draws.size else 0.0)
        losses[t] = loss(rule.loss, shortfall(y, mu, q))
        _notice_change(clock, losses[t])
        if learners.mu.size > 1:
            _judge(learners, trust, rule, this, n, y, q, mu)
            combiners.update(rule.combiner, trust.memory, n, trust.p, trust.losses)
        length = step_norm(learners, u, norm2)
        for j in range(n):
            rate = trust.rate[j]
            if rule.schedule == INVSQRT:
                rate /= math.sqrt(clock.pairs[0])
            _step(learners, scratch, j, rule, rate, trust.rho[j], u, y, this.q[j], length)
        if rule.replays > 0:
            remember(memory, u, y)
            _revisit(learners, trust, memory, rule, scratch, n)
    return pairs.y.size


@inner
def _step(
    learners: Any,
    scratch: Any,
    j: int,
    rule: Rule,
    rate: float,
    rho: float,
    u: Difference,
    y: float,
    q: float,
    length: float,
) -> None:
    """Learner j learns a pair at squared distance q; ``length`` is its `step_norm`."""
    mu = learners.mu[j]
    b = signed_step(rule.step, rule.loss, rule.divergence, rate, y, q, mu, length)
    learners.mu[j] = min(max(mu + gain(rule.divergence, mu, b), 1.0), LARGEST)
    move(learners, scratch, j, rule.divergence, u, q, b, rate * rho, rule.capacity)


@routine
def _revisit(learners: Any, trust: Trust, memory: Memory, rule: Rule, scratch: Any, n: int) -> None:
    """Further steps of the first n learners, on pairs of their own intervals."""
    for _ in range(rule.replays):
        drawn = draw(memory)
        for j in range(n):
            if trust.length[j] < SHORTEST or trust.length[j] > LONGEST:
                continue
            if is_full(learners, rule.capacity):
                return  # there is room again before the next pair
            slot = slot_of(memory, drawn, trust.length[j])
            u = remembered(memory, slot)
            norm2 = dot(u.full, u.full, u.full.size)
            q = project(learners, scratch, j, rule.divergence, u, norm2)
            length = step_norm(learners, u, norm2)
            rate, rho = trust.rate[j], trust.rho[j]
            _step(learners, scratch, j, rule, rate, rho, u, memory.y[slot], q, length)


@inner
def _active(rule: Rule, t: int, n_learners: int) -> int:
    if rule.first_interval == 0:
        return n_learners
    return active_levels(t + rule.first_interval - 1, rule.first_interval)


@inner
def _births(learners: Any, trust: Trust, rule: Rule, t: int) -> None:
    """Start the intervals that begin now.

    Each starts from the next shorter scale's iterate, the shortest from its own. Learners that are
    always on are all born in the first round.
    """
    on_cover = rule.first_interval > 0
    tau = t + rule.first_interval - 1 if on_cover else t
    born = levels_born(tau, rule.first_interval) if on_cover else learners.mu.size * (t == 1)
    for j in range(born - 1, -1, -1):
        if on_cover and j > 0:
            copy_learner(learners, j - 1, j)
        combiners.newborn(rule.combiner, trust.memory[j], trust.length[j], tau, learners.mu.size)


@inner
def difference(pairs: Pairs, t: int, this: Round) -> Difference:
    """Row t of the batch; ``this.full`` still holds row t - 1."""
    values, full = this.values, this.full
    if pairs.starts.size == 0:
        copy(full, pairs.u[t * full.size :], full.size)
        return Difference(full, pairs.where, full)
    if t > 0:
        for i in range(pairs.starts[t - 1], pairs.starts[t]):
            full[pairs.where[i]] = 0.0
    start, stop = pairs.starts[t], pairs.starts[t + 1]
    for i in range(start, stop):
        values[i - start] = pairs.u[i]
        full[pairs.where[i]] = pairs.u[i]
    return Difference(values[: stop - start], pairs.where[start:stop], full)


@inner
def rescale(u: Difference, norm2: float, moved: Ints, mean_square: Floats, spread: float) -> float:
    """Give u a mean |u|^2 of ``spread``, by the mean so far, then let the pair count.

    Returns the new |u|^2.
    """
    before = mean_square[0]
    if norm2 < SMALLEST:  # as good as x = z
        fill(u.values, 0.0, u.values.size)
        fill(u.full, 0.0, u.full.size)
        return 0.0
    moved[0] += 1
    mean_square[0] += (norm2 - before) / moved[0]
    unit = math.sqrt((before if before > 0.0 else norm2) / spread)
    for i in range(u.values.size):
        u.values[i] /= unit
        u.full[u.where[i]] = u.values[i]
    return dot(u.values, u.values, u.values.size)


@inner
def _predict(
    learners: Any, trust: Trust, clock: Clock, rule: Rule, this: Round, draw: float
) -> tuple[float, float]:
    """Squared distance and threshold that the ensemble puts out."""
    n, p = clock.active[0], trust.p
    best, q, mu = 0, 0.0, 0.0
    for j in range(n):
        q += p[j] * this.q[j]
        mu += p[j] * learners.mu[j]
        if p[j] > p[best]:
            best = j
    if rule.output == SAMPLE:
        best, below = 0, p[0]
        while below <= draw and best < n - 1:
            best += 1
            below += p[best]
    clock.selected[0] = best
    if rule.output == AVERAGE:
        return q, mu
    return this.q[best], learners.mu[best]


@inner
def _judge(
    learners: Any, trust: Trust, rule: Rule, this: Round, n: int, y: float, q: float, mu: float
) -> None:
    """What the combiner is told of each learner's prediction, in [0, 1]."""
    asked = y * slope(rule.loss, shortfall(y, mu, q))
    for j in range(n):
        lacking = shortfall(y, learners.mu[j], this.q[j])
        if rule.weight_loss == CAPPED:
            trust.losses[j] = min(rule.cap, loss(rule.loss, lacking)) / rule.cap
        elif rule.weight_loss == SQUASHED:
            trust.losses[j] = slope(LOGISTIC, lacking)  # 1 / (1 + exp(m))
        else:  # the loss linearised at the ensemble's own prediction
            linear = asked * ((this.q[j] - q) - (learners.mu[j] - mu))
            trust.losses[j] = 0.5 + 0.5 * min(max(linear / rule.cap, -1.0), 1.0)


@inner
def _notice_change(clock: Clock, suffered: float) -> None:
    """Page's test: losses that together exceed the usual ones by too much tell of a change."""
    now = min(WORST, suffered) / WORST
    since = clock.pairs[0] - clock.changed[0]
    clock.usual[0] += (now - clock.usual[0]) / min(since, USUAL)
    clock.excess[0] = max(0.0, clock.excess[0] + now - clock.usual[0] - TOLERATED)
    if clock.excess[0] > ALARM:
        clock.excess[0] = 0.0
        clock.changed[0] = clock.pairs[0]


@kernel
def weights(trust: Trust, clock: Clock, rule: Rule, p: Floats) -> None:
    """The active learners' normalised weights after the last round."""
    combiners.probabilities(rule.combiner, trust.memory, p.size, clock.pairs[0] + 1, p)
