"""The bank: J learners that see the same pairs. It owns their arrays and makes room as they grow.

COMID is a bank of one learner; SADL one on the dyadic cover, which grows as time goes by, or one of
always-on learners with different rates.
"""

from typing import NamedTuple

import numpy as np

from metrack.engine.combiners import N_MEMORY
from metrack.engine.divergences import VON_NEUMANN
from metrack.engine.kernels import Floats
from metrack.engine.rounds import SPREAD, Clock, Pairs, Rule, Trust, make_round, observe, weights
from metrack.engine.spectral import Learners, make_scratch

FRAME_FROM = 6  # a frame pays where n is so many times the capacity
ROUNDING = 1e-14  # a mixture's eigenvalues below this share of the largest are no directions
FIRST_COLUMNS = 8  # of a basis without frame; they double as the rank asks


class Factored(NamedTuple):
    """A metric M = outside (I - VV') + V diag(values) V', in the units of the data."""

    values: Floats
    vectors: Floats  # V', (rank, n_features)
    outside: float

    def matrix(self) -> Floats:
        """M itself."""
        n = self.vectors.shape[1]
        above = (self.vectors.T * (self.values - self.outside)) @ self.vectors
        return above + self.outside * np.eye(n)


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
    ) -> None:
        self.n_features = n_features
        self.rule = rule
        self.ladder = rate, first, ratio
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
        self.learners = _new_learners(n_learners, n_features, rule, identity)
        self.trust = self._new_trust(0, n_learners)

    def _new_trust(self, start: int, stop: int) -> Trust:
        rate, first, ratio = self.ladder
        length = first * ratio ** np.arange(start, stop, dtype=float)
        n = stop - start
        memory = np.zeros((n, N_MEMORY))
        return Trust(rate / np.sqrt(length), length, memory, p=np.zeros(n), losses=np.zeros(n))

    def observe(self, pairs: Pairs, draws: Floats) -> Floats:
        """Loss suffered on each pair before learning from it."""
        losses = np.empty(len(pairs.y))
        done = 0
        while done < len(losses):
            scratch = make_scratch(self.learners, self.n_features)
            this = make_round(len(self.learners.rank), self.n_features)
            state = self.learners, self.trust, self.clock, self.rule
            done = observe(*state, pairs, draws, done, losses, scratch, this)
            if done < len(losses):
                self._make_room()
        return losses

    def _make_room(self) -> None:
        """One more learner where the cover asks for it, else twice the columns."""
        learners = self.learners
        n_learners, columns = learners.spectrum.shape
        if learners.rank.max() < columns - 1 or columns - 1 == self.rule.capacity:
            # Level j is born from level j - 1: a copy of anything will do until then.
            self.learners = Learners(*(np.concatenate([a, a[-1:]]) for a in learners))
            new = self._new_trust(n_learners, n_learners + 1)
            self.trust = Trust(*map(np.concatenate, zip(self.trust, new, strict=True)))
            return
        more = min(2 * (columns - 1), self.rule.capacity) + 1 - columns
        self.learners = learners._replace(
            basis=np.pad(learners.basis, ((0, 0), (0, more), (0, 0))),
            spectrum=np.pad(learners.spectrum, ((0, 0), (0, more))),
        )

    def widen(self, n_features: int, capacity: int) -> None:
        """Go on with more features, and perhaps a larger capacity.

        Exact: where a feature has always been 0, no basis has a part in it.
        """
        learners, more = self.learners, n_features - self.n_features
        if learners.frame.shape[1] > 0:
            frame = np.pad(learners.frame, ((0, 0), (0, more), (0, 0)))
            self.learners = learners._replace(frame=frame)
        else:
            basis = np.pad(learners.basis, ((0, 0), (0, 0), (0, more)))
            self.learners = learners._replace(basis=basis)
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

    def metric(self, j: int) -> Factored:
        """Metric of learner j."""
        learners, rank = self.learners, self.learners.rank[j]
        vectors = learners.basis[j, :rank]
        if learners.frame.shape[1] > 0:
            width = learners.width[j]
            vectors = vectors[:, :width] @ learners.frame[j, :, :width].T
        values, outside = learners.spectrum[j, :rank], learners.outside[j]
        if self.rule.divergence == VON_NEUMANN:
            values, outside = np.exp(values), np.exp(outside)
        if rank == self.n_features:
            outside = 0.0  # nothing is left out there
        return Factored(values / self.unit, vectors.copy(), float(outside / self.unit))

    def mixture(self, p: Floats) -> Factored:
        """The weighted sum of the first learners' metrics, cut to the capacity."""
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


def _new_learners(n_learners: int, n_features: int, rule: Rule, identity: bool) -> Learners:
    capacity = rule.capacity
    has_frame = n_features >= FRAME_FROM * capacity
    columns = capacity if has_frame else min(capacity, FIRST_COLUMNS)
    widest = 2 * capacity if has_frame else 0
    one = 0.0 if rule.divergence == VON_NEUMANN else 1.0
    return Learners(
        frame=np.zeros((n_learners, n_features if has_frame else 0, widest)),
        width=np.zeros(n_learners, np.int64),
        basis=np.zeros((n_learners, columns + 1, widest if has_frame else n_features)),
        spectrum=np.zeros((n_learners, columns + 1)),
        rank=np.zeros(n_learners, np.int64),
        outside=np.full(n_learners, one if identity else 0.0),
        mu=np.ones(n_learners),
        dropped=np.zeros(n_learners),
        age=np.zeros(n_learners, np.int64),
    )
