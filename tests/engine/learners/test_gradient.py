"""Gradient learners: what a step is, by finite differences and the textbook; what is drawn."""

import copy

import numpy as np
import pytest

from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.learners.blocks import block_of
from metrack.engine.learners.gradient import (
    LONGEST_STEP,
    PARTS,
    UNIT,
    GradientBank,
    Pace,
    ask,
)
from metrack.engine.learners.replay import new_minibatch
from metrack.engine.numerics.losses import HINGE
from tests.engine.ensemble.given import dense, ensemble_of, mixture, observe, sparse, state

N, EVERY = 5, 16
PACE = Pace(
    rate=np.array([0.05, 0.1, 0.02]),
    window=np.array([64, 0, 0]),
    mean=np.array([1.0, 200.0, 50.0]),
    replays=np.array([2, 2, 1]),
)


def stream(n_pairs=700, n=N, seed=0, share=0.3):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n_pairs, n))
    return u, np.where(u[:, 0] ** 2 < np.quantile(u[:, 0] ** 2, share), 1.0, -1.0)


def tracker(n=N, pace=PACE, every=EVERY):
    combination = Combination(HINGE, COMBINERS["fixed_share"].record)
    return ensemble_of(n, [GradientBank(n, pace, every)], combination)


def minibatch(seed=1, size=12, n=N, rest=0.0):
    rng = np.random.default_rng(seed)
    found = new_minibatch(size, n)
    found.u[:] = rng.normal(size=(size, n))
    found.y[:] = rng.choice([-2.0, -1.0, 1.0, 0.5], size)
    found.rest[:] = rest
    return found


def loss(L, margin, pairs):
    """The weighted log loss of a minibatch."""
    u, (a, b) = pairs.u.astype(float), margin
    q = (np.sum((u @ L.T) ** 2, axis=1) + pairs.rest) / UNIT
    return np.sum(np.abs(pairs.y) * np.logaddexp(0.0, -np.sign(pairs.y) * (b - a * q)))


def step(L, margin, rate, pairs):
    u = pairs.u
    embedded, margin = u @ L.astype(u.dtype).T, margin.copy()
    ask(margin, rate, pairs, u @ u.T, embedded)
    return L - embedded.T @ u, margin


@pytest.mark.parametrize("rest", [0.0, 0.7])
def test_a_step_follows_the_gradient(rest):
    rng = np.random.default_rng(2)
    L, margin = np.eye(N) + 0.1 * rng.normal(size=(N, N)), np.array([0.8, 1.3])
    pairs, rate, e = minibatch(rest=rest), 1e-3, 1e-6
    moved, new_margin = step(L, margin, rate, pairs)
    for i, k in [(0, 0), (1, 3), (4, 2)]:
        shift = np.zeros((N, N))
        shift[i, k] = e
        slope = (loss(L + shift, margin, pairs) - loss(L - shift, margin, pairs)) / (2 * e)
        assert moved[i, k] - L[i, k] == pytest.approx(-rate * slope, rel=1e-3, abs=1e-6)
    for i in range(2):
        shift = np.zeros(2)
        shift[i] = e
        slope = (loss(L, margin + shift, pairs) - loss(L, margin - shift, pairs)) / (2 * e)
        assert new_margin[i] - margin[i] == pytest.approx(-rate * slope, rel=1e-3)


def test_no_rate_turns_a_factor_round():
    """The longest step leaves I - eH positive: L keeps its rank and its sign."""
    L, margin = np.eye(N), np.array([1.0, 1.0])
    for seed in range(20):
        L, margin = step(L, margin, 1e6, minibatch(seed))
        assert np.isfinite(L).all()
        assert np.linalg.slogdet(L)[0] > 0


def test_a_long_step_is_cut_to_its_length():
    """Where all ask for the same, the power method is exact."""
    pairs = minibatch()
    pairs.u[:] = np.eye(N)[0]
    pairs.y[:] = 1.0
    moved, _ = step(np.eye(N), np.array([1.0, -5.0]), 1e3, pairs)
    assert moved[0, 0] == pytest.approx(1.0 - LONGEST_STEP, rel=1e-5)
    np.testing.assert_allclose(moved[1:, 1:], np.eye(N - 1))


def textbook(u, y, rate, mean):
    """A learner without replays, block by block, in double precision."""
    L = averaged = np.eye(u.shape[1])
    margin, t, found = np.ones(2), 0, []
    while (end := block_of(t, EVERY)[1]) <= len(y):
        own, label = u[t:end], y[t:end]
        a, b = margin
        embedded = own @ L.T
        q = np.sum(embedded**2, axis=1) / UNIT
        pull = label / (1.0 + np.exp(label * (b - a * q)))
        H = (own * (2.0 * a * pull / UNIT)[:, None]).T @ own
        assert np.linalg.norm(own.T @ own, 2) * np.abs(a * pull).max() * rate < LONGEST_STEP
        L = L @ (np.eye(len(H)) - rate * H)
        margin = margin + rate * np.array([-pull @ q, pull.sum()])
        averaged = averaged + min(max((end - t) / mean, PARTS * (end - t) / end), 1.0) * (
            L - averaged
        )
        found.append((end, averaged))
        t = end
    return found


def test_learners_are_the_textbooks():
    u, y = stream(200)
    u *= np.sqrt(0.4)
    pace = Pace(np.array([1e-3]), np.array([8]), np.array([40.0]), np.array([0]))
    ensemble, done = tracker(pace=pace), 0
    for end, averaged in textbook(u, y, 1e-3, 40.0):
        observe(ensemble, u[done:end], y[done:end])
        np.testing.assert_allclose(ensemble.banks[0].learners.mean[0], averaged, atol=1e-6)
        done = end


def test_what_is_predicted_is_what_is_read():
    u, y = stream()
    ensemble = tracker()
    observe(ensemble, u[:650], y[:650])
    p, expected = ensemble.experts.weights, mixture(ensemble)
    said = []
    ensemble.observe(dense(u[650:651], y[650:651]), np.empty(0), said)
    assert p @ said[0][0].q[0] == pytest.approx(expected.squared_distances(u[650:651])[0], rel=1e-9)


def test_calls_of_any_sizes():
    u, y = stream()
    found = []
    for sizes in ((1000,), (1,), (7, 64, 100, 1)):
        ensemble = tracker()
        losses = observe(ensemble, u, y, sizes)
        found.append([losses.tobytes(), state(ensemble)])
    assert found[0] == found[1] == found[2]


def test_sparse_pairs_are_the_dense_ones():
    u, y = stream()
    u *= np.random.default_rng(4).random(u.shape) < 0.6
    losses = tracker().observe(sparse(u, y), np.empty(0))
    np.testing.assert_array_equal(losses, observe(tracker(), u, y))


def test_it_learns():
    u, y = stream(3000)
    losses = observe(tracker(), u, y)
    assert losses[-500:].mean() < 0.5 * losses[:500].mean()


def test_a_turned_basis_turns_the_learners():
    u, y = stream(300)
    ensemble = tracker()
    observe(ensemble, u, y)
    bank = ensemble.banks[0]
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(N, N)))[0]
    other = GradientBank(N, PACE, EVERY)
    other.change_basis(bank, turn)
    p = np.array([0.5, 0.2, 0.3])
    (before, outside), (after, also) = bank.matrix(p), other.matrix(p)
    np.testing.assert_allclose(after, turn.T @ before @ turn, rtol=1e-9, atol=1e-12)
    assert outside == also


def test_more_features_change_nothing_for_the_others():
    u, y = stream(300)
    ensemble = tracker()
    observe(ensemble, u, y)
    wider = tracker(N + 2)
    wider.continue_from(copy.deepcopy(ensemble))
    wider.check()
    p = ensemble.experts.weights
    M = wider.mixture(p).matrix()
    np.testing.assert_allclose(M[:N, :N], ensemble.mixture(p).matrix(), rtol=1e-9)
    np.testing.assert_allclose(M[:N, N:], 0.0, atol=1e-12)
    more = np.hstack([u, np.zeros((len(u), 2))])
    np.testing.assert_allclose(
        observe(wider, more, y), observe(ensemble, u, y), rtol=1e-4, atol=1e-4
    )
