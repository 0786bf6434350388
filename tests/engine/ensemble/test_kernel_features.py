"""Spaces under one combiner: changes of features, when landmarks are renewed, what is weighed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from metrack.engine.ensemble import kernel_features, landmarks
from metrack.engine.numerics.pairs import Pairs, PointPairs
from metrack.estimators.kernel_tracker import KernelTracker
from metrack.estimators.metric_tracker import MetricTracker
from tests.engine.ensemble.given import dense, state
from tests.engine.ensemble.test_basis import stream, tracker

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
    for j in range(len(ensemble.experts.known.length)):
        metric = ensemble.metric(j)
        found.append((metric.matrix(), metric.outside))
    return found


def as_seen(ensemble):
    """The last pairs, by the features of the one space."""
    space = ensemble.spaces[0]
    return space.memory.recent.u @ space.basis.vectors.T


def change_features(ensemble, change):
    ensemble.spaces[0].change_features(change, ensemble.n_pairs)


@pytest.mark.parametrize("n_pairs", [3, 300])  # some directions are in use, or all
def test_a_change_of_features_is_exact_where_the_new_ones_span_the_old(n_pairs):
    ensemble, (u, y) = tracker(scaled=True), stream(n_pairs)
    ensemble.observe(dense(u, y), np.empty(0))
    n = u.shape[1]
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(n, n)))[0]
    before, coordinates = matrices(ensemble), as_seen(ensemble)
    weights = ensemble.experts.weights
    change_features(ensemble, turn)
    for (M, outside), (new, as_before) in zip(before, matrices(ensemble), strict=True):
        assert_allclose(new, turn @ M @ turn.T, atol=1e-10 * np.abs(M).max())
        assert as_before == pytest.approx(outside)
    # So are pairs that are replayed, and nothing else is touched.
    assert_allclose(as_seen(ensemble), coordinates @ turn.T, atol=1e-10)
    assert_array_equal(ensemble.experts.weights, weights)
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
    change_features(ensemble, change)
    for M, (found, _) in zip(expected, matrices(ensemble), strict=True):
        assert_allclose(found, M, atol=1e-10 * np.abs(M).max())
    ensemble.observe(dense(u, y), np.empty(0))  # and learning goes on
    ensemble.check()


def test_directions_of_which_nothing_is_left_are_free_again():
    ensemble, (u, y) = tracker(scaled=True), stream(300)
    ensemble.observe(dense(u, y), np.empty(0))
    change_features(ensemble, np.zeros((u.shape[1], u.shape[1])))
    assert not ensemble.spaces[0].basis.vectors.any()
    for M, outside in matrices(ensemble):
        assert_allclose(M, outside * np.eye(len(M)), atol=1e-12)
    ensemble.observe(dense(u, y), np.empty(0))
    assert ensemble.spaces[0].basis.vectors.any()


def test_landmarks_move_with_the_points_and_nothing_is_forgotten():
    ensemble = learned()
    ensemble.observe(moving(1024, 0.0), np.empty(0))
    before = ensemble.kernel.landmarks
    ensemble.observe(moving(2560, 0.003), np.empty(0))
    after = ensemble.kernel.landmarks
    assert_array_equal(after.roots, before.roots)  # the same landmarks, elsewhere
    gone = (after.points - before.points)[:, : after.used[0]]
    assert_allclose(gone, gone[:, :1] * np.ones(gone.shape[1]), atol=1e-9)
    assert_allclose(gone[0, 0], 0.003 * 2432, rtol=0.1)  # the mean of the last pairs'


def test_points_that_move_apart_get_new_landmarks(monkeypatch):
    ensemble = learned(n_landmarks=32, n=2)
    ensemble.observe(_cross(2048, 0.0), np.empty(0))
    before = ensemble.kernel.landmarks
    ensemble.observe(_cross(2048, 0.01), np.empty(0))
    assert (ensemble.kernel.landmarks.roots != before.roots).any()
    assert np.abs(ensemble.kernel.landmarks.points).max() > np.abs(before.points).max()
    monkeypatch.setattr(kernel_features, "MOVED_AWAY", 1.0)
    other = learned(n_landmarks=32, n=2)
    other.observe(_cross(2048, 0.0), np.empty(0))
    other.observe(_cross(2048, 0.01), np.empty(0))
    assert_array_equal(other.kernel.landmarks.roots, before.roots)


def _cross(n_pairs, speed, seed=3):
    """Two clusters that leave each other; their mean stays."""
    rng = np.random.default_rng(seed)
    which = rng.choice([-1.0, 1.0], size=(n_pairs, 2))
    points = rng.normal(size=(n_pairs, 2, 2))
    points[..., 0] += which * (1.0 + speed * np.arange(n_pairs)[:, None])
    return point_pairs(points[:, 0], points[:, 1], np.where(which[:, 0] == which[:, 1], 1.0, -1.0))


def seen_by(ensemble, x, z):
    """Differences as all spaces see them, of this moment."""
    rule, known = ensemble.kernel.rule, ensemble.kernel.landmarks
    features = zip(*(landmarks.features(rule, known, points) for points in (x, z)), strict=True)
    return [x - z, *(a - b for a, b in features)]


def test_the_mixture_is_over_the_experts_of_all_spaces():
    ensemble = learned()
    pairs = moving(600, 0.0)
    losses = ensemble.observe(pairs, np.empty(0))
    p = ensemble.experts.weights
    assert len(p) == sum(len(bank.mu) for space in ensemble.spaces for bank in space.banks)
    assert p.sum() == pytest.approx(1.0)
    assert losses[-100:].mean() < losses[:100].mean()
    fresh = moving(50, 0.0, seed=9)
    seen = seen_by(ensemble, fresh.x.u.reshape(50, -1), fresh.z.u.reshape(50, -1))
    metrics = [ensemble.mixture(p), *ensemble.of_kernel(p)]
    q = sum(m.squared_distances(u) for m, u in zip(metrics, seen, strict=True))
    suffered = np.maximum(0.0, 1.0 - fresh.u.y * (p @ ensemble.mu - q))
    first = ensemble.observe(fresh.part(0, 1), np.empty(0))
    assert_allclose(first, suffered[:1], rtol=1e-9, atol=1e-9)


def test_the_spaces_of_differences_learn_as_if_they_were_alone():
    """But for the order of directions of a basis, by which numbers are rounded."""
    ensemble, pairs = learned(), moving(300, 0.0)
    other = MetricTracker().resolve(3).build()
    ensemble.observe(pairs, np.empty(0))
    other.observe(pairs.u, np.empty(0))
    for space, alone in zip(ensemble.spaces, other.spaces, strict=False):
        for bank, same in zip(space.banks, alone.banks, strict=True):
            assert bank.name == same.name
            assert_allclose(bank.mu, same.mu, rtol=1e-6)


def test_calls_of_any_sizes():
    pairs, found = moving(300, 0.0), []
    for sizes in ((300,), (1,), (7, 64, 1)):
        ensemble, losses, call = learned(), [], 0
        while ensemble.n_pairs < 300:
            stop = min(ensemble.n_pairs + sizes[call % len(sizes)], 300)
            losses.append(ensemble.observe(pairs.part(ensemble.n_pairs, stop), np.empty(0)))
            call += 1
        found.append([np.concatenate(losses).tobytes(), state(ensemble)])
    assert found[0] == found[1] == found[2]
