"""Learners on the leading directions of differences, to the textbook."""

import numpy as np
import pytest

from metrack.engine.ensemble.always_on import AlwaysOnBank, Pace
from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.kinds import Target
from metrack.engine.ensemble.leading import EVERY, FIRST, LAST, LeadingBank, next_renewal
from metrack.engine.numerics.losses import HINGE
from tests.engine.ensemble.given import observe, sparse
from tests.reference import basis as textbook

N, WIDTH, MOST = 9, 3, 5
PACE = Pace(
    rate=np.array([0.3, 0.05, 0.1]),
    rho=np.array([0.5, 0.02, 0.0]),
    replays=np.array([3, 5, 0]),
    window=np.array([8, 64, 1]),
    outside=np.array([0.25, 0.25, 1.0]),
)


def stream(n_pairs=1400, n=N, seed=0):
    """Differences of falling variance, which turn half-way; alike by the largest."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n_pairs, n)) * np.arange(1, n + 1) ** -0.7
    u[n_pairs // 2 :] = u[n_pairs // 2 :, ::-1]
    u *= np.sqrt(2.0 / np.mean((u**2).sum(axis=1)))
    size = np.abs(u).max(axis=1)
    return u, np.where(size < np.median(size), 1.0, -1.0)


def tracker(n=N, width=WIDTH):
    combination = Combination(HINGE, COMBINERS["adaptive_share"].record, cap=4.0)
    return Ensemble(n, [LeadingBank(n, width, Target(), PACE)], combination, scaled=False)


def whole(bank, j):
    """A learner's metric of all features."""
    V, L, s = bank.directions.vectors, bank.learners.factor[j], bank.pace.outside[j]
    return V @ (L.T @ L) @ V.T + s * (np.eye(len(V)) - V @ V.T)


def leading(u, width=WIDTH):
    """The directions in which differences are largest, by another way than the bank's."""
    return np.linalg.svd(u)[2][:width].T


def test_directions_are_found_after_128_pairs_and_then_after_every_256():
    times, t = [], 0
    while t < 4 * EVERY:
        times.append(t := next_renewal(t))
    assert times == [FIRST, EVERY, 2 * EVERY, 3 * EVERY, 4 * EVERY]
    assert 2 * FIRST == EVERY


def test_learners_are_the_textbooks():
    u, y = stream()
    bases, t = {0: np.zeros((N, WIDTH))}, 0
    while (t := next_renewal(t)) < len(u):
        bases[t] = leading(u[max(t - LAST, 0) : t])
    ensemble = tracker()
    observe(ensemble, u, y)
    bank = ensemble.banks[0]
    for j, (rate, rho, *pace) in enumerate(zip(*PACE, strict=True)):
        learner = textbook.TargetOnDirections(N, learning_rate=rate, rho=rho)
        given = u / np.sqrt(2.0), y, bases, WIDTH, pace, MOST, len(u)
        M = textbook.follow(learner, *given)[0][-1]
        np.testing.assert_allclose(whole(bank, j), M, rtol=1e-6, atol=1e-8)
        found = ensemble.metric(j).matrix()
        np.testing.assert_allclose(found, M * np.trace(found) / np.trace(M), atol=1e-7)


def test_where_all_features_lead_nothing_is_lost():
    """Turned as it may be, it is the learner of the whole matrix, once there are directions."""
    u, y = stream(n=4)
    bank, plainly = LeadingBank(4, 4, Target(), PACE), AlwaysOnBank(4, Target(), PACE)
    bank.directions.vectors[:] = np.eye(4)
    combination = Combination(HINGE, COMBINERS["adaptive_share"].record, cap=4.0)
    losses = [observe(Ensemble(4, [each], combination, False), u, y) for each in (bank, plainly)]
    np.testing.assert_allclose(*losses, rtol=1e-6, atol=1e-8)
    for j in range(3):
        L = plainly.learners.factor[j]
        np.testing.assert_allclose(whole(bank, j), L.T @ L, rtol=1e-8, atol=1e-8)


def test_before_there_are_directions_it_is_plain_distance():
    u, y = stream(FIRST - 1)
    ensemble = tracker()
    observe(ensemble, u, y)
    M = ensemble.mixture(ensemble.weights).matrix()
    np.testing.assert_allclose(M, M[0, 0] * np.eye(N), atol=1e-12)


def test_calls_of_any_sizes():
    u, y = stream()
    found = []
    for sizes in ((1400,), (1,), (7, 64, 300, 1)):
        ensemble = tracker()
        losses, bank = observe(ensemble, u, y, sizes), ensemble.banks[0]
        arrays = [losses, *bank.directions, *bank.learners, *bank.calibration]
        found.append([array.tobytes() for array in arrays])
    assert found[0] == found[1] == found[2]


def test_sparse_pairs_are_the_dense_ones():
    u, y = stream()
    u *= np.random.default_rng(4).random(u.shape) < 0.6
    losses = tracker().observe(sparse(u, y), np.empty(0))
    np.testing.assert_allclose(losses, observe(tracker(), u, y), rtol=1e-6, atol=1e-8)


def test_pairs_that_span_less_than_the_directions():
    """Directions that are not there are 0, and the metric is plain in all others."""
    u, y = np.zeros((300, N)), stream(300)[1]
    u[:, :2] = stream(300)[0][:, :2]
    ensemble = tracker()
    observe(ensemble, u, y)
    vectors = ensemble.banks[0].directions.vectors
    np.testing.assert_allclose(vectors.T @ vectors, np.diag([1.0, 1.0, 0.0]), atol=1e-12)
    M = ensemble.mixture(ensemble.weights).matrix()
    np.testing.assert_allclose(M[2:, 2:], M[2, 2] * np.eye(N - 2), atol=1e-12)
    np.testing.assert_allclose(M[:2, 2:], 0.0, atol=1e-12)


def test_a_pair_that_is_forgotten_is_not_replayed():
    """All pairs before it are the same: only replays can tell one future from another."""
    u, y = stream(200)
    kept, undone = tracker(), tracker()
    for ensemble in (kept, undone):
        observe(ensemble, u[:150], y[:150])
    assert undone.forget(u[100:150]) == 50
    for ensemble in (kept, undone):
        observe(ensemble, u[150:], y[150:])
    first, second = (whole(ensemble.banks[0], 1) for ensemble in (kept, undone))
    assert np.abs(first - second).max() > 1e-6
    third = [whole(ensemble.banks[0], 2) for ensemble in (kept, undone)]  # replays nothing
    np.testing.assert_array_equal(*third)


def test_with_more_features_it_goes_on():
    u, y = stream()
    narrow, wide = tracker(), tracker(N + 4)
    observe(narrow, u, y)
    wide.continue_from(narrow)
    wide.check()
    for j in range(3):
        M = whole(wide.banks[0], j)
        np.testing.assert_allclose(M[:N, :N], whole(narrow.banks[0], j), atol=1e-12)
        np.testing.assert_allclose(M[N:, N:], PACE.outside[j] * np.eye(4), atol=1e-12)
    with pytest.raises(ValueError, match="directions are of 13 features"):
        wide.banks[0].check(N)


def test_extremes_lead_to_no_nan():
    u, y = stream(600)
    u[::7] *= 1e40
    u[1::7] *= 1e-40
    u[2::7] = 0.0
    ensemble = tracker()
    ensemble.spread = 2.0
    assert np.isfinite(observe(ensemble, u, y)).all()
    assert np.isfinite(ensemble.mixture(ensemble.weights).matrix()).all()
