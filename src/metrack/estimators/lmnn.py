"""LMNN: neighbours of the same class near, others beyond a margin."""

from collections import deque
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from metrack.engine.batch.descent import minimise
from metrack.engine.batch.impostors import Impostors, nearest_of_class
from metrack.engine.numerics.kernels import Floats
from metrack.estimators.bases.linear import LinearEmbedding
from metrack.estimators.bases.progress import Fitting, warn_not_converged
from metrack.estimators.bases.unchanged import unchanged_on_error
from metrack.estimators.inputs import (
    LabelsLike,
    PointsLike,
    are_ids,
    check_labelled,
    check_preprocessor,
    points_of,
    take_names,
)
from metrack.estimators.inputs.settings import (
    Seed,
    at_most_features,
    choice,
    is_number,
    positive,
    whole,
)
from metrack.estimators.reading.alignment import orthogonal

INITS = dict.fromkeys(("auto", "identity", "pca", "lda", "random"), 0)
START = 4.0  # mean squared distance of targets at the start, in margins
WINDOW = 10  # iterations over which progress is judged
FLOOR = 1e-8  # least variance in any direction, of the most: what is below is not stretched


class LMNN(LinearEmbedding):
    """Large-margin nearest neighbours (Weinberger and Saul, 2009).

    Every point has targets, the nearest points of its class in Euclidean distance. The metric pulls
    targets j near to their point i, and pushes impostors l, points of other classes that are not
    farther than a target by a margin of 1, away. With squared distances d it minimises

        regularization * sum d_ij + (1 - regularization) * sum max(0, 1 + d_ij - d_il)

    over L, M = L'L, by L-BFGS from a start that does not depend on the data's units. It stops when
    the last 10 iterations together have lowered the objective by less than ``tol``, relative. All
    values are exact; at most a block of distances is held at a time.

    Parameters
    ----------
    n_neighbors : int
        Targets of each point; fewer where its class has not so many.
    n_components : int, optional
        Rows of L: dimensions of the embedding. By default as many as features; then the problem is
        convex in M.
    regularization : float in (0, 1)
        Weight of the pull against that of the push.
    init : {"auto", "identity", "pca", "lda", "random"} or array (n_components, n_features)
        Where L starts, up to its size for the named ones. "auto" takes "lda" where it has as many
        directions as ``n_components``, else "pca", and "identity" where none is left out.
    warm_start : bool
        Start from the last fit, if it had as many features and components.
    max_iter : int
    tol : float
    verbose
        As in `ITML`.
    preprocessor : array, CSR matrix or callable, optional
        Points that row numbers refer to; a callable takes any ids.
    random_state : int, RandomState or None
        For "pca" and "random".

    Attributes
    ----------
    components_ : array (n_components, n_features)
        L; its rows are orthogonal, those that matter most first.
    objective_ : float
    n_iter_ : int
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    See Also
    --------
    FromTransformer : Gives it a threshold, and with it predictions for pairs.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from metrack import LMNN
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(LMNN(n_components=2), KNeighborsClassifier(3))
    >>> bool(cross_val_score(model, X, y).mean() > 0.9)
    True
    """

    def __init__(
        self,
        n_neighbors: int = 3,
        n_components: int | None = None,
        regularization: float = 0.5,
        init: Any = "auto",
        warm_start: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-6,
        verbose: int = 0,
        preprocessor: Any = None,
        random_state: Seed = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.regularization = regularization
        self.init = init
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(self, X: PointsLike, y: LabelsLike) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array (n_points, n_features), or row numbers (n_points,) with a preprocessor
        y : array (n_points,)
            Class labels of any kind; two classes or more, one of them with two points or more.
        """
        with unchanged_on_error(self):
            return self._fit(X, y)

    def _fit(self, X: PointsLike, y: LabelsLike) -> Self:
        preprocessor = check_preprocessor(self.preprocessor)
        by_id = are_ids(X, preprocessor)
        if by_id:
            points = points_of(X, preprocessor, None)
            X = points.toarray() if sp.issparse(points) else points
        data, y = check_labelled(self, X, y, ensure_min_samples=2)
        if by_id:
            take_names(self, self.preprocessor)
        codes = np.unique(y, return_inverse=True)[1]
        counts = np.bincount(codes)
        if counts.size < 2 or counts.max() < 2:
            raise ValueError(
                f"y has {counts.size} class{'es' if counts.size > 1 else ''} of at most "
                f"{counts.max()} points; LMNN needs two classes, and one of two points"
            )
        pull = self.regularization
        if not (is_number(pull) and 0.0 < pull < 1.0):
            raise ValueError(f"regularization={pull!r}; it must be a number between 0 and 1")
        max_iter, tol = whole("max_iter", self.max_iter), positive("tol", self.tol)
        order = np.argsort(codes, kind="stable")
        points = data[order] - data.mean(axis=0)
        spread = float(np.sqrt(np.mean(points * points))) or 1.0
        points /= spread
        ends = np.cumsum(counts)
        targets = nearest_of_class(points, ends, whole("n_neighbors", self.n_neighbors))
        objective = Impostors(points, ends, *targets, pull)
        stretch, back = _whitening(points)
        start = self._start(points, codes[order], objective, spread)

        def whitened(V: Floats) -> tuple[float, Floats]:
            value, gradient = objective(V @ stretch)
            return value, gradient @ stretch.T

        with Fitting("LMNN", self.verbose, max_iter) as fitting:
            values: deque[float] = deque(maxlen=WINDOW + 1)

            def report(n_iter: int, value: float) -> bool:
                words = f"objective {value:.6g}, {objective.n_active} pairs too near"
                fitting.report(n_iter, words)
                values.append(value)
                return len(values) > WINDOW and values[0] - value <= tol * abs(value)

            found = minimise(whitened, start @ back, max_iter, report)
        self.components_ = orthogonal(found.x @ stretch / spread)
        self.objective_, self.n_iter_ = found.value, found.n_iter
        self.preprocessor_ = preprocessor
        if not found.done and found.n_iter == max_iter:  # else there is nothing left to gain
            goal, remedy = "the relative gain of 10 iterations", ", or lower n_components"
            warn_not_converged("LMNN", max_iter, max_iter, goal, tol, remedy)
        return self

    def _embed(self, X: PointsLike) -> Floats:
        if not are_ids(X, self.preprocessor_):
            types = [np.float64, np.float32]
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=types)
        return super()._embed(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _start(self, points: Floats, codes: Any, objective: Impostors, spread: float) -> Floats:
        """L to start from, for points in units of their spread."""
        n_features = points.shape[1]
        width = at_most_features(self.n_components, n_features)
        rng = check_random_state(self.random_state)
        last = getattr(self, "components_", np.empty(0))
        if self.warm_start and last.shape == (width, n_features):
            # What the last fit had given up may count again.
            turn, sizes, rows = np.linalg.svd(last * spread, full_matrices=False)
            warm: Floats = (turn * np.maximum(sizes, 0.01 * sizes[0])) @ rows
            return warm
        if not isinstance(self.init, str):
            given = np.array(self.init, dtype=np.float64)
            if given.shape != (width, n_features) or not np.isfinite(given).all():
                raise ValueError(
                    f"init must be one of {', '.join(map(repr, INITS))}, or finite numbers of "
                    f"shape {(width, n_features)}"
                )
            return given * spread
        choice("init", self.init, INITS)
        directions = _directions(self.init, width, points, codes, rng)
        i = np.repeat(np.arange(len(points)), objective.n_targets)
        j = objective.targets[np.arange(objective.targets.shape[1]) < objective.n_targets[:, None]]
        apart = (points @ directions.T)[i] - (points @ directions.T)[j]
        mean = float(np.mean(np.sum(apart * apart, axis=1)))
        scaled: Floats = directions * np.sqrt(START / mean) if mean > 0.0 else directions
        return scaled


def _whitening(points: Floats) -> tuple[Floats, Floats]:
    """A matrix that makes features uncorrelated and of variance 1, and its inverse.

    Descent goes by the result, so that features of very different sizes do not slow it down.
    """
    sizes = np.sqrt(np.mean(points * points, axis=0))
    sizes[sizes == 0.0] = 1.0
    scaled = points / sizes
    variances, vectors = np.linalg.eigh(scaled.T @ scaled / len(points))
    roots = np.sqrt(np.maximum(variances, FLOOR * max(variances[-1], 1.0)))
    return ((vectors / roots) @ vectors.T) / sizes, sizes[:, None] * ((vectors * roots) @ vectors.T)


def _directions(init: str, width: int, points: Floats, codes: Any, rng: Any) -> Floats:
    n_classes, (n_points, n_features) = codes[-1] + 1, points.shape
    most = min(n_features, n_classes - 1)
    if init == "auto":
        if width <= most and n_points > n_classes:
            init = "lda"
        else:
            init = "pca" if width < min(n_features, n_points) else "identity"
    if init == "identity":
        return np.eye(width, n_features)
    if init == "random":
        return np.asarray(rng.normal(size=(width, n_features)))
    if init == "pca":
        if width > n_points:
            raise ValueError(
                f"init='pca' has no more than {n_points} directions, one a point, and "
                f"n_components={width}; use init='identity'"
            )
        return np.asarray(PCA(width, random_state=rng).fit(points).components_)
    if width > most:
        raise ValueError(
            f"init='lda' has no more than {most} directions, one fewer than classes, and "
            f"n_components={width}; use init='pca'"
        )
    lda = LinearDiscriminantAnalysis(n_components=width).fit(points, codes)
    found = np.asarray(lda.scalings_.T[:width])
    if len(found) < width:  # classes whose centres lie on a line or a plane
        found = np.vstack([found, np.eye(width - len(found), n_features)])
    return found
