"""The batch methods against plain references, and what all of them promise."""

import copy
import io
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import estimator_checks, get_tags

from metrack import ITML, LMNN, MMC, FromLabels, FromTransformer
from metrack.engine.batch.impostors import Impostors, nearest_of_class
from metrack.estimators.bases import progress
from metrack.estimators.choosing.constraints import pairs_from_labels, triplets_from_labels
from tests.estimators.learners import make_stream
from tests.estimators.test_bad_input import BAD_PAIRS, BAD_Y, GOOD_Y, NOT_POSITIVE, NOT_WHOLE, N
from tests.estimators.test_sklearn import NEED_NO_DATA
from tests.reference import batch as plain


def clusters(n_points=60, n_features=4, n_classes=3, seed=0, noise=1.0):
    """Classes that differ in the first features; the rest is noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_points)
    X = noise * rng.normal(size=(n_points, n_features))
    X[np.arange(n_points), y % n_features] += 3.0
    return X, y


# LMNN


def in_order(X, y):
    order = np.argsort(y, kind="stable")
    return np.ascontiguousarray(X[order]), y[order], np.cumsum(np.bincount(y))


@pytest.mark.parametrize("n_neighbors", [1, 3, 20])
@pytest.mark.parametrize("most", [10_000_000, 50])  # near pairs are kept, or found each time
@pytest.mark.parametrize("rank", [4, 2])
def test_lmnn_objective_and_slope(n_neighbors, most, rank):
    X, y = clusters(40)
    y[:7] = 3  # classes smaller than n_neighbors
    y[7] = 4  # one point alone has no targets, and is an impostor all the same
    X, y, ends = in_order(X, y)
    targets, n_targets = nearest_of_class(X, ends, n_neighbors)
    expected = plain.lmnn_targets(X, y, n_neighbors)
    for i in range(len(X)):
        assert set(targets[i, : n_targets[i]]) == set(expected[i])
    objective = Impostors(X, ends, targets, n_targets, 0.3, most)
    rng = np.random.default_rng(1)
    L = rng.normal(size=(rank, 4))
    sizes = [0.5] * 3 + [0.001] * 20 + [0.02] * 20  # far, then near enough to keep pairs
    for size in sizes:
        L = L + size * rng.normal(size=L.shape)
        value, slope = objective(L)
        plain_value, gradient = plain.lmnn(L.T @ L, X, y, expected, 0.3)
        assert value == pytest.approx(plain_value, rel=1e-12)
        assert_allclose(slope, 2 * L @ gradient, atol=1e-10 * np.abs(slope).max())
    assert (objective.n_searches < len(sizes)) == (most > 50)
    for k in np.ndindex(L.shape):
        step = np.zeros_like(L)
        step[k] = 1e-6
        by_difference = (objective(L + step)[0] - objective(L - step)[0]) / 2e-6
        assert slope[k] == pytest.approx(by_difference, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("pull", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lmnn_is_at_or_below_projected_gradient(pull, seed):
    X, y = clusters(50, seed=seed)
    learner = LMNN(regularization=pull, tol=1e-8, max_iter=3000).fit(X, y)
    targets = plain.lmnn_targets(X, y, 3)
    reached = plain.lmnn_by_projected_gradient(X, y, targets, pull, 400)
    assert learner.objective_ <= reached * (1 + 2e-3)
    assert learner.objective_ > 0.98 * reached  # which is not far from the least
    M = learner.get_mahalanobis_matrix()
    assert learner.objective_ == pytest.approx(plain.lmnn(M, X, y, targets, pull)[0], rel=1e-9)


def test_lmnn_finds_the_same_from_everywhere():
    X, y = clusters(80)
    values = [
        LMNN(init=init, tol=1e-8, max_iter=3000, random_state=0).fit(X, y).objective_
        for init in ("auto", "pca", "random", np.diag([9.0, 1.0, 0.1, 3.0]))
    ]
    assert_allclose(values, values[0], rtol=1e-4)


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_lmnn_of_low_rank(n_components):
    X, y = clusters(300, 20)
    X[:, 5:] *= 3.0  # noise that drowns the rest
    learner = LMNN(n_components=n_components).fit(X, y)
    L = learner.components_
    assert L.shape == (n_components, 20)
    gram = L @ L.T
    assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10 * gram.max())
    assert (np.diff(np.diag(gram)) <= 0.0).all()
    assert learner.transform(X).shape == (300, n_components)
    assert len(learner.get_feature_names_out()) == n_components
    test, test_y = clusters(300, 20, seed=1)
    test[:, 5:] *= 3.0
    euclidean = KNeighborsClassifier().fit(X, y).score(test, test_y)
    neighbours = KNeighborsClassifier().fit(learner.transform(X), y)
    assert neighbours.score(learner.transform(test), test_y) > euclidean + 0.1


def test_lmnn_read_outs():
    X, y = clusters()
    learner = LMNN().fit(X, y)
    pairs = X[np.random.default_rng(0).integers(60, size=(30, 2))]
    x, z = learner.transform(pairs[:, 0]), learner.transform(pairs[:, 1])
    apart = np.linalg.norm(x - z, axis=1)
    assert_allclose(learner.pair_distance(pairs), apart, atol=1e-12)
    metric = learner.get_metric()
    assert_allclose([metric(*pair) for pair in pairs], apart, atol=1e-12)
    assert not hasattr(learner, "predict")  # that takes a threshold: FromTransformer has one


def test_lmnn_units_do_not_matter():
    X, y = clusters(200, 6)
    learner = LMNN().fit(X, y)
    for other in LMNN().fit(1024 * X, y), LMNN().fit(1e-3 * X + 50.0, y):
        assert other.objective_ == pytest.approx(learner.objective_, rel=1e-3)  # of a sum of kinks


def test_lmnn_features_of_very_different_sizes():
    X, y = clusters(300, 8)
    learner = LMNN().fit(X * np.logspace(-4, 4, 8), y)
    assert learner.n_iter_ < 300


def test_lmnn_warm_start():
    X, y = clusters(400, 10)
    learner = LMNN(warm_start=True)
    cold = learner.fit(X, y).n_iter_
    best = learner.objective_
    assert learner.fit(X, y).n_iter_ <= cold
    assert learner.objective_ == pytest.approx(best, rel=1e-5)
    # The question changes: what the last fit gave up is found again.
    turned = X[:, ::-1]
    fresh = LMNN().fit(turned, y).objective_
    assert learner.fit(turned, y).objective_ == pytest.approx(fresh, rel=1e-4)
    learner.fit(X[:, :5], y)  # other features: nothing to start from
    assert learner.components_.shape == (5, 5)


def test_lmnn_holds_no_matrix_of_all_distances():
    X, y = clusters(6000, 5)
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        LMNN(max_iter=3).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 6000 * 8 / 4


def test_lmnn_of_equal_points():
    X = np.repeat(np.eye(2), 5, axis=0)
    learner = LMNN().fit(X, np.repeat([0, 1], 5))
    assert np.isfinite(learner.components_).all()
    assert learner.pair_distance([X[[0, 5]]])[0] > 0.5


LMNN_ERRORS = [
    ({"n_neighbors": 0}, "n_neighbors=0; it must be a whole number"),
    ({"n_components": 5}, "n_components=5; there are only 4 features"),
    ({"n_components": 1.5}, "n_components=1.5; it must be"),
    ({"regularization": 1.0}, "regularization=1.0; it must be a number between 0 and 1"),
    ({"regularization": None}, "regularization=None; it must be a number"),
    ({"init": "best"}, "init='best'; choose one of 'auto', 'identity'"),
    ({"init": np.eye(3)}, r"init must be .* of shape \(4, 4\)"),
    ({"init": np.full((4, 4), np.nan)}, r"init must be .* finite numbers of shape \(4, 4\)"),
    ({"init": "lda"}, "init='lda' has no more than 2 directions"),
    ({"max_iter": 0}, "max_iter=0; it must be a whole number"),
    ({"tol": 0.0}, "tol=0.0; it must be a number > 0"),
    ({"verbose": -1}, "verbose=-1; it must be a number >= 0"),
    ({"random_state": "a"}, "cannot be used to seed"),
]


@pytest.mark.parametrize(("settings", "words"), LMNN_ERRORS)
def test_lmnn_settings(settings, words):
    X, y = clusters()
    learner = LMNN().fit(X, y)
    before = state(learner)
    with pytest.raises(ValueError, match=words):
        learner.set_params(**settings).fit(X, y)
    assert state(learner) == before


@pytest.mark.parametrize("y", [np.zeros(60, int), np.arange(60)])
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_lmnn_needs_classes(y):
    with pytest.raises(ValueError, match="LMNN needs two classes, and one of two points"):
        LMNN().fit(clusters()[0], y)


@estimator_checks.parametrize_with_checks(
    [
        LMNN(),
        LMNN(n_components=1),
        FromLabels(ITML(verbose=0)),
        FromLabels(MMC()),
        FromLabels(MMC(diagonal=True)),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ITML


def few_pairs(n_pairs=8, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n_pairs, 2, n_features))
    return pairs, np.where(np.arange(n_pairs) % 2, 1, -1), pairs[:, 0] - pairs[:, 1]


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_itml_is_the_bregman_projection(gamma, seed):
    pairs, y, u = few_pairs(seed=seed)
    bounds = np.array([1.0, 3.0])
    learner = ITML(gamma=gamma, tol=1e-10, max_iter=100_000).fit(pairs, y, bounds)
    expected = plain.itml(np.eye(3), u, y, bounds, gamma)
    assert_allclose(learner.get_mahalanobis_matrix(), expected, atol=1e-4 * np.abs(expected).max())
    assert_array_equal(learner.bounds_, bounds)


def test_itml_without_slack():
    pairs, y, u = few_pairs(4, 4)
    bounds = np.array([1.0, 3.0])
    learner = ITML(gamma=np.inf, tol=1e-10, max_iter=100_000).fit(pairs, y, bounds)
    expected = plain.itml(np.eye(4), u, y, bounds, np.inf)
    assert_allclose(learner.get_mahalanobis_matrix(), expected, atol=1e-4 * np.abs(expected).max())


def test_itml_stays_near_the_prior():
    pairs, y, u = few_pairs()
    prior = np.diag([4.0, 1.0, 0.25]) + 0.1
    bounds = np.array([1.0, 3.0])
    learner = ITML(prior=prior, tol=1e-10, max_iter=100_000).fit(pairs, y, bounds)
    expected = plain.itml(prior, u, y, bounds, 1.0)
    assert_allclose(learner.get_mahalanobis_matrix(), expected, atol=1e-4 * np.abs(expected).max())
    learner.set_params(gamma=1e-9).fit(pairs, y)  # slack costs nothing
    assert_allclose(learner.get_mahalanobis_matrix(), prior, atol=1e-6)
    learner.set_params(prior="covariance").fit(pairs, y)
    inverse = np.linalg.inv(np.cov(pairs.reshape(-1, 3), rowvar=False))
    assert_allclose(learner.get_mahalanobis_matrix(), inverse, atol=1e-6)


def test_itml_meets_its_constraints_on_separable_data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.repeat([0, 1], 30)
    X[:, 0] = 0.1 * X[:, 0] + 4 * y
    rows, labels = pairs_from_labels(y, 200, 0)
    learner = ITML(gamma=np.inf, preprocessor=X, max_iter=50_000, tol=1e-6)
    distances = learner.fit(rows, labels, bounds=[1.0, 2.0]).pair_distance(rows)
    assert distances[labels > 0].max() <= 1.0 + 1e-3
    assert distances[labels < 0].min() >= 2.0 - 1e-3
    assert (learner.predict(rows) == labels).all()


def test_itml_bounds_are_percentiles():
    pairs, y, _ = few_pairs(40)
    points = pairs.reshape(-1, 3)
    apart = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(80, 1)]
    assert_allclose(ITML().fit(pairs, y).bounds_, np.percentile(apart, (5, 95)))


@pytest.mark.parametrize("bounds", [[0.0, 1.0], [1.0], [1.0, np.nan], "ab", [1.0, 2.0, 3.0]])
def test_itml_refuses_bounds(bounds):
    pairs, y, _ = few_pairs()
    with pytest.raises(ValueError, match="they must be two distances > 0"):
        ITML().fit(pairs, y, bounds)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("chance", "prior='chance'; choose one of 'identity', 'covariance', 'random'"),
        (np.eye(2), r"prior must be a symmetric matrix of shape \(3, 3\)"),
        (np.triu(np.ones((3, 3))), "prior must be a symmetric matrix"),
        (np.zeros((3, 3)), "prior must be positive definite: add"),
    ],
)
def test_itml_refuses_priors(prior, words):
    pairs, y, _ = few_pairs()
    with pytest.raises(ValueError, match=words):
        ITML(prior=prior).fit(pairs, y)


def test_itml_of_a_singular_covariance():
    pairs, y, _ = few_pairs()
    with pytest.raises(ValueError, match="covariance is singular: use prior='identity'"):
        ITML(prior="covariance").fit(pairs[:, :, [0, 0, 1]], y)


# MMC


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mmc_is_the_solution(diagonal, seed):
    pairs, y, u = few_pairs(40, 4, seed)
    learner = MMC(diagonal=diagonal, tol=1e-6).fit(pairs, y)
    best = plain.mmc(u, y, diagonal)
    assert learner.objective_ == pytest.approx(best, rel=1e-5)
    distances = learner.pair_distance(pairs)
    assert np.mean(distances[y > 0] ** 2) == pytest.approx(learner.objective_, rel=1e-12)
    assert distances[y < 0].mean() == pytest.approx(1.0, rel=1e-12)  # the constraint is tight
    assert 0.0 <= learner.gap_ <= 1e-6
    M = learner.get_mahalanobis_matrix()
    if diagonal:
        assert_allclose(M, np.diag(np.diag(M)), atol=1e-12 * M.max())
    rough = MMC(diagonal=diagonal, tol=0.1).fit(pairs, y)  # the gap bounds what is missing
    assert best * (1.0 - 1e-6) <= rough.objective_ <= best * (1.0 + rough.gap_) * (1.0 + 1e-6)


def test_mmc_is_free_of_any_linear_change_of_features():
    pairs, y, _ = few_pairs(60, 4)
    learner = MMC(tol=1e-6).fit(pairs, y)
    turned = MMC(tol=1e-6).fit(pairs @ np.triu(np.ones((4, 4))) * [1, 10, 0.1, 1], y)
    # Neither is above the least by more than tol.
    assert turned.objective_ == pytest.approx(learner.objective_, rel=2e-6)


def test_mmc_says_where_rounding_ends_it():
    """Values tell no way down long before the gap, which goes by gradients, can be so small."""
    pairs, y, _ = few_pairs(60, 4)
    words = r"MMC stopped at iteration \d+, as rounding .* fell below tol=1e-15\. .*: raise tol\."
    with pytest.warns(ConvergenceWarning, match=words):
        learner = MMC(tol=1e-15).fit(pairs, y)
    assert learner.n_iter_ < learner.max_iter
    assert learner.gap_ < 1e-5


def test_mmc_where_similar_pairs_agree():
    """A feature that never differs in similar pairs gets a large weight, not an infinite one."""
    pairs, y, _ = few_pairs(60, 4)
    pairs[y > 0, :, 0] = 0.0
    for diagonal in False, True:
        learner = MMC(diagonal=diagonal).fit(pairs, y)
        assert np.isfinite(learner.components_).all()
        assert learner.score(pairs, y) == 1.0


@pytest.mark.parametrize("label", [1, -1])
def test_mmc_needs_both_kinds(label):
    pairs, y, _ = few_pairs()
    with pytest.raises(ValueError, match=rf"all pairs have label \{label:+d}: .*; add some with"):
        MMC().fit(pairs, np.full(len(y), label))
    pairs[y == label] = pairs[y == label][:, [0, 0]]
    with pytest.raises(ValueError, match="pairs is a point and itself; MMC needs some whose"):
        MMC().fit(pairs, y)


# What all learners of a set of pairs promise

LEARNERS = {
    "ITML": ITML(),
    "ITML-covariance": ITML(prior="covariance", gamma=0.5),
    "MMC": MMC(),
    "MMC-diagonal": MMC(diagonal=True),
}


@pytest.fixture(params=LEARNERS)
def learner(request):
    return clone(LEARNERS[request.param])


@pytest.fixture
def stream():
    return make_stream(6)


@pytest.fixture
def fitted(learner, stream):
    return learner.fit(stream.pairs, stream.y)


def state(learner):
    """All that a fitted learner knows."""
    found = {name: np.asarray(value) for name, value in vars(learner).items() if name[-1] == "_"}
    return {name: (value.shape, value.tolist()) for name, value in found.items()}


def test_it_learns(fitted):
    later = make_stream(6, seed=1)
    assert fitted.score(later.pairs, later.y) > 0.75
    assert fitted.n_features_in_ == 6
    assert fitted.n_iter_ > 0


def test_read_outs(fitted, stream):
    M, L = fitted.get_mahalanobis_matrix(), fitted.components_
    assert_allclose(M, L.T @ L, atol=1e-12 * M.max())
    gram = L @ L.T
    assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12 * gram.max())
    assert (np.diff(np.diag(gram)) <= 1e-12 * gram.max()).all()
    u = stream.pairs[:, 0] - stream.pairs[:, 1]
    distances = fitted.pair_distance(stream.pairs)
    assert_allclose(distances**2, np.einsum("ni,ij,nj->n", u, M, u), rtol=1e-9, atol=1e-12)
    assert_array_equal(fitted.pair_score(stream.pairs), -distances)
    assert fitted.score(stream.pairs, stream.y) == roc_auc_score(stream.y, -distances)
    x, z = fitted.transform(stream.pairs[:, 0]), fitted.transform(stream.pairs[:, 1])
    assert_allclose(np.linalg.norm(x - z, axis=1), distances, atol=1e-9)
    metric = fitted.get_metric()
    assert metric(*stream.pairs[1]) == pytest.approx(distances[1])


def test_threshold_is_calibrated_on_the_pairs(fitted, stream):
    y = np.where(np.arange(len(stream.y)) % 7, stream.y, -stream.y)  # some judged wrongly
    threshold = fitted.fit(stream.pairs, y).threshold_
    assert copy.deepcopy(fitted).calibrate_threshold(stream.pairs, y).threshold_ == threshold
    chosen = {"strategy": "max_tpr", "min_rate": 0.95}
    fitted.fit(stream.pairs, y, calibration_params=chosen)
    assert fitted.threshold_ != threshold
    assert np.mean(fitted.predict(stream.pairs)[y < 0] == -1) >= 0.95


def test_fit_forgets_and_repeats(learner, stream):
    narrow = make_stream(3)
    fresh = clone(learner).fit(stream.pairs, stream.y)
    learner.fit(narrow.pairs, narrow.y).set_threshold(9.0)
    assert state(learner.fit(stream.pairs, stream.y)) == state(fresh)
    assert state(pickle.loads(pickle.dumps(fresh))) == state(fresh)


def test_forms_of_input(learner, stream):
    fresh = clone(learner).fit(stream.pairs, stream.y)
    assert state(learner.fit(stream.pairs.tolist(), stream.y.tolist())) == state(fresh)
    for kind in np.asarray, sp.csr_array, sp.csc_array:
        kept = copy.deepcopy(kind(stream.points))
        by_row = clone(learner).set_params(preprocessor=kept).fit(stream.rows, stream.y)
        distances = fresh.pair_distance(stream.pairs)
        # Points in no pair take no part, and which of them are looked at for bounds may differ.
        assert_allclose(by_row.pair_distance(stream.rows), distances, rtol=1e-6, atol=1e-9)
        nine = by_row.transform(stream.points[:9])
        assert_allclose(by_row.transform(np.arange(9)), nine, rtol=1e-12, atol=1e-12)
    called = clone(learner).set_params(preprocessor=lambda rows: stream.points[rows])
    assert_allclose(called.fit(stream.rows, stream.y).pair_distance(stream.pairs), distances)


def test_units_do_not_matter(learner, stream):
    plain_scores = learner.fit(stream.pairs, stream.y).predict(stream.pairs)
    for unit in 1000.0, 1e-3:
        scaled = clone(learner).fit(unit * stream.pairs, stream.y)
        assert_array_equal(scaled.predict(unit * stream.pairs), plain_scores)


def test_one_feature(learner):
    line = make_stream(1, 200)
    learner.fit(line.pairs, line.y)
    assert learner.components_.shape == (1, 1)
    assert learner.score(line.pairs, line.y) == 1.0


@pytest.mark.parametrize("kind", BAD_PAIRS)
def test_bad_pairs(fitted, stream, kind):
    change, words = BAD_PAIRS[kind]
    before = state(fitted)
    if kind != "fewer features":
        with pytest.raises(ValueError, match=words):
            fitted.fit(change(stream.pairs[:N]), GOOD_Y)
    with pytest.raises(ValueError, match=words):
        fitted.predict(change(stream.pairs[:N]))
    assert state(fitted) == before


@pytest.mark.parametrize("kind", BAD_Y)
def test_bad_labels(fitted, stream, kind):
    y, words = BAD_Y[kind]
    before = state(fitted)
    with pytest.raises(ValueError, match=words):
        fitted.fit(stream.pairs[:N], y)
    assert state(fitted) == before


BAD_SETTINGS = {
    "gamma": (0.0, *(value for value in NOT_POSITIVE if value is not np.inf)),
    "max_iter": NOT_WHOLE,
    "tol": (0.0, *NOT_POSITIVE),
    "verbose": (-1, "1", None),
    "diagonal": (1, None, "yes"),
}


def test_bad_settings(fitted, stream):
    before = state(fitted)
    for name in set(fitted.get_params()) & set(BAD_SETTINGS):
        for value in BAD_SETTINGS[name]:
            broken = copy.deepcopy(fitted).set_params(**{name: value})
            with pytest.raises(ValueError, match=f"^{name}=.*; it must be"):
                broken.fit(stream.pairs, stream.y)
            assert state(broken) == before


def test_unfitted(learner, stream):
    for use in learner.predict, learner.pair_distance:
        with pytest.raises(NotFittedError):
            use(stream.pairs)
    with pytest.raises(NotFittedError):
        learner.get_metric()


@pytest.mark.parametrize("check", NEED_NO_DATA, ids=lambda check: check.__name__)
def test_scikit_learn_checks_that_need_no_data(learner, check):
    check(type(learner).__name__, learner)


def test_cross_validation(learner, stream):
    learner.set_params(preprocessor=stream.points)
    scores = cross_val_score(learner, stream.rows, stream.y, cv=3, error_score="raise")
    assert scores.mean() > 0.6
    search = GridSearchCV(learner, {"tol": [1e-1, 1e-3]}, cv=2, error_score="raise")
    assert search.fit(stream.rows, stream.y).best_score_ > 0.6


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_from_labels(learner, kind):
    X, y = clusters(120, 6)
    metric = FromLabels(learner, random_state=0).fit(kind(X), y)
    assert metric.learner_.preprocessor is None
    assert_allclose(
        np.linalg.norm(np.diff(metric.transform(X[:2]), axis=0)), metric.pair_distance([X[:2]])
    )
    embedded = metric.transform(X)
    assert KNeighborsClassifier().fit(embedded, y).score(embedded, y) > 0.8
    assert not hasattr(metric, "partial_fit")  # SlidingWindow takes it to a stream


# Progress and warnings

FITS = {
    "LMNN": lambda **settings: LMNN(**settings).fit(*clusters(80)),
    "ITML": lambda **settings: ITML(**settings).fit(*few_pairs(60)[:2]),
    "MMC": lambda **settings: MMC(**settings).fit(*few_pairs(60)[:2]),
}


@pytest.mark.parametrize("name", FITS)
def test_what_did_not_converge_says_what_to_do(name):
    words = rf"{name} stopped at max_iter=1 before .* fell below tol=1e-07. .*: raise max_iter or"
    with pytest.warns(ConvergenceWarning, match=words) as caught:
        learner = FITS[name](max_iter=1, tol=1e-7)
    assert caught[0].filename == __file__
    assert learner.n_iter_ == 1
    assert np.isfinite(learner.components_).all()


@pytest.mark.parametrize("name", FITS)
def test_no_warning_where_it_converged(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FITS[name]()


@pytest.mark.parametrize("name", FITS)
def test_silent_without_a_terminal(name, capfd, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    FITS[name]()
    FITS[name](verbose=1)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", FITS)
def test_lines(name, capfd):
    learner = FITS[name](verbose=2)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count(f"[{name}] ") == err.count(" iterations at most: ") == learner.n_iter_


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize(
    ("settings", "patience"), [({"verbose": 1}, 0.0), ({"verbose": 1}, 100.0), ({}, 0.0)]
)
def test_bar_on_a_terminal_if_asked_for(name, settings, patience, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setattr(
        progress, "Console", lambda stderr: Console(file=screen, force_terminal=True, width=120)
    )
    FITS[name](**settings)
    shown = screen.getvalue()
    assert (name in shown) == (bool(settings) and patience == 0.0)


# Constraints


@pytest.mark.parametrize("n_pairs", [1, 2, 11, 40])
@pytest.mark.parametrize("labels", [list("abbacabcaab"), np.arange(11) % 3, [True] * 6 + [False]])
def test_pairs_from_labels(labels, n_pairs):
    labels = np.asarray(labels)
    pairs, y = pairs_from_labels(labels, n_pairs, 0)
    assert_array_equal(np.where(labels[pairs[:, 0]] == labels[pairs[:, 1]], 1, -1), y)
    assert len({frozenset(pair) for pair in pairs.tolist()}) == len(pairs)  # no pair comes twice
    i, j = np.triu_indices(len(labels), 1)
    alike = np.count_nonzero(labels[i] == labels[j])
    assert np.count_nonzero(y > 0) == min(-(-n_pairs // 2), alike)
    assert np.count_nonzero(y < 0) == min(n_pairs // 2, len(i) - alike)
    again, again_y = pairs_from_labels(labels, n_pairs, 0)
    assert_array_equal(again, pairs)
    assert_array_equal(again_y, y)


def test_pairs_are_drawn_evenly():
    labels = np.array(list("aaabbcccc"))
    counts = np.zeros((9, 9))
    for seed in range(2000):
        pairs, _ = pairs_from_labels(labels, 8, seed)
        np.add.at(counts, tuple(np.sort(pairs, axis=1).T), 1)
    i, j = np.triu_indices(9, 1)
    alike = labels[i] == labels[j]
    for kind in alike, ~alike:
        share = counts[i[kind], j[kind]] / 2000
        expected = 4 / kind.sum()
        assert np.abs(share - expected).max() < 5 * np.sqrt(expected * (1 - expected) / 2000)


@pytest.mark.parametrize("n_triplets", [1, 10, 10_000])
def test_triplets_from_labels(n_triplets):
    labels = np.array(list("abbacabcaabd"))
    triplets = triplets_from_labels(labels, n_triplets, 0)
    anchor, same, other = labels[triplets.T]
    assert (anchor == same).all()
    assert (triplets[:, 0] != triplets[:, 1]).all()
    assert (anchor != other).all()
    assert len({tuple(each) for each in triplets.tolist()}) == len(triplets)
    counts = np.unique(labels, return_counts=True)[1]
    assert len(triplets) == min(n_triplets, np.sum(counts * (counts - 1) * (12 - counts)))
    assert_array_equal(triplets, triplets_from_labels(labels, n_triplets, 0))


def test_many_points_are_no_burden():
    labels = np.arange(200_000) % 10
    pairs, y = pairs_from_labels(labels, 10_000, 0)
    assert_array_equal(np.where(labels[pairs[:, 0]] == labels[pairs[:, 1]], 1, -1), y)
    triplets = triplets_from_labels(labels, 1000, 0)
    assert (labels[triplets[:, 0]] == labels[triplets[:, 1]]).all()
    assert (labels[triplets[:, 0]] != labels[triplets[:, 2]]).all()


@pytest.mark.parametrize("draw", [pairs_from_labels, triplets_from_labels])
def test_labels_to_draw_nothing_from(draw):
    with pytest.raises(ValueError, match="there is only one class, 1: there are no dissimilar"):
        draw([1, 1, 1], 4)
    with pytest.raises(ValueError, match="no class has two points: there are no similar"):
        draw([1, 2, 3], 4)
    for missing in np.nan, None:
        with pytest.raises(ValueError, match=rf"y\[1\] = {missing}: the class label is missing"):
            draw(np.array(["a", missing, "a"], object), 4)
    with pytest.raises(ValueError, match="labels must be 1-D"):
        draw([[1, 2]], 4)
    with pytest.raises(ValueError, match="labels of 1 sample"):
        draw([1], 4)
    with pytest.raises(ValueError, match="=0; it must be a whole number"):
        draw([1, 1, 2], 0)


# Transformers of scikit-learn

TRANSFORMERS = {
    "PCA": PCA(2),
    "PCA-whiten": PCA(3, whiten=True),
    "LDA": LinearDiscriminantAnalysis(),
    "LDA-eigen": LinearDiscriminantAnalysis(solver="eigen", n_components=1),
    "NCA": NeighborhoodComponentsAnalysis(2, max_iter=20, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()),
    "LMNN": LMNN(n_components=2),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_from_transformer(name):
    X, y = load_wine(return_X_y=True)
    metric = FromTransformer(TRANSFORMERS[name], random_state=0).fit(X, y)
    direct = clone(TRANSFORMERS[name]).fit(X, y).transform(X)
    rows, labels = pairs_from_labels(y, 200, 1)
    apart = np.linalg.norm(direct[rows[:, 0]] - direct[rows[:, 1]], axis=1)
    assert_allclose(metric.pair_distance(X[rows]), apart, rtol=1e-6, atol=1e-6 * apart.max())
    embedded = metric.transform(X)
    assert embedded.shape == direct.shape
    assert_allclose(embedded - embedded[0], direct - direct[0], atol=1e-6 * np.abs(direct).max())
    M = metric.get_mahalanobis_matrix()
    assert M.shape == (13, 13)
    assert metric.get_metric()(X[0], X[90]) == pytest.approx(metric.pair_distance([X[[0, 90]]])[0])
    assert np.mean(metric.predict(X[rows]) == labels) > 0.6
    threshold = metric.threshold_
    metric.calibrate_threshold(X[rows], labels, strategy="max_tpr", min_rate=0.99)
    assert metric.threshold_ != threshold
    assert metric.score(X[rows], labels) == roc_auc_score(labels, -metric.pair_distance(X[rows]))


def test_transformer_without_labels():
    X, y = load_wine(return_X_y=True)
    takes = get_tags(FromTransformer(PCA(2))).input_tags
    assert takes.two_d_array  # fit
    assert takes.three_d_array  # predict
    metric = FromTransformer(PCA(2)).fit(X, y).fit(X)
    with pytest.raises(ValueError, match="there is no threshold, as fit got no labels: call cali"):
        metric.predict([X[:2]])
    rows, labels = pairs_from_labels(y, 200, 1)
    assert set(metric.calibrate_threshold(X[rows], labels).predict(X[rows])) == {-1, 1}
    assert metric.set_threshold(0.0).predict([X[:2]]) == -1


def test_transformer_of_sparse_points():
    X, y = clusters(80)
    metric = FromTransformer(MaxAbsScaler()).fit(sp.csr_array(X), y)
    assert_allclose(metric.get_mahalanobis_matrix(), np.diag(np.abs(X).max(axis=0) ** -2.0))


def test_transformer_that_is_not_linear():
    X, y = clusters()
    with pytest.raises(ValueError, match="KernelPCA does not transform by a matrix and a shift"):
        FromTransformer(KernelPCA(2, kernel="rbf")).fit(X, y)
    with pytest.raises(NotFittedError):
        FromTransformer(PCA(2)).predict([X[:2]])
