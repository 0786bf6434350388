"""The bank: J learners that see the same pairs. It owns their arrays and makes room as they grow.

COMID is a bank of one learner; SADL one on the dyadic cover, which grows as time goes by, or one of
always-on learners with different rates.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine import replay, rounds, whole
from metrack.engine.combiners import N_MEMORY
from metrack.engine.factored import Factored
from metrack.engine.forms import FORMS, choose
from metrack.engine.kernels import Floats
from metrack.engine.records import Number
from metrack.engine.rounds import (
    SPREAD,
    TINY,
    Clock,
    Pairs,
    Rule,
    Trust,
    make_round,
    observe,
    weights,
)

FADES_FROM = 32.0  # length of an interval
ROUNDING = 1e-14  # a mixture's eigenvalues below this share of the largest are no directions


class Ladder(NamedTuple):
    """Rates and lengths of the learners; see `Bank`."""

    rate: Annotated[float, Number(TINY)]
    first: Annotated[float, Number(1.0)]
    ratio: Annotated[float, Number(1.0)]


class Bank:
    """State of J learners with a common rule.

    Parameters
    ----------
    n_features : int
    rule : Rule
        What the learners have in common; its capacity is at most n_features.
    rate : float
        Learning rate of learner j is rate / sqrt(length of its interval).
    first, ratio : float
        Interval lengths are first, first * ratio, first * ratio^2, ...
    n_learners : int
        How many there are at the start; on a cover more are added when their time comes.
    identity : bool
        Start at M = I and not at 0.
    form : module, optional
        How metrics are kept, and by which regulariser; see `forms`. None: the fastest way that is
        exact for the nuclear norm.
    """

    def __init__(
        self,
        n_features: int,
        rule: Rule,
        rate: float,
        first: float = 1.0,
        ratio: float = 2.0,
        n_learners: int = 1,
        identity: bool = False,
        form: Any = None,
    ) -> None:
        self.n_features = n_features
        self.rule = rule
        self.ladder = Ladder(rate, first, ratio)
        self.clock = Clock(
            pairs=np.zeros(1, np.int64),
            moved=np.zeros(1, np.int64),
            mean_square=np.zeros(1),
            active=np.array([1 if rule.first_interval > 0 else n_learners]),
            selected=np.zeros(1, np.int64),
            usual=np.zeros(1),
            excess=np.zeros(1),
            changed=np.zeros(1, np.int64),
        )
        form = form or choose(rule.divergence, rule.rho, rule.capacity, n_features)
        self.learners = form.new_learners(
            n_learners, n_features, rule.capacity, rule.divergence, identity
        )
        self.trust = self._new_trust(0, n_learners)
        self.memory = replay.new_memory(n_features, rule.replays)

    def check(self) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        rule, n_learners = self.rule, len(self.learners.mu)
        if not (n_learners > 0 and 1 <= rule.capacity <= self.n_features):
            raise ValueError(
                f"{n_learners} learners of rank {rule.capacity} and {self.n_features} features"
            )
        rounds.check(self.clock, rule, n_learners)
        self.form.check(self.learners, rule.divergence, rule.capacity, self.n_features)
        replay.check(self.memory, rule.replays, int(self.clock.pairs[0]))

    @property
    def form(self) -> Any:
        """The module that knows how the learners' metrics are kept."""
        return FORMS[type(self.learners)]

    def _new_trust(self, start: int, stop: int) -> Trust:
        rate, first, ratio = self.ladder
        length = first * ratio ** np.arange(start, stop, dtype=float)
        n = stop - start
        rho = np.full(n, self.rule.rho)
        if self.form is whole:
            # Its regulariser is there for change. It fades as rates do, so that over an interval
            # it costs no more than a learner's regret.
            rho *= np.minimum(1.0, np.sqrt(FADES_FROM / length))
        memory = np.zeros((n, N_MEMORY))
        return Trust(rate / np.sqrt(length), rho, length, memory, np.zeros(n), np.zeros(n))

    def observe(self, pairs: Pairs, draws: Floats) -> Floats:
        """Loss suffered on each pair before learning from it."""
        losses = np.empty(len(pairs.y))
        done = 0
        while done < len(losses):
            scratch = self.form.make_scratch(self.learners, self.n_features)
            this = make_round(len(self.learners.mu), self.n_features)
            state = self.learners, self.trust, self.clock, self.memory, self.rule
            done = observe(*state, pairs, draws, done, losses, scratch, this)
            if done < len(losses):
                self._make_room()
        return losses

    def _make_room(self) -> None:
        """Larger learners where one is full, else one more for the cover."""
        grown = self.form.grow(self.learners, self.rule.capacity)
        if grown is not self.learners:
            self.learners = grown
            return
        n_learners = len(self.learners.mu)
        # Level j is born from level j - 1: a copy of anything will do until then.
        self.learners = type(self.learners)(*(np.concatenate([a, a[-1:]]) for a in self.learners))
        new = self._new_trust(n_learners, n_learners + 1)
        self.trust = Trust(*map(np.concatenate, zip(self.trust, new, strict=True)))

    def widen(self, n_features: int, capacity: int) -> None:
        """Go on with more features, which have been 0 so far, and perhaps a larger capacity."""
        more = n_features - self.n_features
        self.learners = self.form.widen(self.learners, more)
        self.memory = replay.widen(self.memory, more)
        self.rule = self.rule._replace(capacity=capacity)
        self.n_features = n_features

    @property
    def weights(self) -> Floats:
        """Normalised weights of the active learners, those with the shortest intervals first."""
        p = np.empty(self.clock.active[0])
        weights(self.trust, self.clock, self.rule, p)
        return p

    @property
    def unit(self) -> float:
        """Square of the length in which u is measured."""
        mean_square = float(self.clock.mean_square[0])
        return mean_square / SPREAD if self.rule.scaled and mean_square > 0.0 else 1.0

    @property
    def truncated_mass(self) -> float:
        """Eigenvalue mass that the capacity has cost the first learner."""
        dropped = getattr(self.learners, "dropped", [0.0])
        return float(dropped[0]) / self.unit

    def metric(self, j: int) -> Factored:
        """Metric of learner j."""
        if hasattr(self.form, "mixture"):
            return self.mixture(np.eye(j + 1)[j])
        values, vectors, outside = self.form.metric(
            self.learners, j, self.rule.divergence, self.n_features
        )
        return Factored(values / self.unit, vectors, outside / self.unit)

    def mixture(self, p: Floats) -> Factored:
        """The weighted sum of the first learners' metrics, cut to the capacity."""
        if hasattr(self.form, "mixture"):
            values, vectors = self.form.mixture(self.learners, p, self.rule.capacity)
            return Factored(values / self.unit, vectors, 0.0)
        metrics = [self.metric(j) for j in range(len(p))]
        outside = float(sum(weight * m.outside for weight, m in zip(p, metrics, strict=True)))
        rows = np.concatenate([m.vectors for m in metrics])
        above = [weight * (m.values - m.outside) for weight, m in zip(p, metrics, strict=True)]
        lifted = np.concatenate(above)
        if outside == 0.0 and len(rows) < self.n_features:
            # Fewer directions than features: the Gram matrix of L has the eigenvalues of L'L.
            factor = np.sqrt(lifted)[:, None] * rows
            values, mixing = np.linalg.eigh(factor @ factor.T)
            vectors = mixing.T @ factor
        else:
            values, mixing = np.linalg.eigh((rows.T * lifted) @ rows)
            vectors = mixing.T
        values, vectors = values[::-1] + outside, vectors[::-1]
        n_kept = int(np.sum(values > ROUNDING * values[0])) if len(values) else 0
        if outside == 0.0:
            n_kept = min(n_kept, self.rule.capacity)
        vectors = vectors[:n_kept]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return Factored(values[:n_kept], vectors / lengths, 0.0)
