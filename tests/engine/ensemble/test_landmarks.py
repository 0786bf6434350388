"""Features by landmarks, to scikit-learn's; landmarks that are drawn, moved and renewed."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels

from metrack.engine.ensemble import landmarks
from metrack.engine.ensemble.landmarks import KernelRule
from metrack.engine.numerics.pairs import Pairs

N, M = 5, 12
EMPTY = np.empty(0, np.int64)
RULES = {
    "rbf": KernelRule("rbf", (0.3,), False, 3, 1.0),
    "poly": KernelRule("poly", (0.2,), False, 3, 1.0),
    "polynomial": KernelRule("polynomial", (0.2,), False, 2, 0.5),
    "cosine": KernelRule("cosine", (0.0,), False, 3, 1.0),
    "linear": KernelRule("linear", (0.0,), False, 3, 1.0),
    "laplacian": KernelRule("laplacian", (0.4,), False, 3, 1.0),
    "callable": KernelRule(lambda x, z: float(np.exp(-np.abs(x - z).sum())), (0.0,), False, 3, 1.0),
}


def points(size, seed=0):
    return np.random.default_rng(seed).normal(size=(size, N))


def rows(X):
    return Pairs(X.ravel().copy(), np.arange(X.shape[1]), EMPTY, np.zeros(len(X)))


def sparse_rows(X):
    csr = sp.csr_array(X)
    return Pairs(
        csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64), np.zeros(len(X))
    )


def seen(rule, X, n_landmarks=M, n_spaces=1):
    """Landmarks after pairs of neighbouring rows."""
    found = landmarks.no_landmarks(N, n_landmarks, n_spaces)
    landmarks.keep(found, rows(X[::2]), rows(X[1::2]), 0)
    return landmarks.renew(rule, found, len(X) // 2).landmarks


@pytest.mark.parametrize("name", RULES)
def test_features_are_those_of_scikit_learn(name):
    rule = RULES[name]
    size = 4 if name in ("cosine", "linear") else M  # no more than the rank of the kernel
    found = seen(rule, points(24), size)
    Z, gamma = found.points[:, : found.used[0]].T, rule.gammas[0] or None
    asked = {} if callable(rule.function) else {"degree": rule.degree, "coef0": rule.coef0}
    if name in ("cosine", "linear", "laplacian"):
        asked = {}
    nystroem = Nystroem(
        kernel=rule.function, n_components=len(Z), random_state=0, **asked,
        **({"gamma": gamma} if gamma else {}),
    ).fit(Z)  # fmt: skip
    order = nystroem.component_indices_
    new = points(30, seed=1)
    # Its features are in the order of its landmarks, which are ours in another one.
    expected = nystroem.transform(new)[:, np.argsort(order)]
    assert len(Z) == size
    assert_allclose(landmarks.features(rule, found, new)[0][:, :size], expected, atol=1e-9)
    assert_allclose(
        landmarks.features(rule, found, sp.csr_array(new))[0][:, :size], expected, atol=1e-9
    )


@pytest.mark.parametrize("name", RULES)
def test_differences_are_those_of_features_row_by_row(name):
    rule, X, Z = RULES[name], points(20, seed=2), points(20, seed=3)
    X[X < 0.3] = 0.0
    found = seen(rule, points(24))
    expected = landmarks.features(rule, found, X)[0] - landmarks.features(rule, found, Z)[0]
    together = landmarks.differences(rule, found, rows(X), rows(Z))[0]
    assert_allclose(together, expected, atol=1e-10)
    assert_allclose(
        landmarks.differences(rule, found, sparse_rows(X), sparse_rows(Z))[0], expected, atol=1e-10
    )
    for i in (0, 7, 19):  # bit for bit the same, whatever other rows there are
        alone = landmarks.differences(rule, found, rows(X[i : i + 1]), rows(Z[i : i + 1]))[0]
        assert_array_equal(alone[0], together[i])


def test_all_points_are_landmarks_until_there_are_too_many():
    rule, X = RULES["rbf"], points(10)
    found = seen(rule, X)
    assert found.used[0] == 10
    assert {x.tobytes() for x in found.points[:, :10].T} == {x.tobytes() for x in X}
    assert seen(rule, points(24)).used[0] == M


def test_the_same_points_are_one_landmark():
    X = np.repeat(points(3), 4, axis=0)
    assert seen(RULES["rbf"], X).used[0] == 3
    alike = np.ones((6, N))
    assert seen(RULES["rbf"]._replace(relative=True), alike).used[0] == 0  # no scale is known


def test_landmarks_stand_for_all_points_and_not_for_outliers_alone():
    """Most are where points are; the first of a greedy choice would be the outliers."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.3 * rng.normal(size=(190, N)), 100.0 * rng.normal(size=(10, N))])
    found = seen(RULES["rbf"], rng.permutation(X), 100)
    near = np.linalg.norm(found.points[:, : found.used[0]].T, axis=1) < 10.0
    assert near.sum() > 60
    lost = 1.0 - np.sum(landmarks.features(RULES["rbf"], found, X[:190])[0] ** 2, axis=1)
    assert lost.mean() < 0.01


def test_landmarks_that_stay_keep_their_places():
    rule = RULES["rbf"]
    before = seen(rule, points(24))
    landmarks.keep(before, rows(points(4, 5)), rows(points(4, 6)), 12)
    after = landmarks.renew(rule, before, 16).landmarks
    places = {x.tobytes(): i for i, x in enumerate(before.points.T)}
    stayed = [
        (places[x.tobytes()], i) for i, x in enumerate(after.points.T) if x.tobytes() in places
    ]
    assert stayed
    assert all(a == b for a, b in stayed)


def test_the_change_of_features_is_the_projection_on_the_new_span():
    """And exact where that holds the old one: the products of new and old features are then k."""
    rule = RULES["rbf"]
    before = seen(rule, points(8))
    landmarks.keep(before, rows(points(2, 5)), rows(points(2, 6)), 4)
    after, (change,) = landmarks.renew(rule, before, 6)
    new = points(30, seed=7)
    old_phi, phi = landmarks.features(rule, before, new)[0], landmarks.features(rule, after, new)[0]
    assert after.used[0] == M  # so all old ones are among them
    assert_allclose(phi @ change, old_phi, atol=1e-9)
    assert_allclose(change.T @ change, np.diag([1.0] * 8 + [0.0] * 4), atol=1e-9)


def test_units_follow_the_points():
    rule = KernelRule("rbf", (1.0, 3.0), True, 3, 1.0)
    found = seen(rule, points(24), n_spaces=2)
    gaps = points(24)[:, None] - points(24)
    median = np.median((gaps**2).sum(axis=2)[np.triu_indices(24, 1)])
    assert_allclose(landmarks.gammas_of(rule, found), [1 / median, 3 / median], rtol=1e-12)
    landmarks.keep(found, rows(1.05 * points(24)[::2]), rows(1.05 * points(24)[1::2]), 12)
    assert landmarks.renew(rule, found, 24).landmarks.unit == found.unit  # about right still
    landmarks.keep(found, rows(5.0 * points(12, 8)), rows(5.0 * points(12, 9)), 24)
    assert landmarks.renew(rule, found, 36).landmarks.unit > 10.0 * found.unit


def test_moved_along_with_the_points_features_stay():
    rule, X, far = RULES["rbf"], points(24), np.full(N, 7.0)
    found = seen(rule, X)
    landmarks.keep(found, rows(X[::2] + far), rows(X[1::2] + far), 12)
    moved = landmarks.moved_along(found)
    assert landmarks.share_outside(rule, found) > 0.99
    assert landmarks.share_outside(rule, moved) < 0.5
    before = landmarks.features(rule, found, X)[0]
    assert_allclose(landmarks.features(rule, moved, X + far)[0], before, atol=1e-9)


def test_what_is_outside_of_the_span():
    rule = RULES["rbf"]
    found = seen(rule, points(24))
    X = found.latest[::2]
    K, k = (
        pairwise_kernels(a, found.points.T, metric="rbf", gamma=0.3) for a in (found.points.T, X)
    )
    outside = 1.0 - np.einsum("ij,ij->i", k, np.linalg.solve(K, k.T).T)
    assert_allclose(landmarks.share_outside(rule, found), outside.mean(), atol=1e-9)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, z: np.nan, "not finite"),
        (lambda x, z: -float(np.sum((x - z) ** 2)), "not positive semidefinite"),
        (lambda x, z: float(x[0]), "not positive semidefinite"),
    ],
)
def test_kernels_that_are_none_are_refused(function, message):
    with pytest.raises(ValueError, match=message):
        seen(KernelRule(function, (0.0,), False, 3, 1.0), points(24))


def test_huge_points_of_a_polynomial_stay_finite():
    found = seen(RULES["poly"], 1e40 * points(24))
    assert np.isfinite(landmarks.features(RULES["poly"], found, 1e40 * points(5))[0]).all()
