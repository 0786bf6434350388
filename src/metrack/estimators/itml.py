"""ITML: the metric nearest to a prior that keeps pairs within bounds."""

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.datasets import make_spd_matrix
from sklearn.utils import check_random_state

from metrack.engine.batch.bregman import sweep
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.batch import BatchLearner, Solution, dense_differences
from metrack.estimators.bases.progress import Fitting
from metrack.estimators.inputs import LabelsLike, PairBatch, TuplesLike
from metrack.estimators.inputs.settings import Seed, choice, is_number, positive, whole

MOST_POINTS = 2_000  # of which distances are looked at for the bounds


class ITML(BatchLearner):
    """Information-theoretic metric learning (Davis et al., 2007).

    Of all metrics that keep similar pairs within one distance and dissimilar pairs beyond another,
    the one nearest to the prior in the LogDet divergence. A bound may be missed at the price of
    its own divergence times ``gamma``, so that there always is a solution. It is found by Bregman
    projections on one pair after another, until in a sweep over all of them the multipliers change
    by less than ``tol`` of their norm.

    The result does not depend on the data's units.

    Parameters
    ----------
    gamma : float
        Price of slack; ``numpy.inf`` for none, where the bounds can all be met.
    prior : {"identity", "covariance", "random"} or array (n_features, n_features)
        The metric to stay near: Euclidean distance, the inverse covariance of the points, a random
        one, or a positive definite matrix.
    max_iter : int
        Most sweeps.
    tol : float
    verbose : int
        0 silent, 1 a bar on a terminal if a fit takes more than a second, 2 a line a sweep.
    preprocessor : array, CSR matrix or callable, optional
        Points that pairs of row numbers refer to.
    random_state : int, RandomState or None
        For the prior "random"; the projections are deterministic.

    Attributes
    ----------
    components_ : array (n_features, n_features)
        L with M = L'L.
    bounds_ : array (2,)
        Largest distance of similar and smallest of dissimilar pairs, slack aside.
    threshold_ : float
        Distance up to which a pair is called alike, of best accuracy on the pairs learned from.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import ITML
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(400, 2, 5))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> learner = ITML().fit(pairs[:300], y[:300])
    >>> learner.score(pairs[300:], y[300:]) > 0.9
    True
    """

    _goal: ClassVar[str] = "the relative change of the multipliers"

    def __init__(
        self,
        gamma: float = 1.0,
        prior: Any = "identity",
        max_iter: int = 10_000,
        tol: float = 1e-3,
        verbose: int = 0,
        preprocessor: Any = None,
        random_state: Seed = None,
    ) -> None:
        self.gamma = gamma
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(
        self,
        pairs: TuplesLike,
        y: LabelsLike,
        bounds: Any = None,
        calibration_params: dict[str, Any] | None = None,
    ) -> Self:
        """Learn the metric, and calibrate the threshold, on all pairs.

        Parameters
        ----------
        pairs : array (n_pairs, 2, n_features), or row numbers (n_pairs, 2) with a preprocessor
        y : array (n_pairs,)
            +1 alike, -1 not alike; or 1 and 0, or booleans.
        bounds : two distances, or a row or column of them, optional
            Largest of similar, smallest of dissimilar pairs; by default the 5th and 95th percentile
            of the distances between the pairs' points, as the prior has them.
        calibration_params : dict, optional
            Arguments for `calibrate_threshold`; by default the best accuracy.
        """
        return self._fit(pairs, y, calibration_params, bounds=bounds)

    def _solve(self, batch: PairBatch, y: Floats, **options: Any) -> Solution:
        unbounded = is_number(self.gamma) and self.gamma == np.inf
        gamma = np.inf if unbounded else positive("gamma", self.gamma)
        max_iter, tol = whole("max_iter", self.max_iter), positive("tol", self.tol)
        M = _prior(self.prior, batch, self.random_state)
        bounds = _bounds(options["bounds"], batch, M)
        u = dense_differences(batch)
        differ = u.any(axis=1)  # no metric tells a point from itself
        u, signs = np.ascontiguousarray(u[differ]), y[differ]
        slacks = np.where(signs > 0.0, bounds[0] ** 2, bounds[1] ** 2)
        dual, work = np.zeros(len(u)), np.empty(batch.n_features)
        order = np.arange(batch.n_features)
        n_iter, change, size = 0, np.inf, 0.0
        with Fitting("ITML", self.verbose, max_iter) as fitting:
            while change > tol and n_iter < max_iter:
                moved = sweep(M, u, signs, slacks, dual, gamma, order, work)
                before, size = size, float(np.linalg.norm(dual))
                change = moved / (before + size) if moved > 0.0 else 0.0
                n_iter += 1
                fitting.report(n_iter, f"multipliers changed by {change:.1e}")
        values, vectors = np.linalg.eigh((M + M.T) / 2)
        components = np.sqrt(np.maximum(values, 0.0))[::-1, None] * vectors.T[::-1]
        return Solution(components, n_iter, change <= tol, {"bounds_": bounds})


def _prior(prior: Any, batch: PairBatch, random_state: Any) -> Floats:
    """The prior as a new matrix."""
    n = batch.n_features
    if isinstance(prior, str) or prior is None:
        choice("prior", prior, {"identity": 0, "covariance": 0, "random": 0})
        if prior == "identity":
            return np.eye(n)
        if prior == "random":
            return np.asarray(make_spd_matrix(n, random_state=check_random_state(random_state)))
        covariance = np.atleast_2d(np.cov(_some_points(batch), rowvar=False))
        remedy = "the points' covariance is singular: use prior='identity', or remove features"
        return np.asarray(np.linalg.inv(_definite(covariance, remedy)), dtype=np.float64)
    matrix = np.array(prior, dtype=np.float64)
    if matrix.shape != (n, n) or not np.allclose(matrix, matrix.T):
        raise ValueError(f"prior must be a symmetric matrix of shape {(n, n)}")
    return _definite(matrix, "prior must be positive definite: add a multiple of the identity")


def _definite(matrix: Floats, remedy: str) -> Floats:
    values = np.linalg.eigvalsh(matrix)
    if not values[0] > 1e-12 * abs(values[-1]):
        raise np.linalg.LinAlgError(remedy)
    return matrix


def _bounds(bounds: Any, batch: PairBatch, prior: Floats) -> Floats:
    """The two distances, by default percentiles among the pairs' points."""
    if bounds is None:
        distances = pdist(_some_points(batch) @ np.linalg.cholesky(prior))
        distances = distances[distances > 0.0]
        if distances.size == 0:
            raise ValueError("all points of the pairs are the same: there is no metric to learn")
        found: Floats = np.percentile(distances, (5.0, 95.0))
        return found
    given = np.asarray(bounds)
    if given.shape in ((1, 2), (2, 1)):
        given = given.ravel()
    if given.shape != (2,) or not all(is_number(b) and 0.0 < b < np.inf for b in given.tolist()):
        raise ValueError(f"bounds={bounds!r}; they must be two distances > 0")
    return given.astype(np.float64)


def _some_points(batch: PairBatch) -> Floats:
    """Different points of the pairs, spread evenly over them where there are many."""
    if batch.rows is None:
        points = batch.points.reshape(-1, batch.n_features)
        chosen = np.arange(len(points))
    else:
        points, chosen = batch.points, np.unique(batch.rows)
    every = np.linspace(0, len(chosen) - 1, min(len(chosen), MOST_POINTS)).astype(np.int64)
    some: Any = points[chosen[every]]
    sparse: bool = sp.issparse(some)
    return np.unique(some.toarray() if sparse else some, axis=0)
