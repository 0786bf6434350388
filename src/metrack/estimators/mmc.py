"""MMC: similar pairs as near as can be while dissimilar ones stay apart."""

from typing import Any, ClassVar, Self

import numpy as np

from metrack.engine.batch.descent import minimise
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.batch import BatchLearner, Solution, dense_differences
from metrack.estimators.bases.progress import Fitting
from metrack.estimators.inputs import LabelsLike, PairBatch, TuplesLike
from metrack.estimators.inputs.settings import Seed, positive, whole

FLOOR = 1e-8  # least scatter of similar pairs in any direction, of the most


class MMC(BatchLearner):
    """Mahalanobis metric for clustering (Xing, Ng, Jordan and Russell, 2002).

    The metric of the least mean squared distance of similar pairs for which the mean distance of
    dissimilar pairs is 1 (or more, but at the best it is 1). The problem is convex; the learner
    stops when the duality gap shows that no metric can do better by more than ``tol``, relative.

    The result does not depend on the data's units, nor for the full metric on those of each
    feature.

    Parameters
    ----------
    diagonal : bool
        Learn only a weight for each feature.
    max_iter : int
        Most iterations of L-BFGS.
    tol : float
        Largest relative duality gap.
    verbose
        As in `ITML`.
    preprocessor
        As in `ITML`.
    random_state : int, RandomState or None
        Not used here: the problem has one solution.

    Attributes
    ----------
    components_ : array (rank, n_features)
        L with M = L'L.
    objective_ : float
        Mean squared distance of similar pairs.
    gap_ : float
        Relative duality gap: how much smaller ``objective_`` might be at most.
    threshold_ : float
        Distance up to which a pair is called alike, of best accuracy on the pairs learned from.
    n_iter_ : int

    Notes
    -----
    A direction in which similar pairs differ not at all could be stretched without end. It counts
    as if they differed by 1e-4 of the widest direction.

    With S the mean of uu' over similar pairs, M = S^-1/2 B S^-1/2 and B = F'F, the problem is to
    find the F of norm 1 for which the mean of |F S^-1/2 u| over dissimilar pairs is largest.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import MMC
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(400, 2, 5))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> learner = MMC().fit(pairs[:300], y[:300])
    >>> learner.score(pairs[300:], y[300:]) > 0.95
    True
    >>> bool(np.isclose(learner.pair_distance(pairs[:300])[y[:300] == -1].mean(), 1))
    True
    """

    _goal: ClassVar[str] = "the relative duality gap"

    def __init__(
        self,
        diagonal: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-4,
        verbose: int = 0,
        preprocessor: Any = None,
        random_state: Seed = None,
    ) -> None:
        self.diagonal = diagonal
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(
        self, pairs: TuplesLike, y: LabelsLike, calibration_params: dict[str, Any] | None = None
    ) -> Self:
        """Learn the metric, and calibrate the threshold, on all pairs.

        Parameters
        ----------
        pairs, y, calibration_params
            As in `ITML.fit`; there must be pairs of both kinds.
        """
        return self._fit(pairs, y, calibration_params)

    def _solve(self, batch: PairBatch, y: Floats, **options: Any) -> Solution:
        max_iter, tol = whole("max_iter", self.max_iter), positive("tol", self.tol)
        if not isinstance(self.diagonal, bool | np.bool):
            raise ValueError(f"diagonal={self.diagonal!r}; it must be True or False")
        u = dense_differences(batch)
        _needs_both_kinds(u, y)
        alike, others = u[y > 0.0], u[y < 0.0]
        problem: _Spread
        if self.diagonal:
            scatter = np.mean(alike * alike, axis=0)
            root = np.diag(np.maximum(scatter, FLOOR * scatter.max()) ** -0.5)
            problem = _DiagonalSpread(others @ root)
        else:
            scatter, vectors = np.linalg.eigh(alike.T @ alike / len(alike))
            root = (vectors * np.maximum(scatter, FLOOR * scatter[-1]) ** -0.5).T
            problem = _Spread(others @ root.T)
        with Fitting("MMC", self.verbose, max_iter) as fitting:

            def report(n_iter: int, value: float) -> bool:
                gap = problem.gap()
                fitting.report(n_iter, f"duality gap {gap:.1e}")
                return gap <= tol

            found = minimise(problem, problem.start(), max_iter, report)
        problem(found.x)
        gap = problem.gap()
        F = np.diag(found.x) if self.diagonal else found.x
        components = _principal(F @ root)
        components /= np.linalg.norm(others @ components.T, axis=1).mean()
        near = float(np.mean(np.sum((alike @ components.T) ** 2, axis=1)))
        return Solution(components, found.n_iter, gap <= tol, {"objective_": near, "gap_": gap})


def _needs_both_kinds(u: Floats, y: Floats) -> None:
    """Refuse pairs among which no similar, or no dissimilar one, tells anything.

    There are pairs of both kinds: calibration has asked for them.
    """
    differ = np.asarray(u.any(axis=1))
    for label, kind in (1.0, "similar (+1)"), (-1.0, "dissimilar (-1)"):
        if not differ[y == label].any():
            raise ValueError(
                f"every one of the {kind} pairs is a point and itself; MMC needs some whose "
                "points differ"
            )


def _principal(components: Floats) -> Floats:
    """The same metric by orthogonal rows, those that matter most first."""
    _, sizes, rows = np.linalg.svd(components, full_matrices=False)
    kept = sizes > 1e-8 * sizes[0]
    found: Floats = sizes[kept, None] * rows[kept]
    return found


class _Spread:
    """Minus the logarithm of the dissimilar pairs' mean distance at a given norm of F."""

    def __init__(self, others: Floats) -> None:
        self.others = others[others.any(axis=1)]
        self.n_features = others.shape[1]

    def start(self) -> Floats:
        return np.eye(self.n_features)

    def __call__(self, F: Floats) -> tuple[float, Floats]:
        there = self._embed(F)
        self.distances = np.maximum(np.sqrt(np.einsum("ij,ij->i", there, there)), 1e-150)
        self.square = float(np.vdot(F, F))
        total = float(self.distances.sum())
        gradient = self._gather(there / self.distances[:, None])
        # Not far from 0, where numbers are finest.
        value = np.log(np.sqrt(self.square) * len(self.others) / total)
        return value, F / self.square - gradient / total

    def gap(self) -> float:
        """By how much the square of the mean distance may still rise, relative."""
        weighted = self.others.T @ (self.others / self.distances[:, None])
        return self._gap(float(np.linalg.eigvalsh(weighted)[-1]))

    def _gap(self, steepest: float) -> float:
        # The spread of B = F'F / |F|^2 is concave; no B of trace 1 exceeds its tangent's largest.
        ratio = steepest * self.square / float(self.distances.sum())
        return max((0.5 * (ratio + 1.0)) ** 2 - 1.0, 0.0)

    def _embed(self, F: Floats) -> Floats:
        return self.others @ F.T

    def _gather(self, there: Floats) -> Floats:
        return there.T @ self.others


class _DiagonalSpread(_Spread):
    """The same for diagonal F."""

    def start(self) -> Floats:
        return np.ones(self.n_features)

    def gap(self) -> float:
        return self._gap(float(np.max((1.0 / self.distances) @ self.others**2)))

    def _embed(self, F: Floats) -> Floats:
        return self.others * F

    def _gather(self, there: Floats) -> Floats:
        summed: Floats = np.einsum("ij,ij->j", there, self.others)
        return summed
