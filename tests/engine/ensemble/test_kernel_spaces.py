"""Spaces under one combiner: changes of features, when landmarks are renewed, what is weighed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from metrack.engine.ensemble import kernel_spaces
from metrack.engine.ensemble.kernel_spaces import block_of
from metrack.engine.numerics.pairs import Pairs, PointPairs
from metrack.estimators.kernel_tracker import KernelTracker
from tests.engine.ensemble.test_basis import dense, stream, tracker

EMPTY = np.empty(0, np.int64)


def point_pairs(X, Z, y):
    def rows(points):
        return Pairs(points.ravel().copy(), np.arange(points.shape[1]), EMPTY, y)

    return PointPairs(rows(X), rows(Z), rows(X - Z))


def moving(n_pairs, speed, n=3, seed=0):
    """Points of three clusters that move together; alike are those of the same cluster."""
    rng = np.random.default_rng(seed)
    which = rng.integers(3, size=(n_pairs, 2))
    points = np.eye(n)[which] * 3.0 + rng.normal(size=(n_pairs, 2, n)) * 0.3
    points += speed * np.arange(n_pairs)[:, None, None]
    y = np.where(which[:, 0] == which[:, 1], 1.0, -1.0)
    return point_pairs(points[:, 0], points[:, 1], y)


def learned(n_landmarks=16, n=3, **settings):
    return KernelTracker(n_landmarks=n_landmarks, **settings).resolve(n).build()


def matrices(ensemble):
    """M of each learner on all features, and its factor beyond its directions."""
    found = []
    for j in range(len(ensemble.experts.length)):
        metric = ensemble.metric(j)
        found.append((metric.matrix(), metric.outside))
    return found


@pytest.mark.parametrize("n_pairs", [3, 300])  # some directions are in use, or all
def test_a_change_of_features_is_exact_where_the_new_ones_span_the_old(n_pairs):
    ensemble, (u, y) = tracker(scaled=True), stream(n_pairs)
    ensemble.observe(dense(u, y), np.empty(0))
    n = u.shape[1]
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(n, n)))[0]
    before, coordinates = matrices(ensemble), ensemble.recent.u @ ensemble.basis.vectors.T
    weights = ensemble.weights
    ensemble.change_features(turn)
    for (M, outside), (new, as_before) in zip(before, matrices(ensemble), strict=True):
        assert_allclose(new, turn @ M @ turn.T, atol=1e-10 * np.abs(M).max())
        assert as_before == pytest.approx(outside)
    # So are pairs that are replayed, and nothing else is touched.
    known = ensemble.recent.u @ ensemble.basis.vectors.T
    assert_allclose(known, coordinates @ turn.T, atol=1e-10)
    assert_array_equal(ensemble.weights, weights)
    ensemble.check()


def test_else_metrics_are_restricted_to_the_new_span():
    ensemble, (u, y) = tracker(scaled=True), stream(300)
    ensemble.observe(dense(u, y), np.empty(0))
    rng = np.random.default_rng(2)
    n = u.shape[1]
    # Products of the basis vectors of two spans of a larger space.
    old, new = (np.linalg.qr(rng.normal(size=(2 * n, n)))[0] for _ in range(2))
    change = new.T @ old
    expected = [
        outside * np.eye(n) + change @ (M - outside * np.eye(n)) @ change.T
        for M, outside in matrices(ensemble)
    ]
    ensemble.change_features(change)
    for M, (found, _) in zip(expected, matrices(ensemble), strict=True):
        assert_allclose(found, M, atol=1e-10 * np.abs(M).max())
    ensemble.observe(dense(u, y), np.empty(0))  # and learning goes on
    ensemble.check()


def test_directions_of_which_nothing_is_left_are_free_again():
    ensemble, (u, y) = tracker(scaled=True), stream(300)
    ensemble.observe(dense(u, y), np.empty(0))
    ensemble.change_features(np.zeros((u.shape[1], u.shape[1])))
    assert not ensemble.basis.vectors.any()
    for M, outside in matrices(ensemble):
        assert_allclose(M, outside * np.eye(len(M)), atol=1e-12)
    ensemble.observe(dense(u, y), np.empty(0))
    assert ensemble.basis.vectors.any()


def test_blocks_end_where_pairs_double_and_then_after_every_256():
    ends, t = [], 0
    while t < 2048:
        t = block_of(t)
        ends.append(t)
    assert ends == [1, 2, 4, 8, 16, 32, 64, 128, *range(256, 2049, 256)]


def test_landmarks_move_with_the_points_and_nothing_is_forgotten():
    ensemble = learned()
    ensemble.observe_points(moving(1024, 0.0), np.empty(0))
    before = ensemble.landmarks
    ensemble.observe_points(moving(2560, 0.003), np.empty(0))
    after = ensemble.landmarks
    assert_array_equal(after.roots, before.roots)  # the same landmarks, elsewhere
    gone = (after.points - before.points)[:, : after.used[0]]
    assert_allclose(gone, gone[:, :1] * np.ones(gone.shape[1]), atol=1e-9)
    assert_allclose(gone[0, 0], 0.003 * 2432, rtol=0.1)  # the mean of the last pairs'


def test_points_that_move_apart_get_new_landmarks(monkeypatch):
    ensemble = learned(n_landmarks=32, n=2)
    ensemble.observe_points(_cross(2048, 0.0), np.empty(0))
    before = ensemble.landmarks
    ensemble.observe_points(_cross(2048, 0.01), np.empty(0))
    assert (ensemble.landmarks.roots != before.roots).any()
    assert np.abs(ensemble.landmarks.points).max() > np.abs(before.points).max()
    monkeypatch.setattr(kernel_spaces, "MOVED_AWAY", 1.0)
    other = learned(n_landmarks=32, n=2)
    other.observe_points(_cross(2048, 0.0), np.empty(0))
    other.observe_points(_cross(2048, 0.01), np.empty(0))
    assert_array_equal(other.landmarks.roots, before.roots)


def _cross(n_pairs, speed, seed=3):
    """Two clusters that leave each other; their mean stays."""
    rng = np.random.default_rng(seed)
    which = rng.choice([-1.0, 1.0], size=(n_pairs, 2))
    points = rng.normal(size=(n_pairs, 2, 2))
    points[..., 0] += which * (1.0 + speed * np.arange(n_pairs)[:, None])
    return point_pairs(points[:, 0], points[:, 1], np.where(which[:, 0] == which[:, 1], 1.0, -1.0))


def test_the_mixture_is_over_the_experts_of_all_spaces():
    ensemble = learned()
    pairs = moving(600, 0.0)
    losses = ensemble.observe_points(pairs, np.empty(0))
    p = ensemble.weights
    assert len(p) == sum(len(space.experts.length) for space in ensemble.spaces)
    assert p.sum() == pytest.approx(1.0)
    assert losses[-100:].mean() < losses[:100].mean()
    fresh = moving(50, 0.0, seed=9)
    x, z = fresh.x.u.reshape(50, -1), fresh.z.u.reshape(50, -1)
    seen = [a - b for a, b in zip(ensemble.features(x), ensemble.features(z), strict=True)]
    q = sum(m.squared_distances(u) for m, u in zip(ensemble.mixtures(p), seen, strict=True))
    suffered = np.maximum(0.0, 1.0 - fresh.u.y * (p @ ensemble.mu - q))
    first = ensemble.observe_points(fresh.part(0, 1), np.empty(0))
    assert_allclose(first, suffered[:1], rtol=1e-9, atol=1e-9)


def test_the_linear_spaces_learn_as_if_they_were_alone():
    ensemble, pairs = learned(), moving(300, 0.0)
    other = KernelTracker().resolve(3).linear.build()
    ensemble.observe_points(pairs, np.empty(0))
    other.observe(pairs.u, np.empty(0))
    for space, alone in zip(ensemble.spaces, other.spaces, strict=False):
        assert_array_equal(space.weights, alone.weights)
        for bank, same in zip(space.banks, alone.banks, strict=True):
            assert_array_equal(bank.mu, same.mu)
