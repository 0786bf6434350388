"""Moment learners, to the textbook and to what is known of noise in covariances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrack.engine.learners.bank import Predictions
from metrack.engine.learners.blocks import block_of
from metrack.engine.learners.moment import (
    FIRST,
    OFTEN,
    PLAIN,
    MomentBank,
    forms,
    radius,
)
from tests.engine.ensemble.given import dense, ensemble_of, mixture, observe, sparse, state
from tests.reference import kinds as textbook

N = 5
MEMORIES = np.array([30.0, 400.0])


def stream(n_pairs=330, n=N, seed=0):
    """Similar pairs differ little in the first feature; some pairs count less, or more."""
    rng = np.random.default_rng(seed)
    y = rng.choice([1.0, -1.0], n_pairs)
    u = rng.normal(size=(n_pairs, n)) * np.linspace(0.5, 1.5, n)
    u[y < 0.0, 0] *= 4.0
    weights = np.where(np.arange(n_pairs) % 7 == 0, rng.uniform(0.1, 2.0, n_pairs), 1.0)
    return u * np.sqrt(2.0 / np.mean((u**2).sum(axis=1))), y * weights


def tracker(n=N, scaled=False):
    return ensemble_of(n, [MomentBank(n, MEMORIES)], scaled=scaled)


def blocks(n_pairs, longest=OFTEN):
    """All whole ones."""
    found = [(0, FIRST)]
    while (following := block_of(found[-1][1], longest, FIRST))[1] <= n_pairs:
        found.append(following)
    return found


def test_blocks_grow_until_there_are_as_many_pairs_as_features():
    assert blocks(300) == [(0, 8), (8, 16), (16, 32), (32, 64), (64, 128), (128, 192), (192, 256)]
    assert [MomentBank(n, MEMORIES).recent for n in (3, 32, 33)] == [64, 64, 128]
    assert [MomentBank(n, MEMORIES, every=100).recent for n in (3, 64, 65)] == [128, 128, 256]


def test_metrics_are_the_textbooks():
    u, y = stream()
    ensemble, whole = tracker(), blocks(len(y))
    observe(ensemble, u, y)
    learned = whole[-1][1]
    found = ensemble.banks[0].learners.metric
    for k, memory in enumerate(MEMORIES):
        book = textbook.DenseMoments(memory).metrics(u[:learned], y[:learned], whole)
        np.testing.assert_allclose(found[2 * k : 2 * k + 2], book, rtol=1e-8, atol=1e-10)


def test_a_block_is_predicted_by_the_pairs_before_it():
    u, y = stream()
    y, said, whole = np.sign(y), [], blocks(len(y))
    tracker().observe(dense(u, y), np.empty(0), said)
    found = Predictions(*map(np.concatenate, zip(*(bank for bank, *_ in said), strict=True)))
    for k, memory in enumerate(MEMORIES):
        q = np.tile((u**2).sum(axis=1)[:, None], 2)  # plain distance at first
        for i, (_, learned) in enumerate(whole):
            metrics = textbook.DenseMoments(memory).metrics(
                u[:learned], y[:learned], whole[: i + 1]
            )
            q[learned:] = np.einsum("ij,ljk,ik->il", u[learned:], metrics, u[learned:])
        for form in range(2):
            expected = textbook.calibrated(q[:, form], y)
            np.testing.assert_allclose(found.q[:, 2 * k + form], expected[:, 0], rtol=1e-7)
            np.testing.assert_allclose(found.mu[:, 2 * k + form], expected[:, 1], rtol=1e-7)


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
    np.testing.assert_allclose(losses, observe(tracker(), u, y), rtol=1e-8, atol=1e-10)


def test_covariances_that_are_the_same_say_nothing():
    S = np.diag([1.0, 2.0, 5.0])
    for form in forms(S, S, np.array([50.0, 50.0])):
        np.testing.assert_array_equal(form, 0.0)


@pytest.mark.parametrize("sizes", [(400, 400), (300, 900)])
def test_noise_goes_as_far_as_the_semicircle(sizes):
    """The largest eigenvalue of a difference of two covariances, both of them I: near the edge.

    It is off by some n^(-2/3) of it, far less than allowed here.
    """
    n, rng = 40, np.random.default_rng(1)
    for _ in range(5):
        S, D = (np.cov(rng.normal(size=(n, N)), bias=True) for N in sizes)
        largest = np.linalg.eigvalsh(D - S)[-1]
        assert 0.75 < largest / radius(n, np.array(sizes)) < 1.25


@given(st.integers(0, 1000), st.floats(30.0, 1e4), st.integers(2, 8))
def test_forms_follow_the_features_and_know_no_units(seed, n_pairs, n):
    rng = np.random.default_rng(seed)
    S, D = (A @ A.T for A in rng.normal(size=(2, n, 2 * n)))
    turn, N = np.linalg.qr(rng.normal(size=(n, n)))[0], np.array([n_pairs, n_pairs])
    turned = forms(turn @ (7.0 * S) @ turn.T, turn @ (7.0 * D) @ turn.T, N)
    for form, again in zip(forms(S, D, N), turned, strict=True):
        np.testing.assert_allclose(turn @ form @ turn.T, again, atol=1e-8)
        assert np.linalg.eigvalsh(form).min() >= -1e-10  # a metric, whatever S and D are
    assert np.linalg.eigvalsh(forms(S, D, N)[1]).max() < 1.0


def test_the_direction_in_which_pairs_differ_is_found():
    u, y = stream()
    ensemble = tracker()
    observe(ensemble, u, y)
    for metric in ensemble.banks[0].learners.metric:
        assert abs(np.linalg.eigh(metric)[1][0, -1]) > 0.9


def test_similar_pairs_that_are_the_same_and_pairs_of_zeros():
    u, y = stream()
    for same in (u * (y < 0.0)[:, None], np.zeros_like(u)):
        ensemble = tracker()
        assert np.isfinite(observe(ensemble, same, y)).all()
        assert np.isfinite(mixture(ensemble).matrix()).all()


def test_extremes_lead_to_no_nan():
    u, y = stream(600)
    u[::7] *= 1e40
    u[1::7] *= 1e-40
    for scaled in (False, True):
        ensemble = tracker(scaled=scaled)
        assert np.isfinite(observe(ensemble, u, y)).all()
        assert np.isfinite(mixture(ensemble).matrix()).all()


def test_a_pair_that_is_forgotten_in_time_is_not_learned():
    u, y = stream(192)
    undone, never = tracker(), tracker()
    observe(undone, u[:150], y[:150])
    assert undone.forget(dense(u[130:150], np.zeros(20))) == 20
    observe(undone, u[150:], y[150:])
    y[130:150] = 0.0
    observe(never, u, y)
    for found, expected in zip(undone.banks[0].learners, never.banks[0].learners, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_with_more_features_it_goes_on():
    u, y = stream()
    narrow, wide = tracker(), tracker(N + 3)
    observe(narrow, u, y)
    wide.continue_from(narrow)
    wide.check()
    here, there = narrow.banks[0].learners, wide.banks[0].learners
    np.testing.assert_array_equal(there.metric[:, :N, :N], here.metric)
    np.testing.assert_array_equal(there.metric[0, N:, N:], PLAIN * np.eye(3))
    assert np.isfinite(observe(wide, np.pad(u, ((0, 0), (0, 3))), y)).all()


def test_a_state_of_other_learners_is_refused():
    bank = MomentBank(N, MEMORIES)
    bank.memory = np.array([30.0])
    with pytest.raises(ValueError, match="1 memories for 4 moment learners"):
        bank.check(N)
    bank = MomentBank(N, MEMORIES)
    bank.calibration = MomentBank(N, np.array([30.0])).calibration
    with pytest.raises(ValueError, match="2 scales of moment learners, expected 4"):
        bank.check(N)
    bank = MomentBank(N, MEMORIES)
    bank.learners.scatter[1, 0, 2, 2] = -1.0
    with pytest.raises(ValueError, match="negative eigenvalues"):
        bank.check(N)
