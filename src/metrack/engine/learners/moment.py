"""A bank of moment learners: metrics in closed form, from covariances of similar and other pairs.

Differences of similar pairs have a covariance S, those of dissimilar ones D. Were both normal, the
form that tells them apart best would be S^-1 - D^-1 (KISSME; Koestinger et al., 2012). It needs no
steps and few pairs, if one does not believe all that these show:

- S and D forget exponentially. Far pairs count less, by 1 / (1 + |u|^2 / its mean), so that heavy
  tails do not rule them.
- S, from N pairs, is shrunk to tI, t its mean eigenvalue, by min(1, n / N) of the way.
- On directions B with B'SB = I along which D is larger by l, S^-1 - D^-1 is l / (1 + l). But two
  covariances that are the same seem to differ too: where S is I, the eigenvalues of D - S fill
  Wigner's semicircle, up to 2 sqrt(n / N_S + n / N_D). So l is lowered by most of that.

Another learner of the same covariances takes tI for S: that needs fewer pairs, and is right where
points of a class differ alike in all directions. To each form plain distance is added, a little, so
that no direction is lost. Metrics are found anew at fixed counts of pairs: calls of any sizes lead
to the same state. In between are twice as many pairs as features or more: a pair costs O(n^2).
On a basis, covariances are those of its first directions; beyond them there is plain distance.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

import numpy as np
from scipy.linalg import eigh

from metrack.engine.learners.always_on import AlwaysOnBank
from metrack.engine.learners.bank import Predictions, Row
from metrack.engine.learners.blocks import block_of
from metrack.engine.learners.calibration import MEMORY, calibrate, scales
from metrack.engine.learners.replay import Material, last_pairs
from metrack.engine.numerics.kernels import Floats, kernel
from metrack.engine.numerics.pairs import Chunk, difference, form, rest
from metrack.engine.numerics.records import floats

PLAIN = 0.01  # of plain distance, added to each form: less, and one that comes up is a jump
FIRST, OFTEN = 8, 64  # pairs: when metrics are found first; then no more often
PER_FEATURE = 2  # pairs between renewals: a pair's share of an eigenproblem stays below its O(n^2)
NOISE = 0.7  # of the semicircle's radius: by all of it, weak directions would be lost
LEAST = 1e-9  # of D's mean eigenvalue: that of S is no less
ROUNDING = 1e-5  # of the largest eigenvalue; states may be in single precision
FORMS = 2  # learners of each memory: with S as it is, and with tI


class Covariances(NamedTuple):
    """What K memories hold: sums over similar, then over dissimilar pairs, forgetting."""

    scatter: Annotated[Floats, floats("K", 2, "n", "n")]  # of uu', far ones counted less
    pairs: Annotated[Floats, floats("K", 2, least=0.0)]  # of weights
    squares: Annotated[Floats, floats("K", 2, least=0.0)]  # of squared weights
    length: Annotated[Floats, floats("K", least=0.0)]  # of |u|^2, over all pairs
    metric: Annotated[Floats, floats("J", "n", "n")]  # of each learner, since the last renewal


class MomentBank(AlwaysOnBank):
    """Learners of covariances, two of each memory.

    From some time on, metrics are found anew after ``every`` pairs, or twice as many as there are
    features; a power of 2, if need be the next one.
    """

    NEEDS = ("memory",)
    name = "moment"

    def __init__(self, n_features: int, memory: Floats, every: int = OFTEN) -> None:
        super().__init__(n_features, FORMS * len(memory))
        self.memory = memory
        self.every = every
        K, n = len(memory), n_features
        self.learners = Covariances(
            np.zeros((K, 2, n, n)),
            np.zeros((K, 2)),
            np.zeros((K, 2)),
            np.zeros(K),
            np.tile(np.eye(n), (FORMS * K, 1, 1)),
        )

    @classmethod
    def of_rows(cls, rows: Sequence[Row], n_features: int) -> Self:
        """A row's memory is that of its covariances; it makes two learners, one for each form."""
        return cls(n_features, np.array([row.memory for row in rows], dtype=float))

    @property
    def lengths(self) -> Floats:
        """Memory length of each learner."""
        return np.repeat(self.memory, FORMS)

    @property
    def learning_rates(self) -> Floats:
        """The share of the latest pair in a covariance."""
        return 1.0 / self.lengths

    @property
    def recent(self) -> int:
        """How many of the last pairs must be kept: the most between two renewals."""
        return 1 << (max(self.every, PER_FEATURE * self.n_features) - 1).bit_length()

    def learn(self, material: Material, predictions: Predictions) -> None:
        """Predict and learn a chunk, block by block."""
        chunk, full, done = material.chunk, np.zeros(self.n_features), 0
        while done < len(chunk.y):
            begin, end = block_of(chunk.seen + done, self.recent, FIRST)
            stop = min(end - chunk.seen, len(chunk.y))
            predict(self.learners.metric, chunk, done, stop, predictions.q, full)
            done = stop
            if chunk.seen + done == end:
                u, y, _ = last_pairs(material, done, end - begin)
                self._add(u[:, : self.n_features], y)
                self._find_metrics()
        calibrate(self.calibration, predictions, chunk.y, MEMORY)

    def _add(self, u: Floats, y: Floats) -> None:
        """Add pairs to the covariances; those of weight below 1 make them forget less."""
        own, weight, norm2 = self.learners, np.abs(y), np.einsum("ij,ij->i", u, u)
        fades = np.minimum(weight, 1.0)
        later = fades.sum() - np.cumsum(fades)
        for k, kept in enumerate(1.0 - 1.0 / self.memory):
            p, decay = weight * kept**later, kept ** fades.sum()
            own.length[k] = decay * own.length[k] + p @ norm2
            for i, those in enumerate((y > 0.0, y < 0.0)):
                own.pairs[k, i] = decay * own.pairs[k, i] + p[those].sum()
                own.squares[k, i] = decay**2 * own.squares[k, i] + p[those] @ p[those]
            far = norm2 * (own.pairs[k].sum() / own.length[k]) if own.length[k] > 0.0 else norm2
            p = p / (1.0 + far)
            for i, those in enumerate((y > 0.0, y < 0.0)):
                own.scatter[k, i] *= decay
                own.scatter[k, i] += (u[those] * p[those, None]).T @ u[those]

    def _find_metrics(self) -> None:
        own = self.learners
        for k, pairs in enumerate(own.pairs):
            if pairs.min() >= 1.0:
                S, D = own.scatter[k] / pairs[:, None, None]
                for j, found in enumerate(forms(S, D, pairs**2 / own.squares[k]), FORMS * k):
                    own.metric[j] = found + PLAIN * np.eye(len(S))

    def matrix(self, p: Floats) -> tuple[Floats, float]:
        """The weighted sum of the learners' metrics: on their directions, and beyond them."""
        weights = p * scales(self.calibration)
        found: Floats = np.tensordot(weights, self.learners.metric, 1)
        return found, PLAIN * float(weights.sum())

    def change_basis(self, old: "MomentBank", turn: Floats) -> None:
        """Go on from what a bank has learned, with other directions; see `Bank`."""
        kept = turn[: old.n_features, : self.n_features]
        found, plain = old.learners.metric - PLAIN * np.eye(old.n_features), np.eye(kept.shape[1])
        self.learners = old.learners._replace(
            scatter=kept.T @ old.learners.scatter @ kept,
            metric=kept.T @ found @ kept + PLAIN * plain,
        )
        self.calibration = old.calibration

    def continue_from(self, old: "MomentBank") -> None:
        """Go on from what a bank has learned, with perhaps fewer features."""
        more, new = (0, self.n_features - old.n_features), range(old.n_features, self.n_features)
        scatter = np.pad(old.learners.scatter, ((0, 0), (0, 0), more, more))
        metric = np.pad(old.learners.metric, ((0, 0), more, more))
        metric[:, new, new] = PLAIN
        self.learners = old.learners._replace(scatter=scatter, metric=metric)
        self.calibration = old.calibration

    def check(self, n_features: int) -> None:
        """Refuse a state that no stream can have led to; all records hold what they declare."""
        super().check(n_features)
        n_memories, n_learners = len(self.memory), len(self.learners.metric)
        if len(self.learners.pairs) != n_memories or n_learners != FORMS * n_memories:
            raise ValueError(f"{n_memories} memories for {n_learners} moment learners")
        values = np.linalg.eigvalsh(self.learners.scatter)
        if (values[..., 0] < -ROUNDING * values[..., -1]).any():
            raise ValueError("a scatter of moment learners has negative eigenvalues")


def forms(S: Floats, D: Floats, N: Floats) -> tuple[Floats, Floats]:
    """What two covariances, of so many pairs each, tell: with S as it is, and with tI."""
    n = len(S)
    t = max(float(np.trace(S)), LEAST * float(np.trace(D))) / n
    if t == 0.0:
        return np.zeros((n, n)), np.zeros((n, n))
    share = min(1.0, n / N[0])
    shrunk = (1.0 - share) * S / t + share * np.eye(n)
    larger, noise = (D - S) / t, NOISE * radius(n, N)
    return _form(larger, shrunk, noise), _form(larger, None, noise)


def radius(n: int, N: Floats) -> float:
    """By how much two covariances of n features seem to differ, if they are both I."""
    return 2.0 * float(np.sqrt((n / N).sum()))


def _form(larger: Floats, S: Floats | None, noise: float) -> Floats:
    """What counts along directions in which D is larger than S, or I, by more than noise."""
    values, directions = eigh(larger, S)
    above = np.maximum(values - noise, 0.0)
    found: Floats = (directions * (above / (1.0 + above))) @ directions.T
    return found


@kernel
def predict(metric: Floats, chunk: Chunk, start: int, stop: int, q: Floats, full: Floats) -> None:
    """Squared distances of some rows of a chunk; ``full`` is working memory."""
    for row in range(start, stop):
        u = difference(chunk, row, full)
        beyond = PLAIN * rest(chunk.whole, row, u.norm2)
        for j in range(len(metric)):
            q[row, j] = form(metric[j], u) + beyond
