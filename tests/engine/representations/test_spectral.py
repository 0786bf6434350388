"""Capacity, frame, growth, sparse rows and long runs of the bank."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from metrack import COMID
from metrack.engine.numerics.divergences import DIVERGENCES
from metrack.engine.representations import spectral
from tests.reference.comid import DenseCOMID


def blobs(rng, n_pairs, n, informative=3):
    """Pairs of points in R^n from three clusters that differ in a few features."""
    centres = np.zeros((3, n))
    centres[:, :informative] = 3.0 * rng.normal(size=(3, informative))
    which = rng.integers(3, size=(n_pairs, 2))
    pairs = centres[which] + rng.normal(size=(n_pairs, 2, n))
    return pairs, np.where(which[:, 0] == which[:, 1], 1, -1)


def basis_of(learner, j=0):
    """The orthonormal rows V' of a learner."""
    return learner.engine_.metric(j).vectors


def nearest_of_rank(M, rank):
    """M without its smallest eigenvalues, and their sum."""
    values, vectors = np.linalg.eigh(M)
    kept = slice(max(len(values) - rank, 0), None)
    return (vectors[:, kept] * values[kept]) @ vectors[:, kept].T, values.sum() - values[kept].sum()


def test_capacity_cuts_the_smallest_eigenvalue_and_accounts_for_it():
    pairs, y = blobs(np.random.default_rng(0), 600, 6)
    learner = COMID(n_components=2, scale=None, rho=0.003, learning_rate=0.8)
    oracle = DenseCOMID(6, rho=0.003, learning_rate=0.8, step="implicit")
    dropped = 0.0
    for pair, label in zip(pairs, y, strict=True):
        learner.learn_one(*pair, label)
        oracle.observe(pair[0] - pair[1], label)
        oracle.M, cut = nearest_of_rank(oracle.M, 2)
        dropped += cut
        assert np.abs(learner.get_mahalanobis_matrix() - oracle.M).max() < 1e-9
        assert learner.rank_ <= 2
    assert dropped > 0
    assert learner.truncated_mass_ == pytest.approx(dropped, rel=1e-9)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_frame_changes_nothing_but_the_work(divergence, monkeypatch):
    pairs, y = blobs(np.random.default_rng(1), 3000, 30)
    settings = {"n_components": 4, "divergence": divergence}
    framed = COMID(**settings).fit(pairs, y)
    assert framed.engine_.banks[0].learners.frame.size > 0
    monkeypatch.setattr(spectral, "FRAME_FROM", 10**9)
    plain = COMID(**settings).fit(pairs, y)
    assert plain.engine_.banks[0].learners.frame.size == 0
    M = plain.get_mahalanobis_matrix()
    assert np.abs(framed.get_mahalanobis_matrix() - M).max() < 1e-9 * np.abs(M).max()
    assert framed.mu_ == pytest.approx(plain.mu_, rel=1e-9)


def test_columns_grow_with_the_rank_and_no_further():
    pairs, y = blobs(np.random.default_rng(2), 400, 40)
    learner = COMID(rho=0.0, divergence="frobenius").fit(pairs, y)
    assert learner.rank_ > spectral.FIRST_COLUMNS
    assert learner.engine_.banks[0].learners.basis.shape == (1, 41, 40)
    low = COMID(rho=0.3, divergence="frobenius").fit(pairs, y)
    assert low.engine_.banks[0].learners.basis.shape[1] < 41


@pytest.mark.parametrize("n_components", [None, 3])
def test_sparse_rows_agree_with_dense_ones(n_components):
    rng = np.random.default_rng(3)
    points = sp.random(200, 50, density=0.1, random_state=rng, format="csr")
    pairs = rng.integers(200, size=(2000, 2))
    first = points.toarray()[:, 0] > 0
    y = np.where(first[pairs[:, 0]] == first[pairs[:, 1]], 1, -1)
    sparse = COMID(n_components=n_components, preprocessor=points)
    dense = COMID(n_components=n_components, preprocessor=points.toarray())
    np.testing.assert_allclose(sparse.observe(pairs, y), dense.observe(pairs, y), atol=1e-9)
    M = dense.get_mahalanobis_matrix()
    assert np.abs(sparse.get_mahalanobis_matrix() - M).max() < 1e-9 * np.abs(M).max()


@pytest.mark.parametrize(
    ("n_pairs", "n", "settings"),
    [
        (1_000_000, 25, {"divergence": "frobenius"}),
        (100_000, 768, {"n_components": 32}),
        (100_000, 25, {"divergence": "von_neumann"}),
        (100_000, 25, {"divergence": "burg", "rho": 0.001}),
        (1_000_000, 25, {"divergence": "burg"}),
        (1_000_000, 25, {"regularizer": "logdet"}),
    ],
    ids=["n=25", "n=768", "von_neumann", "burg", "burg, no regulariser", "burg, logdet"],
)
def test_long_runs(n_pairs, n, settings):
    """The basis stays orthonormal, M stays PSD, memory does not grow."""
    rng = np.random.default_rng(4)
    pairs, y = blobs(rng, 10_000, n)
    learner = COMID(**settings).fit(pairs, y)
    tracemalloc.start()
    for _ in range(n_pairs // len(y) - 1):
        order = rng.permutation(len(y))
        learner.observe(pairs[order], y[order])
    # Of arrays alone: Python keeps some hundred kB of small objects for later use.
    arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    grown = sum(each.size for each in tracemalloc.take_snapshot().filter_traces([arrays]).traces)
    tracemalloc.stop()
    basis = basis_of(learner)
    assert learner.n_pairs_seen_ == n_pairs
    assert np.abs(basis @ basis.T - np.eye(len(basis))).max() < 1e-10
    assert (learner.engine_.metric(0).values >= 0).all()
    batch = 2 * y.nbytes  # the last permutation and its labels are still alive
    assert grown < batch + 2 * sum(array.nbytes for array in learner.engine_.banks[0].learners)


@pytest.mark.parametrize("rho", [0.01, 0.1, 1e9])
def test_logdet_keeps_features_that_never_differ_in_bounds(rho):
    """Nothing is asked of them: they stay near the start, where M is the identity."""
    pairs, y = blobs(np.random.default_rng(5), 20_000, 6)
    pairs[:, :, 4:] = 7.0
    learner = COMID(regularizer="logdet", rho=rho, scale=None).fit(pairs, y)
    weights = np.diag(learner.get_mahalanobis_matrix())
    assert (weights[4:] < 10.0).all()
    assert (weights > 1e-3).all()
