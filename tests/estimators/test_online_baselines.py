"""OnlineITML, LEGO, POLA and OASIS against their papers' formulas, and what only they promise."""

import copy
import pickle
import re

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from metrack import COMID, LEGO, OASIS, POLA, FromLabels, OnlineITML
from tests.estimators.learners import make_stream
from tests.reference.baselines import DenseITML, DenseLEGO, DenseOASIS, DensePOLA

PRECISION = 1e-9


def units_of(squares):
    """The root mean square of all before, for each round (its own for the first), and of all."""
    units, mean, n = [], 0.0, 0
    for each in squares:
        units.append(np.sqrt(mean or each) or 1.0)
        if each > 0.0:
            n += 1
            mean += (each - mean) / n
    return np.array(units), np.sqrt(mean)


# Metrics of full rank


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [None, "auto"])
@pytest.mark.parametrize("rate", [0.01, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("n_features", [1, 3, 11])
@pytest.mark.parametrize(("kind", "reference"), [(OnlineITML, DenseITML), (LEGO, DenseLEGO)])
def test_every_step_is_the_formula(kind, reference, n_features, rate, scale, sparse):
    stream = make_stream(n_features, 150, seed=n_features)
    learner = kind(rate, upper=0.4, lower=1.2, scale=scale, preprocessor=stream.points)
    if sparse:
        learner.set_params(preprocessor=sp.csr_array(stream.points))
    oracle = reference(n_features, rate, 0.4, 1.2)
    u = stream.pairs[:, 0] - stream.pairs[:, 1]
    units = units_of((u**2).sum(axis=1))[0] if scale else np.ones(len(u))
    for row, difference, unit, y in zip(stream.rows, u, units, stream.y, strict=True):
        expected = float(oracle.observe(difference / unit, y))
        assert learner.observe([row], [y])[0] == pytest.approx(expected, rel=PRECISION, abs=1e-12)
        M = learner.engine_.learners.factor.T @ learner.engine_.learners.factor
        assert np.abs(M - oracle.M).max() < PRECISION * max(1.0, np.abs(oracle.M).max())
        if rate == 30.0 and kind is OnlineITML:  # so long, explicit steps blow up 1e-16 to 1e-10
            oracle.M = M.astype(np.longdouble)
        assert np.linalg.eigvalsh(oracle.M.astype(float))[0] > 0.0
        assert np.linalg.svd(learner.engine_.learners.factor, compute_uv=False)[-1] > 0.0
        assert learner.rank_ == n_features


@pytest.mark.parametrize("kind", [OnlineITML, LEGO])
def test_the_metric_in_the_units_of_the_data(kind):
    stream = make_stream(4)
    learner = kind().fit(stream.pairs, stream.y)
    u = stream.pairs[:, 0] - stream.pairs[:, 1]
    factor = learner.engine_.learners.factor / units_of((u**2).sum(axis=1))[1]
    assert_allclose(learner.get_mahalanobis_matrix(), factor.T @ factor, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("y", [1, -1])
@pytest.mark.parametrize("seed", range(4))
def test_lego_minimises_what_it_says(seed, y):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    learner = LEGO(0.7, upper=0.5, lower=2.0, scale=None).fit(np.zeros((1, 2, 3)), [1])
    learner.engine_.learners.factor[:] = A
    u = rng.normal(size=3)
    u *= np.sqrt((1.3 if y > 0 else 0.8) / (u @ A.T @ A @ u))
    M, target = cp.Variable((3, 3), PSD=True), 0.5 if y > 0 else 2.0
    divergence = cp.trace(np.linalg.inv(A.T @ A) @ M) - cp.log_det(M)
    loss = cp.square(cp.trace(np.outer(u, u) @ M) - target) / 2
    cp.Problem(cp.Minimize(divergence + 0.7 * loss)).solve(solver=cp.CLARABEL)
    learner.learn_one(u, np.zeros(3), y)
    assert_allclose(learner.get_mahalanobis_matrix(), M.value, atol=1e-4 * np.abs(M.value).max())


@pytest.mark.parametrize("kind", [OnlineITML, LEGO])
@pytest.mark.parametrize("rate", [1e-300, 1e-3, 1e3, 1e300])
def test_positive_definite_whatever_comes(kind, rate):
    """Lengths from 1e-30 to 1e30, any rate: dense arithmetic on M itself would lose its sign."""
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(2000, 2, 5)) * 10.0 ** rng.uniform(-30, 30, size=(2000, 1, 1))
    y = rng.choice([-1, 1], size=2000)
    for scale in None, "auto":
        learner = kind(rate, scale=scale)
        assert np.isfinite(learner.observe(pairs, y)).all()
        factor = learner.engine_.learners.factor
        assert np.isfinite(factor).all()
        assert np.abs(factor).max() > 0.0
        assert np.isfinite(learner.pair_distance(pairs)).all()
        assert (learner.pair_distance(pairs) > 0.0).all()


@pytest.mark.parametrize("kind", [OnlineITML, LEGO])
def test_targets_are_met_by_what_can_meet_them(kind):
    stream = make_stream(3, 300)
    pairs = stream.pairs[stream.y > 0]
    learner = kind(5.0, upper=0.1, lower=0.2)
    for _ in range(50):
        learner.partial_fit(pairs, np.ones(len(pairs)))
    assert (learner.pair_distance(pairs) ** 2).max() < 0.11
    assert learner.mu_ == pytest.approx(0.15)
    assert learner.threshold_ == pytest.approx(np.sqrt(0.15))


@pytest.mark.parametrize("kind", [OnlineITML, LEGO])
def test_upper_target_above_the_lower(kind):
    with pytest.raises(ValueError, match=r"^upper=2; it must be at most lower=1.5"):
        kind(upper=2, lower=1.5).fit([[[0.0], [1.0]]], [1])


@pytest.mark.parametrize("learner", [OnlineITML(), LEGO(), POLA()], ids=repr)
def test_more_features_than_at_first(learner):
    """As if the new features had been there all along, and 0."""
    stream = make_stream(5)
    padded = np.pad(stream.pairs, ((0, 0), (0, 0), (0, 2)))
    wide = clone(learner).fit(padded, stream.y)
    learner.fit(stream.pairs, stream.y).widen(7)
    later = make_stream(7, seed=3)
    for each in wide, learner:
        each.partial_fit(later.pairs, later.y)
    M = wide.get_mahalanobis_matrix()
    assert_allclose(learner.get_mahalanobis_matrix(), M, atol=1e-10 * np.abs(M).max())


# POLA


@pytest.mark.parametrize("scale", [None, "auto"])
@pytest.mark.parametrize("n_features", [1, 3, 11])
def test_pola_is_its_two_projections(n_features, scale):
    stream = make_stream(n_features, 300, seed=n_features)
    learner, oracle = POLA(scale=scale), DensePOLA(n_features)
    u = stream.pairs[:, 0] - stream.pairs[:, 1]
    # COMID's units: a mean square of 2
    units = units_of((u**2).sum(axis=1))[0] / np.sqrt(2) if scale else np.ones(len(u))
    cut = 0
    for pair, difference, unit, y in zip(stream.pairs, u, units, stream.y, strict=True):
        expected = oracle.observe(difference / unit, y)
        assert learner.observe([pair], [y])[0] == pytest.approx(expected, rel=PRECISION, abs=1e-12)
        M = learner.get_mahalanobis_matrix() * learner.engine_.spaces[0].unit
        assert np.abs(M - oracle.M).max() < PRECISION * max(1.0, np.abs(oracle.M).max())
        assert learner.mu_ == pytest.approx(oracle.b, rel=PRECISION)
        cut += np.linalg.matrix_rank(oracle.M, tol=1e-12) < n_features
    assert cut > 0 or n_features == 1


@pytest.mark.parametrize("y", [1, -1])
@pytest.mark.parametrize("seed", range(3))
def test_both_projections_are_the_nearest_points(seed, y):
    rng = np.random.default_rng(seed)
    stream = make_stream(3, 60, seed=seed)
    learner = POLA(scale=None).fit(stream.pairs, stream.y)
    now, u = (learner.get_mahalanobis_matrix(), learner.mu_), rng.normal(size=3)
    u *= 9.0 if y > 0 else 0.2
    M, b = cp.Variable((3, 3), symmetric=True), cp.Variable()
    for constraints in [y * (b - cp.trace(np.outer(u, u) @ M)) >= 1], [M >> 0, b >= 1]:
        distance = cp.sum_squares(M - now[0]) + cp.square(b - now[1])
        cp.Problem(cp.Minimize(distance), constraints).solve(solver=cp.CLARABEL)
        now = M.value, b.value
    assert learner.observe([[u, np.zeros(3)]], [y])[0] > 0.0
    assert_allclose(learner.get_mahalanobis_matrix(), now[0], atol=1e-5)
    assert learner.mu_ == pytest.approx(now[1], abs=1e-5)


def test_pola_is_comid_without_a_rate():
    stream = make_stream(6)
    comid = COMID(divergence="frobenius", learning_rate=1e9, regularizer=None).fit(
        stream.pairs, stream.y
    )
    pola = POLA().fit(stream.pairs, stream.y)
    assert_array_equal(pola.components_, comid.components_)
    assert set(pola.get_params()) == {"n_components", "scale", "preprocessor", "random_state"}


# Points with class labels


@estimator_checks.parametrize_with_checks(
    [FromLabels(kind(), random_state=0) for kind in (OnlineITML, LEGO, POLA)]
)
def test_from_labels(estimator, check):
    check(estimator)


# OASIS


def make_triplets(n_features, n_triplets=200, seed=0):
    """Rows and points; the positive is the one more alike in the first two features."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(80, n_features))
    points[:, 2:][rng.random((80, max(n_features - 2, 0))) < 0.4] = 0.0
    rows = rng.integers(80, size=(n_triplets, 3))
    a, b, c = (points[rows[:, i], :2] for i in range(3))
    rows = np.where(((a * (b - c)).sum(axis=1) > 0)[:, None], rows, rows[:, [0, 2, 1]])
    rows[::31, 2] = rows[::31, 1]  # nothing to tell apart
    return points, rows


def oasis_state(learner):
    bank = learner.engine_
    return [a.tobytes() for a in (*bank.learners, bank.scaler, bank.counters)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [None, "auto"])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e9])
@pytest.mark.parametrize("n_features", [1, 3, 11])
def test_oasis_is_the_formula(n_features, C, scale, sparse):
    points, rows = make_triplets(n_features)
    learner = OASIS(C, scale=scale, preprocessor=sp.csr_array(points) if sparse else points)
    oracle = DenseOASIS(n_features, C)
    p, positive, negative = points[rows].transpose(1, 0, 2)
    squares = (p**2).sum(axis=1) * ((positive - negative) ** 2).sum(axis=1)
    units, last = units_of(squares) if scale else (np.ones(len(p)), 1.0)
    for t, row in enumerate(rows):
        expected = oracle.observe(p[t] / units[t], positive[t], negative[t])
        assert learner.observe([row])[0] == pytest.approx(expected, rel=PRECISION, abs=1e-12)
        W = learner.engine_.learners.matrix
        assert np.abs(W - oracle.W).max() < PRECISION * np.abs(oracle.W).max()
    assert_allclose(learner.get_bilinear_matrix(), oracle.W / last, rtol=1e-9, atol=1e-12)


def test_oasis_learns():
    points, rows = make_triplets(20, 4000)
    learner = OASIS(preprocessor=points)
    before = learner.fit(rows[:1]).score(rows[2000:])
    learner.fit(rows[:2000])
    assert learner.score(rows[2000:]) > max(0.85, before + 0.1)
    assert learner.n_triplets_seen_ == 2000
    assert learner.n_features_in_ == 20


@pytest.mark.parametrize("sparse", [False, True])
def test_oasis_calls_of_any_sizes_are_as_one(sparse):
    points, rows = make_triplets(5, 9000)
    whole = OASIS(preprocessor=sp.csr_array(points) if sparse else points)
    split, one = clone(whole), clone(whole)
    losses = whole.observe(rows)
    pieces = np.split(rows, [1, 7, 4097, 5000])
    assert_array_equal(np.concatenate([split.observe(each) for each in pieces]), losses)
    assert oasis_state(split) == oasis_state(whole)
    for row in rows[:100]:
        assert one.learn_one(*row) is one
    assert oasis_state(one) == oasis_state(whole.fit(rows[:100]))
    assert oasis_state(split.fit(rows[:50]).partial_fit(rows[50:100])) == oasis_state(one)
    for twin in copy.deepcopy(one), pickle.loads(pickle.dumps(one)):
        assert oasis_state(twin.partial_fit(rows[100:])) != oasis_state(one)


def test_oasis_forms_of_input_agree():
    points, rows = make_triplets(6)
    dense = OASIS().fit(points[rows])
    for given in points, points.tolist(), lambda indices: points[indices]:
        other = OASIS(preprocessor=given).fit(rows)
        assert oasis_state(other) == oasis_state(dense)
        assert_array_equal(other.decision_function(rows), dense.decision_function(points[rows]))
    for given in sp.csr_array(points), sp.csc_matrix(points):
        other = OASIS(preprocessor=given).fit(rows)
        W = dense.get_bilinear_matrix()
        assert_allclose(other.get_bilinear_matrix(), W, atol=1e-12 * np.abs(W).max())
        assert_allclose(other.decision_function(rows), dense.decision_function(points[rows]))
        assert_allclose(other.similarity(given, [1, 2]), dense.similarity(points, points[[1, 2]]))
        assert_allclose(other.pair_score(rows[:, :2]), dense.pair_score(points[rows[:, :2]]))


def test_oasis_read_outs():
    points, rows = make_triplets(6)
    learner = OASIS().fit(points[rows])
    W = learner.get_bilinear_matrix()
    assert np.abs(W - W.T).max() > 0.0
    similarity = learner.similarity(points)
    assert_allclose(similarity, points @ W @ points.T)
    assert_allclose(learner.similarity(points[:3], points), similarity[:3])
    pairs = points[rows[:, :2]]
    assert_allclose(learner.pair_score(pairs), similarity[rows[:, 0], rows[:, 1]])
    gaps = similarity[rows[:, 0], rows[:, 1]] - similarity[rows[:, 0], rows[:, 2]]
    assert_allclose(learner.decision_function(points[rows]), gaps, atol=1e-12)
    right = learner.predict(points[rows])
    assert set(right) == {-1, 1}
    assert (right[::31] == -1).all()  # equal is not more alike
    assert learner.score(points[rows]) == np.mean(right == 1)
    # The embedding: of all metrics the nearest to the symmetric part of W.
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    M = (vectors * np.maximum(values, 0)) @ vectors.T
    assert_allclose(learner.get_mahalanobis_matrix(), M, atol=1e-12 * np.abs(M).max())
    assert learner.rank_ == (values > 0).sum() == len(learner.components_)
    embedded = learner.transform(points)
    apart = np.linalg.norm(embedded[rows[:, 0]] - embedded[rows[:, 1]], axis=1)
    assert_allclose(learner.pair_distance(pairs), apart, atol=1e-12)
    assert learner.get_metric()(*pairs[0]) == pytest.approx(apart[0])
    W[:] = np.nan
    assert np.isfinite(learner.get_bilinear_matrix()).all()


def test_oasis_units_do_not_matter():
    points, rows = make_triplets(6)
    plain = OASIS(preprocessor=points)
    losses = plain.observe(rows)
    for unit in 1000.0, 1e-3, 1e-20, 1e20:
        other = OASIS(preprocessor=unit * points)
        assert_allclose(other.observe(rows), losses, rtol=1e-9, atol=1e-9)
        assert_allclose(other.decision_function(rows), plain.decision_function(rows), rtol=1e-7)
    assert np.abs(OASIS(scale=None, preprocessor=3 * points).observe(rows) - losses).max() > 0.1


def test_oasis_of_nothing():
    learner = OASIS()
    assert_array_equal(learner.observe(np.zeros((9, 3, 2))), 1.0)
    assert_array_equal(learner.get_bilinear_matrix(), np.eye(2))
    points, rows = make_triplets(2, 2000)
    assert learner.partial_fit(points[rows]).score(points[rows]) > 0.75


BAD_TRIPLETS = {
    "NaN": (lambda T: np.where(T[3, 2, 1] == T, np.nan, T), r"triplets\[3, 2\] contains NaN; drop"),
    "pairs": (lambda T: T[:, :2], r"triplets must have shape \(n_triplets, 3, n_features\), got"),
    "rows": (lambda T: np.zeros((5, 3), int), r"for triplets of row numbers, pass the points"),
    "empty": (lambda T: T[:0], r"triplets is empty \(shape .*\); pass at least one triplet"),
    "fewer": (lambda T: T[:, :, 1:], r"triplets has 5 features, but the metric was learned on 6"),
    "text": (lambda T: T.astype(str), r"triplets row 0 is not numbers .*; encode text first"),
    "sparse": (lambda T: sp.csr_array(T[:, 0]), r"triplets is a sparse matrix; pass"),
    "none": (lambda T: None, r"triplets must have shape"),
}


@pytest.mark.parametrize("kind", BAD_TRIPLETS)
def test_oasis_refuses(kind):
    points, rows = make_triplets(6)
    learner = OASIS().fit(points[rows])
    before = oasis_state(learner)
    change, words = BAD_TRIPLETS[kind]
    bad = change(points[rows[1:6]])
    for method in "fit", "observe", "partial_fit", "decision_function", "predict", "score":
        if (kind, method) != ("fewer", "fit"):
            with pytest.raises(ValueError, match=words):
                getattr(learner, method)(bad)
    assert oasis_state(learner) == before


def test_oasis_refuses_row_numbers_out_of_range():
    points, rows = make_triplets(6)
    learner = OASIS(preprocessor=points).fit(rows)
    rows[3, 2] = 80
    with pytest.raises(ValueError, match=r"triplets\[3, 2\] = 80 is out of range: .* 0 to 79"):
        learner.observe(rows)
    with pytest.raises(ValueError, match=r"X\[1\] = 80 is out of range"):
        learner.similarity([1, 80])


@pytest.mark.parametrize(
    ("name", "value"),
    [("learning_rate", value) for value in (0.0, -1.0, np.nan, np.inf, "1", None, True)]
    + [("scale", value) for value in ("", 1.0, True)],
)
def test_oasis_settings(name, value):
    points, rows = make_triplets(3)
    fresh = OASIS(preprocessor=points).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"^{name}={re.escape(repr(value))}; "):
        fresh.observe(rows)
    assert set(vars(fresh)) == set(fresh.get_params())


@pytest.mark.parametrize(
    "use",
    [
        lambda learner, X: learner.similarity(X),
        lambda learner, X: learner.pair_score([X[:2]]),
        lambda learner, X: learner.decision_function([X[:3]]),
        lambda learner, X: learner.get_bilinear_matrix(),
        lambda learner, X: learner.transform(X),
        lambda learner, X: learner.components_,
        lambda learner, X: learner.n_triplets_seen_,
    ],
)
def test_oasis_unfitted(use):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        use(OASIS(), np.ones((3, 2)))


def test_oasis_without_data():
    for check in (
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_set_params,
        estimator_checks.check_valid_tag_types,
    ):
        check("OASIS", OASIS())
