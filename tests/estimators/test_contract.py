"""What every online learner of pairs promises, each check run on each of them."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from metrack import LEGO, SADL
from tests.estimators.learners import LEARNERS, has_matrix, make_stream, state

LOSSES = {
    "hinge": lambda m: max(0.0, 1.0 - m),
    "squared_hinge": lambda m: 0.5 * max(0.0, 1.0 - m) ** 2,
    "logistic": lambda m: np.logaddexp(0.0, -m),
}


def settings_of(condition):
    """Run a check only on the learners that meet a condition."""
    chosen = [name for name, (learner, _) in LEARNERS.items() if condition(learner)]
    return pytest.mark.parametrize("learner", chosen, indirect=True)


def n_components_of(learner):
    return learner.get_params().get("n_components")


def reads_out_what_it_judges(learner):
    """Whether a prediction just before a round is the round's own.

    On the cover, learners are born before a pair is predicted; a sample is drawn only then; and a
    mean of metrics is cut to ``n_components`` where that is set. A metric that is made positive
    when it is read was not when it judged.
    """
    if getattr(learner, "psd", None) == "on_read":
        return False
    if not isinstance(learner, SADL):
        return True
    return learner.combiner in ("fixed_share", "ader") and learner.n_components is None


def loss_of(learner, y, q, mu):
    """The loss that a learner suffers at squared distance q."""
    if not hasattr(learner, "upper"):
        return LOSSES[learner.get_params().get("loss", "hinge")](y * (mu - q))
    missed = max(0.0, q - learner.upper if y > 0 else learner.lower - q)
    return missed**2 / 2 if isinstance(learner, LEGO) else missed**2


def in_pieces(learner, pairs, y, cuts):
    """Losses of `observe`, called with the pairs between cuts."""
    pieces = zip(np.split(pairs, cuts), np.split(y, cuts), strict=True)
    return np.concatenate([learner.observe(some, labels) for some, labels in pieces])


# Learning


def test_it_learns(learner, stream):
    stream = make_stream(stream.pairs.shape[2], 4000)
    learner.fit(stream.pairs, stream.y)
    later = make_stream(stream.pairs.shape[2], seed=1)
    assert learner.score(later.pairs, later.y) > 0.75
    assert learner.n_pairs_seen_ == 4000
    assert learner.n_features_in_ == stream.pairs.shape[2]


@pytest.mark.parametrize("name", LEARNERS)
@settings(max_examples=8, deadline=None)
@given(cuts=st.sets(st.integers(1, 239)), sparse=st.booleans())
def test_calls_of_any_sizes_are_as_one(name, cuts, sparse):
    learner, n_features = LEARNERS[name]
    stream = make_stream(n_features)
    whole, split = clone(learner), clone(learner)
    pairs = stream.pairs
    if sparse:
        pairs = stream.rows
        for each in whole, split:
            each.set_params(preprocessor=sp.csr_array(stream.points))
    losses = whole.observe(pairs, stream.y)
    assert_array_equal(in_pieces(split, pairs, stream.y, sorted(cuts)), losses)
    assert state(split) == state(whole)


@pytest.mark.parametrize("indices", [False, True])
def test_learn_one_is_observe_of_one(learner, stream, indices):
    pairs = stream.rows if indices else stream.pairs
    learner.set_params(preprocessor=stream.points)
    one = clone(learner)
    for (x, z), y in zip(pairs, stream.y, strict=True):
        assert one.learn_one(x, z, y) is one
    assert state(one) == state(learner.fit(pairs, stream.y))


@pytest.mark.parametrize("indices", [False, True])
def test_more_pairs_than_a_chunk(learner, indices):
    stream = make_stream(7, 9000)  # the bank has room for 4096 differences at a time
    pairs = stream.rows if indices else stream.pairs
    learner.set_params(preprocessor=sp.csr_array(stream.points))
    split = clone(learner)
    losses = learner.observe(pairs, stream.y)
    assert_array_equal(in_pieces(split, pairs, stream.y, [1, 4097, 5000]), losses)
    assert state(split) == state(learner)


@settings_of(reads_out_what_it_judges)
def test_loss_is_that_of_the_metric_before_learning(learner, stream):
    learner.fit(stream.pairs[:40], stream.y[:40])
    for pair, y in zip(stream.pairs[40:120], stream.y[40:120], strict=True):
        q, mu = learner.pair_distance([pair])[0] ** 2, learner.threshold_**2
        expected = loss_of(learner, y, q, mu)
        assert learner.observe([pair], [y])[0] == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_partial_fit_is_observe(learner, stream):
    other = clone(learner)
    for half in np.array_split(np.arange(len(stream.y)), 2):
        assert learner.partial_fit(stream.pairs[half], stream.y[half]) is learner
        assert other.observe(stream.pairs[half], stream.y[half]).shape == half.shape
    assert state(learner) == state(other)


def test_fit_forgets(learner, stream):
    fresh = clone(learner)
    narrow = make_stream(3)
    learner.fit(narrow.pairs, narrow.y).set_threshold(9.0)
    assert learner.fit(stream.pairs, stream.y) is learner
    assert state(learner) == state(fresh.fit(stream.pairs, stream.y))


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))]
)
def test_a_copy_half_way_goes_on_alike_and_apart(learner, stream, duplicate):
    half = len(stream.y) // 2
    whole = clone(learner).fit(stream.pairs, stream.y)
    learner.fit(stream.pairs[:half], stream.y[:half])
    before = state(learner)
    twin = duplicate(learner)
    assert state(twin) == before
    twin.partial_fit(stream.pairs[half:], stream.y[half:])
    assert state(twin) == state(whole)
    assert state(learner) == before


def test_clone_has_the_settings_and_no_state(fitted, stream):
    fitted.set_params(random_state=125)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert fresh.get_params()["random_state"] == 125
    assert set(vars(fresh)) == set(fresh.get_params())


def test_settings_matter_at_the_next_fit(learner, stream):
    first = state(learner.fit(stream.pairs, stream.y))
    distances = learner.pair_distance(stream.pairs)
    learner.set_params(scale=None if learner.scale == "auto" else "auto")
    assert state(learner) == first
    assert (learner.fit(stream.pairs, stream.y).pair_distance(stream.pairs) != distances).any()


# Forms of input

FORMS = {
    "lists": lambda pairs: pairs.tolist(),
    "list of arrays": list,
    "float32": lambda pairs: pairs.astype(np.float32),
    "float16": lambda pairs: pairs.astype(np.float16),
    "integers": lambda pairs: np.rint(4 * pairs).astype(int),
    "small integers": lambda pairs: np.rint(4 * pairs).astype(np.int8),
    "unsigned": lambda pairs: np.rint(4 * np.abs(pairs)).astype(np.uint8),
    "booleans": lambda pairs: pairs > 0,
    "objects": lambda pairs: pairs.astype(object),
    "Fortran": np.asfortranarray,
    "every other": lambda pairs: np.repeat(pairs, 2, axis=2)[:, :, ::2],
    "backwards": lambda pairs: np.ascontiguousarray(pairs[::-1])[::-1],
    "big-endian": lambda pairs: pairs.astype(">f8"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_pairs(learner, stream, form):
    pairs = FORMS[form](stream.pairs)
    plain = np.ascontiguousarray(np.asarray(pairs), dtype=np.float64)
    other = clone(learner).fit(plain, stream.y)
    learner.fit(pairs, stream.y.tolist())
    assert state(learner) == state(other)
    assert_array_equal(learner.pair_distance(pairs), other.pair_distance(plain))


ROWS = {
    "rows": np.asarray,
    "lists": lambda rows: rows.tolist(),
    "uint8": lambda rows: rows.astype(np.uint8),
    "Fortran": np.asfortranarray,
}


@pytest.mark.parametrize("form", ROWS)
@pytest.mark.parametrize("kind", ["array", "callable", "list", "Fortran"])
def test_rows_of_points_are_the_points(learner, stream, kind, form):
    points, rows = stream.points, ROWS[form](stream.rows)
    given = {
        "array": points,
        "callable": lambda indices: points[indices],
        "list": points.tolist(),
        "Fortran": np.asfortranarray(points),
    }
    other = clone(learner).fit(stream.pairs, stream.y)
    learner.set_params(preprocessor=given[kind]).fit(rows, stream.y)
    assert state(learner) == state(other)
    assert_array_equal(learner.pair_distance(rows), other.pair_distance(stream.pairs))
    assert_array_equal(learner.predict(stream.pairs), other.predict(stream.pairs))
    assert_array_equal(learner.transform(rows[0]), other.transform(points[stream.rows[0]]))


def shuffled(points):
    """The points as a CSR matrix with its entries out of order, each in two halves."""
    csr = sp.csr_array(points)
    rows = np.repeat(np.arange(len(points)), np.diff(csr.indptr))[::-1]
    order = np.argsort(np.concatenate([rows, rows]), kind="stable")
    data, where = np.tile(csr.data[::-1] / 2, 2)[order], np.tile(csr.indices[::-1], 2)[order]
    return sp.csr_array((data, where, 2 * csr.indptr), csr.shape)


@pytest.mark.parametrize(
    "kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, shuffled]
)
def test_sparse_points_agree_with_dense_ones(learner, stream, kind):
    sparse = kind(stream.points)
    kept = copy.deepcopy(sparse)
    other = clone(learner)
    losses = other.observe(stream.pairs, stream.y)
    learner.set_params(preprocessor=sparse)
    assert_allclose(learner.observe(stream.rows, stream.y), losses, rtol=1e-10, atol=1e-10)
    if has_matrix(learner):
        M = other.get_mahalanobis_matrix()
        assert_allclose(learner.get_mahalanobis_matrix(), M, atol=1e-10 * np.abs(M).max())
    assert_allclose(learner.mu_, other.mu_, rtol=1e-10)
    embedded = other.transform(stream.points)
    for points in sparse, np.arange(len(stream.points)):
        there = learner.transform(points)
        assert_allclose(there @ there.T, embedded @ embedded.T, atol=1e-9 * np.abs(embedded).max())
    for name, value in vars(kept).items():  # the caller's matrix is as it was
        if isinstance(value, np.ndarray):
            assert_array_equal(getattr(sparse, name), value)


def test_callable_may_give_sparse_points(learner, stream):
    csr = sp.csr_array(stream.points)
    other = clone(learner).set_params(preprocessor=csr).fit(stream.rows, stream.y)
    learner.set_params(preprocessor=lambda indices: csr[indices]).fit(stream.rows, stream.y)
    assert state(learner) == state(other)


def test_data_are_not_written_to(learner, stream):
    kept = copy.deepcopy(stream)
    learner.set_params(preprocessor=stream.points)
    for pairs in stream.pairs, stream.rows:
        learner.fit(pairs, stream.y).predict(pairs)
    for array, before in zip(stream, kept, strict=True):
        assert_array_equal(array, before)


# Read-outs


@settings_of(has_matrix)
def test_the_matrix(fitted, stream):
    M, L = fitted.get_mahalanobis_matrix(), fitted.components_
    largest = np.abs(M).max()
    assert largest > 0.0
    assert L.shape == (fitted.rank_, stream.pairs.shape[2])
    assert_allclose(M, L.T @ L, atol=1e-12 * largest)
    assert_array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > -1e-12 * largest
    assert np.linalg.matrix_rank(M, tol=1e-13 * largest) == fitted.rank_
    gram = L @ L.T  # rows are orthogonal, by falling weight
    assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12 * largest)
    assert (np.diff(np.diag(gram)) <= 1e-12 * largest).all()


@settings_of(lambda each: n_components_of(each) and getattr(each, "init", "auto") == "auto")
def test_capacity_bounds_the_rank(fitted):
    assert fitted.rank_ == fitted.n_components
    assert fitted.engine_.banks[0].learners.dropped.max() > 0.0


def test_distances(fitted, stream):
    distances = fitted.pair_distance(stream.pairs)
    if has_matrix(fitted):
        u = stream.pairs[:, 0] - stream.pairs[:, 1]
        squares = np.einsum("ni,ij,nj->n", u, fitted.get_mahalanobis_matrix(), u)
        assert_allclose(distances**2, squares, rtol=1e-9, atol=1e-12 * squares.max())
    assert (distances[::29] == 0.0).all()  # a point and itself
    assert_array_equal(fitted.pair_score(stream.pairs), -distances)
    assert_array_equal(fitted.decision_function(stream.pairs), -distances)
    assert fitted.score(stream.pairs, stream.y) == roc_auc_score(stream.y, -distances)


def test_embedding(fitted, stream):
    x, z = fitted.transform(stream.pairs[:, 0]), fitted.transform(stream.pairs[:, 1])
    if has_matrix(fitted):
        width = n_components_of(fitted) or fitted.rank_
        assert x.shape == (len(stream.y), width)
        if width < fitted.rank_:
            return
    apart = np.linalg.norm(x - z, axis=1)
    assert_allclose(fitted.pair_distance(stream.pairs), apart, rtol=1e-9, atol=1e-9 * apart.max())


def test_predictions(fitted, stream):
    distances = fitted.pair_distance(stream.pairs)
    assert fitted.threshold_ == np.sqrt(fitted.mu_)
    assert fitted.mu_ >= 1.0
    assert_array_equal(fitted.classes_, [-1, 1])
    for threshold in fitted.threshold_, distances[5], 0.0, np.inf:
        assert fitted.set_threshold(threshold) is fitted
        assert fitted.threshold_ == threshold
        alike = fitted.predict(stream.pairs)
        assert_array_equal(alike, np.where(distances <= threshold, 1, -1))
        assert alike.dtype.kind == "i"


def test_learning_sets_the_threshold_anew(fitted, stream):
    other = copy.deepcopy(fitted).partial_fit(stream.pairs[:9], stream.y[:9])
    fitted.set_threshold(123.0).partial_fit(stream.pairs[:9], stream.y[:9])
    assert fitted.threshold_ == np.sqrt(fitted.mu_)
    assert state(fitted) == state(other)


def test_metric_is_frozen(fitted, stream):
    metric = fitted.get_metric()
    distances = fitted.pair_distance(stream.pairs)
    fitted.partial_fit(stream.pairs[::-1], -stream.y)
    assert np.abs(fitted.pair_distance(stream.pairs) - distances).max() > 1e-3
    for same in metric, pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric):
        found = [same(x, z) for x, z in stream.pairs]
        assert_allclose(found, distances, rtol=1e-12, atol=1e-12)
        squares = [same(x.tolist(), z.tolist(), squared=True) for x, z in stream.pairs]
        assert_allclose(squares, distances**2, rtol=1e-12, atol=1e-12)
    for few in 1, 2:  # one feature would broadcast
        with pytest.raises(ValueError, match=r"points with \d+ features each"):
            metric(stream.pairs[0, 0], stream.pairs[0, 1, :few])


@settings_of(has_matrix)
def test_what_is_read_out_is_not_the_state(fitted):
    before = state(fitted)
    fitted.get_mahalanobis_matrix()[:] = np.nan
    fitted.get_metric().components[:] = np.nan
    with pytest.raises(ValueError, match="read-only"):
        fitted.components_[:] = np.nan
    assert state(fitted) == before


def test_metric_of_nearest_neighbours(fitted, stream):
    if has_matrix(fitted) and fitted.rank_ > fitted.transform(stream.points).shape[1]:
        return  # the embedding is cut to n_components
    X, labels = stream.points, stream.points[:, 0] > 0
    by_metric = KNeighborsClassifier(3, metric=fitted.get_metric(), algorithm="brute")
    by_embedding = KNeighborsClassifier(3, algorithm="brute").fit(fitted.transform(X), labels)
    found = by_metric.fit(X, labels).predict_proba(X)
    assert_array_equal(found, by_embedding.predict_proba(fitted.transform(X)))


# Units


@settings_of(lambda each: each.scale == "auto")
def test_units_do_not_matter(learner, stream):
    other = clone(learner)
    losses = learner.observe(stream.pairs, stream.y)
    plain = learner.pair_distance(stream.pairs)
    for unit in 1000.0, 1e-3:
        pairs = unit * stream.pairs
        found = other.fit(pairs[:1], stream.y[:1]).observe(pairs[1:], stream.y[1:])
        assert_allclose(found, losses[1:], rtol=1e-9, atol=1e-9)
        assert_allclose(other.pair_distance(pairs), plain, rtol=1e-9, atol=1e-9)
        assert_array_equal(other.predict(pairs), learner.predict(stream.pairs))
    # A power of two changes no digit.
    assert_array_equal(other.fit(1024 * stream.pairs, stream.y).mu_, learner.mu_)
    assert_array_equal(other.pair_distance(1024 * stream.pairs), plain)
    if has_matrix(learner):
        assert_array_equal(1024 * other.components_, learner.components_)


@settings_of(lambda each: each.scale is None)
def test_units_matter_where_they_are_not_measured(learner, stream):
    losses = clone(learner).observe(stream.pairs, stream.y)
    assert np.abs(learner.observe(3 * stream.pairs, stream.y) - losses).max() > 0.1


# Extremes


def all_finite(learner):
    banks = getattr(learner.engine_, "banks", [learner.engine_])
    learned = [array for bank in banks for array in getattr(bank, "learners", ())]
    L = learner.components_ if has_matrix(learner) else learner.transform(learner.landmarks_)
    return all(np.isfinite(array).all() for array in (*learned, L))


@pytest.mark.parametrize("label", [1, -1])
def test_pairs_of_a_point_and_itself(learner, stream, label):
    nothing = np.repeat(stream.pairs[:50, :1], 2, axis=1)
    losses = learner.observe(nothing, np.full(50, label))
    assert np.isfinite(losses).all()
    assert all_finite(learner)
    assert_array_equal(learner.pair_distance(nothing), 0.0)
    assert (learner.predict(nothing) == 1).all()  # 0 is below every threshold
    # There is no direction to learn, and what comes later is learned all the same.
    if has_matrix(learner):
        rank = np.linalg.matrix_rank(learner.get_mahalanobis_matrix())
        assert rank in (0, learner.n_features_in_)
    learner.partial_fit(stream.pairs, stream.y).partial_fit(stream.pairs, stream.y)
    assert all_finite(learner)
    # Two directions beside the identity's forty change little.
    few = getattr(learner, "init", None) == "identity"
    assert learner.score(stream.pairs, stream.y) > (0.5 if few else 0.75)


def test_the_same_pair_over_and_over(learner, stream):
    pairs = np.repeat(stream.pairs[1:2], 300, axis=0)
    far = learner.fit(pairs, np.full(300, -1)).pair_distance(pairs[:1])
    assert all_finite(learner)
    near = learner.fit(pairs, np.full(300, 1)).pair_distance(pairs[:1])
    assert all_finite(learner)
    assert near < far
    assert learner.predict(pairs[:1]) == 1


def test_one_feature(learner):
    stream = make_stream(1, 500)
    if n_components_of(learner):
        learner.set_params(n_components=1)
    learner.fit(stream.pairs, stream.y)
    assert all_finite(learner)
    if has_matrix(learner):
        assert learner.components_.shape == (1, 1)
        assert learner.score(stream.pairs, stream.y) == 1.0  # one axis has one order
    assert np.mean(learner.predict(stream.pairs) == stream.y) > 0.75


@pytest.mark.parametrize("y", [1, -1])
def test_one_pair(learner, stream, y):
    loss = learner.observe(stream.pairs[1:2], [y])
    assert loss.shape == (1,)
    assert learner.n_pairs_seen_ == 1
    assert learner.pair_distance(stream.pairs).shape == (len(stream.y),)


@pytest.mark.parametrize("exponent", [-8, 8])
def test_far_from_unit_size(learner, stream, exponent):
    pairs = stream.pairs * 10.0**exponent
    assert np.isfinite(learner.observe(pairs, stream.y)).all()
    assert all_finite(learner)
    assert np.isfinite(learner.pair_distance(pairs)).all()
