"""The best fixed metric in hindsight: what static regret is measured against."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from metrack.checks import Floats, number, whole
from metrack.engine.numerics.losses import HINGE, LOSSES, Kind
from metrack.estimators.inputs import PairBatch, check_labels
from metrack.estimators.inputs.settings import choice
from metrack.evaluate.margins import gradient_of, loss_of

# The hinge is rounded off over this much of the shortfall, less and less: the last is what the mean
# loss may be off by, twice.
ROUNDEST, SHARPEST = 1.0, 0.01


class BestFixed(NamedTuple):
    """What `best_fixed` finds.

    Attributes
    ----------
    M : array (n_features, n_features)
    mu : float
    losses : array (n_pairs,)
        Its loss on each pair.
    objective : float
        Mean loss plus penalty.
    """

    M: Floats
    mu: float
    losses: Floats
    objective: float


class _Problem(NamedTuple):
    """Mean loss + rho tr(M) over M >= 0, mu >= 1, with differences u in units of their size."""

    u: Floats
    y: Floats
    kind: Kind
    rho: float

    def shortfalls(self, M: Floats, mu: float) -> Floats:
        q: Floats = np.einsum("ti,ti->t", self.u @ M, self.u)
        return np.where(self.y > 0.0, (1.0 - mu) + q, (1.0 + mu) - q)

    def smooth(self, s: Floats, width: float) -> tuple[float, Floats]:
        """Mean loss and slopes; the hinge is rounded off where 0 < s < width."""
        if self.kind != HINGE:
            return float(loss_of(self.kind, s).mean()), gradient_of(self.kind, s)
        slopes = np.clip(s / width, 0.0, 1.0)
        return float((slopes * (s - 0.5 * width * slopes)).mean()), slopes

    def gradient(self, slopes: Floats) -> tuple[Floats, float]:
        alpha = self.y * slopes / len(self.y)
        return (self.u.T * alpha) @ self.u, -float(alpha.sum())

    def proximal(self, M: Floats, mu: float, step: float) -> tuple[Floats, float]:
        values, vectors = np.linalg.eigh(M)
        kept = np.maximum(values - step * self.rho, 0.0)
        return (vectors * kept) @ vectors.T, max(mu, 1.0)


def best_fixed(
    pairs: ArrayLike, y: ArrayLike, loss: str = "hinge", rho: float = 0.01, n_iterations: int = 500
) -> BestFixed:
    """The metric and threshold that do best on all pairs together, had they been known.

    Minimises the mean over pairs of what a COMID step works on, loss + rho |M|_*, over M >= 0 and
    mu >= 1, by accelerated proximal gradient steps on all pairs at once. As ``scale="auto"`` does,
    it measures differences in units of their root mean square for the penalty. Without a penalty
    the best metric would grow without end where pairs can be told apart.

    It is for problems of some thousand pairs and up to some 50 features: an iteration takes an
    eigendecomposition and a pass over the pairs. The metric found is nearly the best one, not quite
    (tests hold its objective within 1 % of a convex solver's); where it falls short, the true
    static regret is larger than the one measured against it.

    Parameters
    ----------
    pairs : array (n_pairs, 2, n_features)
    y : array (n_pairs,)
    loss : str
        As in `metrack.COMID`.
    rho : float
        Strength of the nuclear norm; give the learner's own.
    n_iterations : int

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import MetricTracker
    >>> from metrack.evaluate import best_fixed, static_regret
    >>> pairs = np.random.default_rng(0).normal(size=(500, 2, 4))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> best = best_fixed(pairs, y)
    >>> int(np.argmax(np.diag(best.M)))  # the feature that matters
    0
    >>> regret = static_regret(MetricTracker().observe(pairs, y), best.losses)
    >>> regret.shape
    (500,)
    """
    batch = PairBatch(pairs, None, None)
    labels = check_labels(y, len(batch))
    kind = choice("loss", loss, LOSSES)
    u = np.asarray(batch.differences(0, len(batch)))
    unit = float(np.einsum("ti,ti->", u, u)) / len(u) or 1.0
    problem = _Problem(u / np.sqrt(unit), labels, kind, number("rho", rho))
    M, mu = _minimise(problem, whole("n_iterations", n_iterations))
    losses = loss_of(kind, problem.shortfalls(M, mu))
    objective = float(losses.mean() + problem.rho * np.trace(M))
    return BestFixed(M / unit, mu, losses, objective)


def _minimise(problem: _Problem, n_iterations: int) -> tuple[Floats, float]:
    """FISTA with backtracking and restarts (Beck and Teboulle 2009; O'Donoghue and Candès 2015)."""
    n = problem.u.shape[1]
    M, mu = np.zeros((n, n)), 1.0
    ahead, mu_ahead = M, mu
    best, lowest = (M, mu), _objective(problem, M, mu)
    momentum, step = 1.0, 1.0
    for width in np.geomspace(ROUNDEST, SHARPEST, n_iterations):
        value, slopes = problem.smooth(problem.shortfalls(ahead, mu_ahead), width)
        G, g = problem.gradient(slopes)
        step *= 3.0  # then halved until a step of this size is safe
        while True:
            step *= 0.5
            new, mu_new = problem.proximal(ahead - step * G, mu_ahead - step * g, step)
            D, d = new - ahead, mu_new - mu_ahead
            allowed = value + np.vdot(G, D) + g * d + (np.vdot(D, D) + d * d) / (2.0 * step)
            reached = problem.smooth(problem.shortfalls(new, mu_new), width)[0]
            if reached <= allowed + 1e-12 * (1.0 + abs(value)):
                break
        if np.vdot(D, new - M) + d * (mu_new - mu) < 0.0:  # the momentum leads uphill
            momentum = 1.0
        faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        push = (momentum - 1.0) / faster
        ahead, mu_ahead = new + push * (new - M), mu_new + push * (mu_new - mu)
        M, mu, momentum = new, mu_new, faster
        objective = _objective(problem, M, mu)
        if objective < lowest:
            best, lowest = (M, mu), objective
    return best


def _objective(problem: _Problem, M: Floats, mu: float) -> float:
    losses = loss_of(problem.kind, problem.shortfalls(M, mu))
    return float(losses.mean() + problem.rho * np.trace(M))
