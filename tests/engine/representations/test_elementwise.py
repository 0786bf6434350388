"""The three representations for elementwise L1, against textbooks and a convex solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from metrack import COMID, SADL
from metrack.engine.representations import elementwise
from metrack.evaluate import best_fixed, comparator_losses
from metrack.streams import DriftingClusters
from tests.reference import elementwise as reference
from tests.reference.comid import LOSSES

WAYS = ["exact", "on_read", "diagonal"]


def learner_of(psd, **options):
    return COMID(regularizer="l1", psd=psd, scale=None, **{"learning_rate": 0.2} | options)


def entries(learner, j=0):
    """M as it is kept: without the cone it may not be positive."""
    learners = learner.engine_.banks[0].learners
    n = learner.n_features_in_
    if hasattr(learners, "matrix"):
        return learners.matrix[j]
    lazy = learners.lazy_values[j]
    kept = np.sign(lazy) * np.maximum(np.abs(lazy) - learners.cumulative_threshold[j], 0.0)
    if len(kept) == n:  # weights of features, or the one entry there is
        return np.diag(kept)
    M = np.zeros((n, n))
    M[np.triu_indices(n)] = kept
    return M + np.triu(M, 1).T


def random_pairs(rng, n_pairs, n, density=1.0):
    """Differences of points in two blobs, alike or not with equal odds."""
    y = rng.choice([-1, 1], size=n_pairs)
    u = rng.normal(size=(n_pairs, n)) * (rng.random((n_pairs, n)) < density)
    u[y == -1, 0] += 2.0
    return u / np.sqrt(n), y


def lockstep(learner, oracle, us, ys, tolerance):
    """Feed both the same pairs; compare at every step."""
    zero = np.zeros(us.shape[1])
    for t, (u, y) in enumerate(zip(us, ys, strict=True)):
        suffered = learner.observe([[u, zero]], [y])[0]
        assert suffered == pytest.approx(oracle.observe(u, y), abs=tolerance * (1 + u @ u)), t
        size = max(1.0, np.abs(oracle.M).max())
        assert np.abs(entries(learner) - oracle.M).max() <= tolerance * size, t
        assert learner.mu_ == pytest.approx(oracle.mu, rel=tolerance), t


@pytest.mark.parametrize("step", ["explicit", "implicit"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("psd", ["on_read", "diagonal"])
def test_lazy_thresholds_are_eager_ones(psd, loss, step):
    us, ys = random_pairs(np.random.default_rng(0), 500, 6, density=0.5)
    options = {"loss": loss, "step": step, "rho": 0.02, "learning_rate": 0.1}
    oracle = reference.DenseL1(6, psd=psd, **options)
    lockstep(learner_of(psd, **options), oracle, us, ys, 1e-12)
    assert 0 < np.count_nonzero(oracle.M) < oracle.M.size


@pytest.mark.parametrize("psd", ["on_read", "diagonal"])
def test_cumulative_thresholds_start_anew(psd):
    us, ys = random_pairs(np.random.default_rng(1), 1000, 5, density=0.5)
    options = {"step": "explicit", "learning_rate": 1.0, "rho": 30.0, "init": "identity"}
    learner, oracle = learner_of(psd, **options), reference.DenseL1(5, psd=psd, **options)
    lockstep(learner, oracle, 60.0 * us, ys, 1e-9)
    (threshold,) = learner.engine_.banks[0].learners.cumulative_threshold
    assert threshold < elementwise.LARGEST_CUMULATIVE < 30.0 * len(ys)
    assert np.abs(oracle.M).max() > 100.0


def test_exact_steps_are_those_of_another_method():
    us, ys = random_pairs(np.random.default_rng(2), 60, 4)
    options = {"rho": 0.05, "step": "implicit", "learning_rate": 0.2}
    oracle = reference.DenseL1(4, psd="exact", **options)
    lockstep(learner_of("exact", **options), oracle, us, ys, 1e-7)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**31), st.sampled_from([0.0, 0.003, 0.1, 1.0]))
def test_exact_agrees_with_a_convex_solver(n, seed, rho):
    """One step from wherever the learner has come to."""
    rng = np.random.default_rng(seed)
    us, ys = random_pairs(rng, 12, n)
    learner = learner_of("exact", step="explicit", rho=rho, init="identity")
    learner.fit(np.stack([us, np.zeros_like(us)], axis=1)[:-1], ys[:-1])
    M, mu = entries(learner).copy(), learner.mu_
    u, y = us[-1], ys[-1]
    learner.learn_one(u, np.zeros(n), y)
    b = 0.2 * y * LOSSES["hinge"][1](1.0 - y * (mu - u @ M @ u))
    A = M - b * np.outer(u, u)
    found, solved = entries(learner), reference.solve(A, 0.2 * rho)
    ahead = reference.objective(solved, A, 0.2 * rho) - reference.objective(found, A, 0.2 * rho)
    assert ahead > -1e-11
    # The objective is strongly convex: what the solver lacks to us bounds how far off it is itself.
    assert np.abs(found - solved).max() < 1e-6 + np.sqrt(2.0 * max(ahead, 0.0))
    assert np.linalg.eigvalsh(found).min() > -1e-8


def test_thresholding_then_projecting_would_be_another_step():
    """The reason for the exact step: what looks like the step is not."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(5, 5))
    A = A + A.T
    naive = reference.positive_part(reference.soft(A, 0.5))
    solved = reference.solve(A, 0.5)
    worse = reference.objective(naive, A, 0.5) - reference.objective(solved, A, 0.5)
    assert worse > 0.01


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**31), st.sampled_from([0.0, 0.01, 0.3]))
def test_diagonal_steps_are_optimal(n, seed, rho):
    """Weights that solve their own conditions to the last digits, and a solver's problem."""
    rng = np.random.default_rng(seed)
    us, ys = random_pairs(rng, 12, n)
    learner = learner_of("diagonal", step="explicit", rho=rho, init="identity")
    learner.fit(np.stack([us, np.zeros_like(us)], axis=1)[:-1], ys[:-1])
    d, mu = np.diag(entries(learner)).copy(), learner.mu_
    u, y = us[-1], ys[-1]
    learner.learn_one(u, np.zeros(n), y)
    b = 0.2 * y * LOSSES["hinge"][1](1.0 - y * (mu - d @ u**2))
    found = np.diag(entries(learner))
    gradient = found - (d - b * u**2) + 0.2 * rho
    assert np.abs(gradient[found > 0]).max(initial=0.0) < 1e-12
    assert gradient[found == 0].min(initial=0.0) > -1e-12
    solved = reference.solve(np.diag(d - b * u**2), 0.2 * rho, diagonal=True)
    assert np.abs(np.diag(found) - solved).max() < 1e-5  # the solver's own accuracy


def streams(name, seed):
    """Pairs of which some can be learned; on the drifting ones the truth moves on."""
    if name == "random":
        us, y = random_pairs(np.random.default_rng(seed), 3000, 6)
        return np.stack([us, np.zeros_like(us)], axis=1), y
    pairs, y = DriftingClusters(n_features=6, random_state=seed).pairs(0, 3000)
    return 0.25 * pairs, y


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("stream", ["random", "drifting"])
@pytest.mark.parametrize("psd", WAYS)
def test_regret_against_metrics_keeps_its_bound(psd, stream, seed):
    """COMID's bound (Duchi et al., 2010) against every M on the cone, which ``on_read`` leaves.

    losses - losses of (M, mu)
        <= (|M|^2 + (mu - 1)^2) / 2e + e/2 sum |gradient|^2 + T rho sum |M_ij|
    """
    rate, rho = 0.03, 0.002
    pairs, y = streams(stream, seed)
    losses = learner_of(psd, step="explicit", learning_rate=rate, rho=rho).observe(pairs, y)
    us = pairs[:, 0] - pairs[:, 1]
    square = np.sum(us**4, axis=1) if psd == "diagonal" else np.sum(us**2, axis=1) ** 2
    spent = 0.5 * rate * np.sum((square + 1.0)[losses > 0.0])
    rng = np.random.default_rng(seed)
    best = best_fixed(pairs, y)
    anyone = [(L.T @ L, mu) for L in rng.normal(size=(5, 2, 6)) / 4.0 for mu in (1.0, 2.0)]
    for M, mu in [(best.M, best.mu), (np.zeros((6, 6)), 1.0), *anyone]:
        M = np.diag(np.diag(M)) if psd == "diagonal" else M
        theirs = comparator_losses(pairs, y, (M, mu)).sum()
        away = (np.sum(M**2) + (mu - 1.0) ** 2) / (2.0 * rate)
        bound = theirs + away + spent + len(y) * rho * np.abs(M).sum()
        assert losses.sum() <= bound


def test_what_is_read_is_the_nearest_metric():
    us, ys = random_pairs(np.random.default_rng(4), 300, 7)
    learner = learner_of("on_read", rho=0.02)
    learner.fit(np.stack([us, np.zeros_like(us)], axis=1), ys)
    M = entries(learner)
    assert np.linalg.eigvalsh(M).min() < -1e-3  # off the cone, or there is nothing to see here
    nearest = reference.positive_part(M)
    np.testing.assert_allclose(learner.get_mahalanobis_matrix(), nearest, atol=1e-12)
    few = learner_of("on_read", rho=0.02, n_components=2)
    few.fit(np.stack([us, np.zeros_like(us)], axis=1), ys)
    assert few.rank_ == 2
    np.testing.assert_allclose(np.abs(few.components_), np.abs(learner.components_[:2]), atol=1e-9)


def test_a_few_eigenpairs_are_those_of_all():
    rng = np.random.default_rng(5)
    M = rng.normal(size=(60, 60)) * (rng.random((60, 60)) < 0.2)
    M[:, 7] = M[7] = 0.0
    M = np.triu(M) + np.triu(M, 1).T
    few, vectors = elementwise.positive_part(np.triu(M), 3)
    every, _ = elementwise.positive_part(np.triu(M), 60)
    np.testing.assert_allclose(few, np.sort(np.linalg.eigvalsh(M))[::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(few, every[:3], rtol=1e-9)
    np.testing.assert_allclose(M @ vectors.T, few * vectors.T, atol=1e-8)
    assert (vectors[:, 7] == 0.0).all()


def test_features_that_do_not_matter_drop_out():
    rng = np.random.default_rng(6)
    pairs = rng.normal(size=(3000, 2, 30))
    y = np.where(np.abs(pairs[:, 0, :2] - pairs[:, 1, :2]).max(axis=1) < 1, 1, -1)
    learner = COMID(regularizer="l1", rho=0.02).fit(pairs, y)
    assert {learner.top_features(component, n=1)[0][0] for component in (0, 1)} == {0, 1}
    assert np.count_nonzero(entries(learner)) < 0.6 * 900
    loose = COMID(regularizer="l1", rho=0.0).fit(pairs, y)
    assert np.count_nonzero(entries(loose)) == 900


@pytest.mark.parametrize("psd", WAYS)
def test_sparse_rows_agree_with_dense_ones(psd):
    rng = np.random.default_rng(7)
    points = sp.random(200, 12, density=0.3, random_state=rng, format="csr")
    rows = rng.integers(200, size=(400, 2))
    first = points.toarray()[:, 0] > 0
    y = np.where(first[rows[:, 0]] == first[rows[:, 1]], 1, -1)
    sparse = COMID(regularizer="l1", psd=psd, preprocessor=points)
    dense = COMID(regularizer="l1", psd=psd, preprocessor=points.toarray())
    np.testing.assert_allclose(sparse.observe(rows, y), dense.observe(rows, y), atol=1e-9)
    np.testing.assert_allclose(entries(sparse), entries(dense), atol=1e-9)


@pytest.mark.parametrize("init", ["zero", "identity"])
@pytest.mark.parametrize("psd", WAYS)
def test_new_features_are_as_if_they_had_always_been_there(psd, init):
    us, ys = random_pairs(np.random.default_rng(8), 200, 5)
    us[:100, 3:] = 0.0
    pairs = np.stack([us, np.zeros_like(us)], axis=1)
    settings_ = {"regularizer": "l1", "psd": psd, "init": init, "rho": 0.01}
    grown = COMID(**settings_).fit(pairs[:100, :, :3], ys[:100])
    grown.widen(5)
    grown.partial_fit(pairs[100:], ys[100:])
    whole = COMID(**settings_).fit(pairs, ys)
    np.testing.assert_allclose(entries(grown), entries(whole), atol=1e-8)


@pytest.mark.parametrize("psd", WAYS)
def test_a_tracker_of_learners_with_l1(psd):
    """The mean of the learners is what a tracker's read-outs tell."""
    us, ys = random_pairs(np.random.default_rng(9), 200, 6)
    pairs = np.stack([us, np.zeros_like(us)], axis=1)
    tracker = SADL(regularizer="l1", psd=psd, rho=0.01, scale=None).fit(pairs, ys)
    mean = sum(p * entries(tracker, j) for j, p in enumerate(tracker.weights_))
    nearest = reference.positive_part(mean)
    np.testing.assert_allclose(tracker.get_mahalanobis_matrix(), nearest, atol=1e-7)
    assert tracker.score(pairs, ys) > 0.8


@pytest.mark.parametrize(
    ("n_features", "name"),
    [(16, "cone"), (17, "elementwise"), (4096, "elementwise"), (4097, "diagonal")],
)
def test_the_representation_is_chosen_by_size(n_features, name):
    points = sp.csr_array(([1.0, 1.0], ([0, 1], [0, n_features - 1])), shape=(2, n_features))
    learner = COMID(regularizer="l1", preprocessor=points).fit([[0, 1]], [-1])
    assert learner.engine_.banks[0].representation.name == name


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"divergence": "burg"}, "known for 'frobenius' alone"),
        ({"psd": "sometimes"}, "choose one of 'auto', 'exact', 'on_read', 'diagonal'"),
        ({"regularizer": "l2"}, "choose one of 'auto', 'nuclear', 'l1', 'logdet', None"),
    ],
)
@pytest.mark.parametrize("kind", [COMID, SADL])
def test_wrong_settings_are_refused(kind, wrong, message):
    with pytest.raises(ValueError, match=message):
        kind(**{"regularizer": "l1"} | wrong).fit(np.eye(4).reshape(2, 2, 4), [1, -1])


def test_top_features_are_named_in_the_order_of_their_weights():
    learner = COMID(regularizer="l1", rho=0.0, psd="diagonal", scale=None)
    learner.fit([[[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]], [-1])
    assert [name for name, _ in learner.top_features(names="abc")] == ["b"]
    assert learner.top_features(1)[0] == (0, learner.components_[1, 0])
    with pytest.raises(ValueError, match="the metric has 2 directions"):
        learner.top_features(2)
    with pytest.raises(ValueError, match="2 names for 3 features"):
        learner.top_features(names="ab")
