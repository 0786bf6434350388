"""What scripts written for metric-learn do, where meaning is the same; the rest is on the page."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_spd_matrix
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import metrack
from metrack import (
    COMID,
    ITML,
    LEGO,
    LMNN,
    MMC,
    OASIS,
    POLA,
    FromLabels,
    FromTransformer,
    MetricTracker,
    OnlineITML,
)
from metrack.estimators.bases.linear import FrozenMetric
from tests.estimators.learners import make_stream

PAIR_LEARNERS = [MetricTracker(), COMID(), OnlineITML(), LEGO(), POLA(), ITML(), MMC()]


def on(learners):
    names = [type(each).__name__ for each in learners]
    return pytest.mark.parametrize("learner", learners, ids=names, indirect=True)


of_pairs = on(PAIR_LEARNERS)
STREAM = make_stream(4)
FILES = np.array([f"img{i}.png" for i in range(len(STREAM.points))])


@pytest.fixture
def learner(request):
    return clone(request.param)


def images(names):
    """A preprocessor as metric-learn's users write them: file names in, features out."""
    found = dict(zip(FILES, STREAM.points, strict=True))
    return np.array([found[name] for name in names])


def classes():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X = rng.normal(size=(60, 4))
    X[:, 1] += 3 * y
    return X, y


# Ids


@of_pairs
def test_pairs_of_file_names(learner):
    by_name = clone(learner).set_params(preprocessor=images).fit(FILES[STREAM.rows], STREAM.y)
    by_point = clone(learner).fit(STREAM.pairs, STREAM.y)
    assert_allclose(by_name.get_mahalanobis_matrix(), by_point.get_mahalanobis_matrix())
    for names in FILES[STREAM.rows[:9]], FILES[STREAM.rows[:9]].tolist():
        assert_allclose(by_name.pair_distance(names), by_point.pair_distance(STREAM.pairs[:9]))
    assert_allclose(by_name.transform(FILES[:7]), by_point.transform(STREAM.points[:7]))


def test_names_in_all_other_places():
    learner = MetricTracker(preprocessor=images).learn_one("img3.png", "img4.png", 1)
    learner.learn_one("img5.png", "img0.png", -1)
    assert learner.n_pairs_seen_ == 2
    scores = cross_val_score(learner, FILES[STREAM.rows], STREAM.y, error_score="raise")
    assert (scores > 0.5).all()
    triplets = FILES[np.random.default_rng(0).integers(len(FILES), size=(20, 3))]
    assert OASIS(preprocessor=images).fit(triplets).n_triplets_seen_ == 20
    window = metrack.SlidingWindow(LEGO(preprocessor=images), window=50, every=20)
    assert window.partial_fit(FILES[STREAM.rows], STREAM.y).n_fits_ == 12


@pytest.mark.parametrize(
    ("preprocessor", "ids", "words"),
    [
        (images, [["img0.png", "img9999.png"]], "refuses: .*'img9999.png'"),
        (STREAM.points, [["img0.png", "img1.png"]], "ids that are text: pass a callable"),
        (None, [["img0.png", "img1.png"]], "ids that are text: pass a callable"),
        (images, [[["a"], ["b"]]], "encode text first, or, where it is ids, pass a callable"),
    ],
)
def test_names_that_lead_nowhere(preprocessor, ids, words):
    with pytest.raises(ValueError, match=words):
        LEGO(preprocessor=preprocessor).partial_fit(ids, [1])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@of_pairs
def test_rows_counted_from_the_end(learner, kind):
    learner.set_params(preprocessor=kind(STREAM.points))
    rows = STREAM.rows - len(STREAM.points) * (STREAM.rows % 2)
    assert (rows < 0).any()
    M = clone(learner).fit(STREAM.rows, STREAM.y).get_mahalanobis_matrix()
    fitted = clone(learner).fit(rows, STREAM.y)
    assert_array_equal(fitted.get_mahalanobis_matrix(), M)
    assert_array_equal(fitted.transform([-1]), fitted.transform([len(STREAM.points) - 1]))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: X.__getitem__])
def test_lmnn_of_rows(kind):
    X, y = classes()
    rows = np.random.default_rng(1).permutation(len(X))[:50]
    of_rows = LMNN(preprocessor=kind(X)).fit(rows, y[rows])
    of_points = LMNN(preprocessor=kind(X)).fit(X[rows], y[rows])
    assert_allclose(of_rows.components_, of_points.components_)
    assert_allclose(of_rows.components_, LMNN().fit(X[rows], y[rows]).components_)
    assert_allclose(of_rows.transform(rows), of_rows.transform(X[rows]))
    pairs = rows[:6].reshape(3, 2)
    assert_allclose(of_rows.pair_distance(pairs), of_points.pair_distance(X[pairs]))
    assert_allclose(of_rows.fit_transform(rows, y[rows]), of_points.transform(X[rows]))


def test_lmnn_embeds_sparse_points():
    X, y = classes()
    learner = LMNN().fit(X, y)
    for kind in sp.csr_array, sp.csc_matrix:
        embedded = learner.transform(kind(X))
        assert isinstance(embedded, np.ndarray)
        assert_allclose(embedded, learner.transform(X))


# Thresholds


@of_pairs
def test_a_negative_threshold_calls_nothing_alike(learner):
    fitted = learner.fit(STREAM.pairs, STREAM.y).set_threshold(-1)
    assert (fitted.pair_distance(STREAM.pairs) == 0.0).any()
    assert (fitted.predict(STREAM.pairs) == -1).all()


def test_a_window_with_a_negative_threshold_suffers_more_than_with_0():
    window = metrack.SlidingWindow(LEGO(), window=100, every=50).fit(STREAM.pairs, STREAM.y)
    alike = STREAM.pairs[STREAM.y > 0][:9], np.ones(9, int)
    at_0 = pickle.loads(pickle.dumps(window)).set_threshold(0).observe(*alike)
    assert (window.set_threshold(-1).observe(*alike) > at_0).all()


@of_pairs
def test_the_sign_of_beta_does_not_count(learner):
    fitted = learner.fit(STREAM.pairs, STREAM.y)
    found = []
    for beta in 2.0, -2.0:
        fitted.calibrate_threshold(STREAM.pairs, STREAM.y, strategy="f_beta", beta=beta)
        found.append(fitted.threshold_)
    assert found[0] == found[1]


@of_pairs
def test_labels_of_1_and_0(learner):
    fitted = learner.fit(STREAM.pairs, STREAM.y)
    y = (STREAM.y + 1) // 2
    for labels in y, y.tolist(), y.astype(bool):
        assert fitted.score(STREAM.pairs, labels) == fitted.score(STREAM.pairs, STREAM.y)


# Read-outs


@of_pairs
def test_the_frozen_metric_takes_rows(learner):
    metric = learner.fit(STREAM.pairs, STREAM.y).get_metric()
    x, z = STREAM.points[:2]
    assert metric(x[None], z[None]) == metric(x, z) == metric(x[:, None], z.tolist())
    for wrong in (STREAM.points[:2], STREAM.points[2:4]), (x[:-1], z[:-1]), (x, z[:-1]):
        with pytest.raises(ValueError, match="points with 4 features each"):
            metric(*wrong)


def test_the_frozen_metric_of_one_feature():
    metric = FrozenMetric(np.array([[3.0]]))
    assert metric(5, 6) == metric([5], [6]) == metric([[5]], [[6]]) == 3.0


@of_pairs
def test_components_that_are_set(learner):
    fitted = learner.fit(STREAM.pairs, STREAM.y)
    plain = 2.0 * np.eye(4)
    fitted.components_ = plain
    euclidean = np.linalg.norm(STREAM.pairs[:, 0] - STREAM.pairs[:, 1], axis=1)
    assert_allclose(fitted.pair_distance(STREAM.pairs), 2.0 * euclidean)
    assert_allclose(fitted.get_mahalanobis_matrix(), 4.0 * np.eye(4))
    assert_allclose(fitted.transform(STREAM.points), 2.0 * STREAM.points)


@on([MetricTracker(), COMID(), LEGO()])
def test_set_components_last_until_learning_goes_on(learner, tmp_path):
    fitted = learner.fit(STREAM.pairs, STREAM.y)
    learned = fitted.get_mahalanobis_matrix()
    steady = fitted.aligned_components()
    fitted.components_ = np.eye(4)[:2]
    assert fitted.rank_ == 2
    assert_allclose(fitted.aligned_components(), np.diag([1.0, 1.0, 0.0, 0.0]), atol=1e-12)
    with pytest.raises(ValueError, match="components_ was set by hand"):
        fitted.save(tmp_path / "state")
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.components_, np.eye(4)[:2])
    for each in fitted, again:
        each.partial_fit(STREAM.pairs[:1], STREAM.y[:1])
    assert_array_equal(fitted.components_, again.components_)
    expected = clone(learner).fit(
        np.concatenate([STREAM.pairs, STREAM.pairs[:1]]), np.append(STREAM.y, STREAM.y[0])
    )
    assert_array_equal(fitted.components_, expected.components_)
    assert not np.array_equal(learned, np.eye(4))
    assert steady.shape == (4, 4)
    fitted.save(tmp_path / "state")


def test_components_of_those_that_hold_a_learner():
    X, y = classes()
    window = metrack.SlidingWindow(LMNN(), every=30).fit(X, y)
    from_labels = FromLabels(random_state=0).fit(X, y)
    L = np.tri(4)  # rows that are not orthogonal
    for holder in window, from_labels, FromLabels(ITML(), random_state=0).fit(X, y):
        holder.components_ = L
        assert_array_equal(holder.get_mahalanobis_matrix(), L.T @ L)
        there, expected = holder.transform(X), X @ L.T
        assert_allclose(there @ there.T, expected @ expected.T, atol=1e-9)


def test_similarities_under_set_components():
    triplets = STREAM.points[np.random.default_rng(0).integers(len(STREAM.points), size=(30, 3))]
    oasis = OASIS().fit(triplets)
    learned = oasis.decision_function(triplets)
    L = np.diag([2.0, 1.0, 0.5, 0.0])
    oasis.components_ = L
    assert_allclose(oasis.get_bilinear_matrix(), L.T @ L)
    embedded = triplets @ L.T
    expected = np.sum(embedded[:, 0] * (embedded[:, 1] - embedded[:, 2]), axis=1)
    assert_allclose(oasis.decision_function(triplets), expected)
    assert oasis.score(triplets) == (expected > 0).mean()
    pairs = triplets[:, :2]
    assert_allclose(oasis.pair_score(pairs), np.sum(embedded[:, 0] * embedded[:, 1], axis=1))
    again = OASIS().fit(triplets).partial_fit(triplets[:1])
    oasis.partial_fit(triplets[:1])
    assert_array_equal(oasis.get_bilinear_matrix(), again.get_bilinear_matrix())
    assert not np.allclose(learned, expected)


# Classes


@pytest.mark.parametrize("learner", [MetricTracker(), COMID(), ITML(), MMC()], ids=str)
def test_learners_from_labels_score_pairs(learner):
    X, y = classes()
    pairs = X[np.random.default_rng(1).integers(len(X), size=(20, 2))]
    model = FromLabels(learner, random_state=0)
    with pytest.raises(NotFittedError):
        model.pair_score(pairs)
    model.fit(X, y)
    assert_array_equal(model.pair_score(pairs), -model.pair_distance(pairs))


@pytest.mark.parametrize("learner", [ITML(), MMC(), MMC(diagonal=True)], ids=str)
def test_points_of_batch_learners_from_labels_are_turned_by_components(learner):
    X, y = classes()
    model = FromLabels(learner, random_state=0).fit(X, y)
    model_of_rank_2 = FromLabels(learner, random_state=0).fit(X, y)
    model_of_rank_2.components_ = np.eye(4)[:2]
    for each in model, model_of_rank_2:
        embedded, rank = each.transform(X), len(each.components_)
        assert embedded.shape == X.shape
        assert_allclose(embedded[:, :rank], X @ each.components_.T)
        assert not embedded[:, rank:].any()
    assert_array_equal(embedded[:, :2], X[:, :2])


@pytest.mark.parametrize("n_labels", [59, 61])
def test_a_transformer_needs_a_label_for_each_point(n_labels):
    X, y = classes()
    for transformer in PCA(), LinearDiscriminantAnalysis():
        with pytest.raises(ValueError, match=f"60.*{n_labels}"):
            FromTransformer(transformer).fit(X, np.resize(y, n_labels))


# ITML


def test_itml_with_a_random_prior():
    given = make_spd_matrix(4, random_state=np.random.RandomState(7))
    fits = [
        ITML(prior=prior, random_state=7).fit(STREAM.pairs, STREAM.y).get_mahalanobis_matrix()
        for prior in ("random", "random", given)
    ]
    assert_array_equal(fits[0], fits[1])
    assert_allclose(fits[0], fits[2])
    other = ITML(prior="random", random_state=8).fit(STREAM.pairs, STREAM.y)
    assert not np.allclose(fits[0], other.get_mahalanobis_matrix())


def test_itml_bounds_as_rows_and_columns():
    fits = [
        ITML().fit(STREAM.pairs, STREAM.y, bounds=bounds)
        for bounds in ((1, 3), [1.0, 3.0], np.array([[1, 3]]), np.array([[1.0], [3.0]]))
    ]
    for each in fits:
        assert_array_equal(each.bounds_, [1.0, 3.0])
        assert_array_equal(each.components_, fits[0].components_)


def test_itml_with_a_singular_prior():
    twice = np.concatenate([STREAM.pairs, STREAM.pairs], axis=2)
    for prior, pairs in (np.diag([1.0, 2.0, 3.0, 0.0]), STREAM.pairs), ("covariance", twice):
        with pytest.raises(np.linalg.LinAlgError) as caught:
            ITML(prior=prior).fit(pairs, STREAM.y)
        assert isinstance(caught.value, ValueError)


# Settings


ALL = [*PAIR_LEARNERS, LMNN(), OASIS(), FromLabels(), metrack.SlidingWindow(LEGO())]
of_all = on(ALL)


@of_all
def test_what_is_there_before_fit_is_settings(learner):
    """Scripts ask ``hasattr(learner, "n_components")``."""
    public = [name for name in dir(learner) if not name.startswith("_")]
    values = [name for name in public if not callable(getattr(learner, name, None))]
    found = {name for name in values if hasattr(learner, name)}
    assert found <= set(learner.get_params(deep=False))


@of_all
def test_an_unknown_setting_points_to_the_page(learner):
    words = r"has no setting 'convergence_tol'; it has .*docs/from-metric-learn.md"
    with pytest.raises(TypeError, match=words):
        type(learner)(convergence_tol=1e-3)
    with pytest.raises(ValueError, match=words):
        learner.set_params(convergence_tol=1e-3)
    assert repr(learner) == repr(clone(learner))


def test_settings_of_an_own_subclass():
    class Mine(LEGO):
        def __init__(self, **settings):
            super().__init__(**settings)

    assert Mine(upper=0.3).upper == 0.3
    with pytest.raises(TypeError, match="Mine has no setting 'convergence_tol'; it has learning_r"):
        Mine(convergence_tol=1)
