"""The bank of margin learners: composite mirror descent, one step a pair.

COMID is such a bank of one learner. On the dyadic cover a learner is one level: it starts anew with
each interval, from the iterate of the next shorter level. There the bank grows as time goes by.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.learners.bank import Bank, Predictions
from metrack.engine.learners.cover import (
    activated_levels,
    active_levels,
    n_active_levels,
    time_on_cover,
)
from metrack.engine.learners.replay import Material
from metrack.engine.numerics.divergences import LARGEST, gain
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import Floats, inner, kernel
from metrack.engine.numerics.losses import Kind
from metrack.engine.numerics.pairs import difference, sign
from metrack.engine.numerics.records import floats
from metrack.engine.numerics.steps import Question, Way, signed_step
from metrack.engine.representations.protocol import (
    REPRESENTATIONS,
    Geometry,
    Representation,
    Source,
    Step,
    copy_learner,
    is_full,
    squared_distance,
    step_norm,
    update,
)

CONSTANT, INVSQRT = range(2)
SCHEDULES = {"constant": CONSTANT, "invsqrt": INVSQRT}


class Rule(NamedTuple):
    """What all learners of the bank have in common."""

    loss: Kind
    divergence: int
    step: int
    schedule: int
    rho: float
    capacity: int  # of a learner's rank
    first_interval: int  # of the dyadic cover; 0: all learners are always on


class Ladder(NamedTuple):
    """Rates and memory lengths: first, first * ratio, first * ratio^2, ..."""

    rate: float  # a learner's rate is this over the root of its memory length
    first: float = 1.0
    ratio: float = 2.0


class Rates(NamedTuple):
    """What tells learners apart."""

    rate: Annotated[Floats, floats("J", least=0.0)]
    rho: Annotated[Floats, floats("J", least=0.0)]
    length: Annotated[Floats, floats("J", least=1.0)]


class Work(NamedTuple):
    """Working memory of a pass over a chunk."""

    scratch: Any
    full: Floats


class MirrorBank(Bank):
    """Margin learners with a common rule, whose representation knows the regulariser.

    ``n_learners`` are there at the start; on a cover more are added when their time comes. With
    ``identity`` they start at M = I and not at 0.
    """

    STATE = ("learners", "rates")
    name = "margin"

    def __init__(
        self,
        n_features: int,
        rule: Rule,
        ladder: Ladder,
        representation: Representation,
        n_learners: int = 1,
        identity: bool = False,
    ) -> None:
        self.n_features = n_features
        self.rule = rule
        self.geometry = Geometry(rule.divergence, rule.capacity)
        self.ladder = ladder
        self.learners: Any = representation.new_learners(
            n_learners, n_features, self.geometry, identity
        )
        self.rates = self._new_rates(0, n_learners)

    @property
    def representation(self) -> Representation:
        """How the learners' metrics are kept."""
        return REPRESENTATIONS[type(self.learners)]

    @property
    def first_interval(self) -> int:
        """Length of the cover's shortest intervals; 0: learners are always on."""
        return self.rule.first_interval

    @property
    def learning_rates(self) -> Floats:
        """Learning rate of each learner there is."""
        return self.rates.rate

    @property
    def lengths(self) -> Floats:
        """Memory length of each learner there is."""
        return self.rates.length

    @property
    def mu(self) -> Floats:
        """Threshold of each learner there is."""
        found: Floats = self.learners.mu
        return found

    def n_active(self, t: int) -> int:
        """How many learners, the first ones, predict the t-th pair (counted from 1)."""
        if self.first_interval == 0:
            return len(self.mu)
        return n_active_levels(t, self.first_interval)

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict and learn a chunk, one pair after another."""
        done, n, n_pairs = 0, self.n_features, len(material.chunk.y)
        while done < n_pairs:
            scratch = self.representation.make_scratch(self.learners, n)
            work = Work(scratch, np.zeros(n))
            done = learn(self.learners, self.rates, self.rule, material, done, predictions, work)
            if done < n_pairs:
                self._make_room()

    def _make_room(self) -> None:
        """Larger learners where one is full, else one more for the cover."""
        grown = self.representation.grow(self.learners, self.rule.capacity)
        if grown is not self.learners:
            self.learners = grown
            return
        n_learners = len(self.mu)
        # Level j starts from level j - 1: a copy of anything will do until then.
        kind = self.representation.kind
        self.learners = kind(*(np.concatenate([a, a[-1:]]) for a in self.learners))
        new = self._new_rates(n_learners, n_learners + 1)
        self.rates = Rates(*map(np.concatenate, zip(self.rates, new, strict=True)))

    def _new_rates(self, start: int, stop: int) -> Rates:
        rate, first, ratio = self.ladder
        length = first * ratio ** np.arange(start, stop, dtype=float)
        rho = self.representation.rho_for_length(self.rule.rho, length)
        return Rates(rate / np.sqrt(length), rho, length)

    def change_basis(self, old: Any, turn: Floats) -> None:
        """Not on a basis: representations know of none."""
        raise NotImplementedError

    def continue_from(self, old: "MirrorBank") -> None:
        """Go on from what a bank has learned, with perhaps fewer features and by another rule.

        Learners keep their metrics. The new features have been 0 so far: there every metric is
        where it started, or where this bank's learners start.
        """
        same = old.representation == self.representation
        if same and old.rule.divergence == self.rule.divergence:
            learners = self.representation.widen(old.learners, self.learners, self.geometry)
        else:
            source = Source(old.representation, old.learners, old.geometry)
            learners = self.representation.adopt(source, self.learners, self.geometry)
        self.learners = learners
        self.rates = self._new_rates(0, len(old.mu))

    def check(self, n_features: int) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        n_learners, capacity = len(self.mu), self.rule.capacity
        if not (n_learners > 0 and 1 <= capacity <= n_features):
            raise ValueError(f"{n_learners} learners of rank {capacity} and {n_features} features")
        self.representation.check(self.learners, self.geometry, n_features)

    def metric(self, j: int, unit: float) -> Factored:
        """Metric of learner j, over ``unit``."""
        return self.representation.metric(self.learners, j, self.geometry, unit)

    def mixture(self, p: Floats, unit: float) -> Factored:
        """The weighted sum of the first learners' metrics, over ``unit``."""
        return self.representation.mixture(self.learners, p, self.geometry, unit)

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of the learners' metrics, on all features."""
        return self.mixture(p, 1.0).matrix(), 0.0

    def density(self, j: int) -> float:
        """Share of the entries of learner j's metric that are not 0."""
        return self.representation.density(self.learners, j, self.geometry)

    def truncated_mass(self, j: int, unit: float) -> float:
        """Eigenvalue mass that the capacity has cost learner j, over ``unit``."""
        return self.representation.truncated_mass(self.learners, j) / unit


@kernel
def learn(
    learners: Any,
    rates: Rates,
    rule: Rule,
    material: Material,
    first: int,
    predictions: Predictions,
    work: Work,
) -> int:
    """Predict and learn the pairs from row ``first`` on; returns where it stopped.

    It stops before the end only where the next pair needs one more learner, or the learners more
    room, than there is: the caller makes room.
    """
    chunk, divergence = material.chunk, rule.divergence
    way, geometry = Way(rule.step, rule.loss, divergence), Geometry(divergence, rule.capacity)
    for row in range(first, chunk.y.size):
        t = chunk.seen + row + 1
        n = learners.mu.size
        if rule.first_interval > 0:
            n = active_levels(time_on_cover(t, rule.first_interval), rule.first_interval)
        if n > learners.mu.size or is_full(learners, rule.capacity):
            return row
        _activate(learners, rule, t)
        u = difference(chunk, row, work.full)
        for j in range(n):
            q = squared_distance(learners, work.scratch, j, geometry, u)
            predictions.q[row, j], predictions.mu[row, j] = q, learners.mu[j]
        norm = step_norm(learners, u)
        for j in range(n):
            rate = rates.rate[j]
            if rule.schedule == INVSQRT:
                rate /= math.sqrt(t)
            q, mu = predictions.q[row, j], predictions.mu[row, j]
            e = rate * abs(chunk.y[row])
            b = signed_step(way, Question(e, sign(chunk.y[row]), q, mu, norm))
            learners.mu[j] = min(max(mu + gain(divergence, mu, b), 1.0), LARGEST)
            update(learners, work.scratch, j, geometry, u, Step(q, b, e * rates.rho[j]))
    return chunk.y.size


@inner
def _activate(learners: Any, rule: Rule, t: int) -> None:
    """Start the intervals that begin now, each from the next shorter level's iterate."""
    if rule.first_interval > 0:
        tau = time_on_cover(t, rule.first_interval)
        for j in range(activated_levels(tau, rule.first_interval) - 1, 0, -1):
            copy_learner(learners, j - 1, j)
