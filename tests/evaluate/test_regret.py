"""Regret against brute-force sums; the best fixed metric against a convex solver."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metrack import COMID
from metrack.evaluate import (
    adaptive_regret,
    best_fixed,
    comparator_losses,
    dynamic_regret,
    interval_regret,
    path_length,
    static_regret,
)
from metrack.streams import DriftingClusters
from tests.reference.comid import LOSSES as TEXTBOOK

LOSS = st.floats(0, 100, width=32)


@st.composite
def played(draw):
    """Losses of a learner (T,), and of some comparators (k, T)."""
    n_rounds, n_rivals = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    losses = draw(arrays(np.float64, n_rounds, elements=LOSS))
    return losses, draw(arrays(np.float64, (n_rivals, n_rounds), elements=LOSS))


def brute(losses, rivals, start, stop):
    return sum(losses[start:stop]) - min(sum(rival[start:stop]) for rival in rivals)


@given(played())
def test_static_regret_is_that_of_the_best_so_far(game):
    losses, rivals = game
    expected = [brute(losses, rivals, 0, t + 1) for t in range(len(losses))]
    np.testing.assert_allclose(static_regret(losses, rivals), expected, atol=1e-9)
    np.testing.assert_allclose(
        dynamic_regret(losses, rivals[0]), static_regret(losses, rivals[0]), atol=1e-9
    )


@given(played())
def test_regret_on_every_interval_is_that_of_brute_force(game):
    losses, rivals = game
    n = len(losses)
    table = interval_regret(losses, rivals)
    intervals = [(start, stop) for start in range(n) for stop in range(start + 1, n + 1)]
    expected = np.array([brute(losses, rivals, *each) for each in intervals])
    np.testing.assert_allclose([table[each] for each in intervals], expected, atol=1e-9)
    np.testing.assert_allclose(interval_regret(losses, rivals, intervals), expected, atol=1e-9)
    assert np.isnan(table).sum() == table.size - len(intervals)
    lengths = np.array([stop - start for start, stop in intervals])
    worst = [expected[lengths == length].max() for length in range(1, n + 1)]
    np.testing.assert_allclose(adaptive_regret(losses, rivals, range(1, n + 1)), worst, atol=1e-9)


@pytest.mark.parametrize("loss", TEXTBOOK)
def test_comparators_are_judged_by_the_textbook(loss):
    rng = np.random.default_rng(0)
    pairs, y = rng.normal(size=(30, 2, 4)), rng.choice([-1, 1], 30)
    factors, mu = rng.normal(size=(30, 4, 4)), rng.uniform(1, 3, 30)
    M = factors @ factors.transpose(0, 2, 1)
    value = TEXTBOOK[loss][0]
    expected = []
    for t in range(30):
        u = pairs[t, 0] - pairs[t, 1]
        expected.append(value(1 - y[t] * (mu[t] - u @ M[t] @ u)))
    for comparator in [(M, mu), lambda t: (M[t], mu[t])]:
        np.testing.assert_allclose(comparator_losses(pairs, y, comparator, loss), expected)
    fixed = comparator_losses(pairs, y, (M[0], mu[0]), loss)
    assert fixed[0] == pytest.approx(expected[0])
    np.testing.assert_allclose(fixed, comparator_losses(pairs, y, (M[[0] * 30], mu[0]), loss))


def test_a_learner_that_does_not_move_has_no_regret_against_its_own_metric():
    pairs, y = DriftingClusters().pairs(0, 600)
    learner = COMID(learning_rate=1e-12, scale=None).fit(pairs[:300], y[:300])
    now = learner.get_mahalanobis_matrix(), learner.mu_
    losses = learner.observe(pairs[300:], y[300:])
    own = comparator_losses(pairs[300:], y[300:], now)
    np.testing.assert_allclose(dynamic_regret(losses, own), 0, atol=1e-4)


def test_path_length_of_arrays_functions_and_streams():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(20, 3, 3))
    expected = [sum(np.linalg.norm(M[s + 1] - M[s]) for s in range(t)) for t in range(20)]
    np.testing.assert_allclose(path_length(M), expected)
    np.testing.assert_allclose(path_length(lambda t: M[t], 20), expected)
    np.testing.assert_allclose(path_length(lambda t: (M[t], 1.0), 20), expected)
    stream = DriftingClusters(n_points=50)
    rates = stream.rate_of_change()[:1600]
    np.testing.assert_allclose(path_length(stream.metric, 1600), np.cumsum(rates), atol=1e-6)


def noisy(rng, n_features):
    pairs = rng.normal(size=(300, 2, n_features)) * rng.uniform(0.3, 3, n_features)
    gap = np.abs(pairs[:, 0] - pairs[:, 1])[:, 0]
    y = np.where(gap < np.median(gap), 1, -1)
    return pairs, np.where(rng.random(300) < 0.1, -y, y)


CONVEX = {
    "hinge": lambda m: cp.pos(1 - m),
    "squared_hinge": lambda m: cp.square(cp.pos(1 - m)) / 2,
    "logistic": lambda m: cp.logistic(-m),
    "least_squares": lambda m: cp.square(1 - m) / 2,
}


@pytest.mark.parametrize("rho", [0.01, 0.001])
@pytest.mark.parametrize("loss", CONVEX)
def test_best_fixed_is_that_of_a_convex_solver(loss, rho):
    pairs, y = noisy(np.random.default_rng(1), 5)
    u = pairs[:, 0] - pairs[:, 1]
    unit = np.mean(np.sum(u**2, axis=1))
    M, mu = cp.Variable((5, 5), PSD=True), cp.Variable()
    q = cp.sum(cp.multiply(u @ M, u), axis=1) / unit
    value = cp.sum(CONVEX[loss](cp.multiply(y, mu - q))) / len(y) + rho * cp.trace(M)
    lowest = cp.Problem(cp.Minimize(value), [mu >= 1]).solve()
    found = best_fixed(pairs, y, loss=loss, rho=rho)
    assert lowest * (1 - 1e-4) < found.objective < 1.01 * lowest
    np.testing.assert_allclose(
        found.losses, comparator_losses(pairs, y, (found.M, found.mu), loss), atol=1e-9
    )
    penalty = rho * unit * np.trace(found.M)
    assert found.objective == pytest.approx(found.losses.mean() + penalty)
    assert np.linalg.eigvalsh(found.M).min() > -1e-9
    assert found.mu >= 1


def test_best_fixed_does_not_depend_on_units():
    pairs, y = noisy(np.random.default_rng(2), 3)
    one, other = best_fixed(pairs, y), best_fixed(1000 * pairs, y)
    np.testing.assert_allclose(one.losses, other.losses, atol=1e-6)
    np.testing.assert_allclose(one.M, 1e6 * other.M, rtol=1e-6, atol=1e-9)


def test_best_fixed_bounds_a_learner_from_below():
    """No metric that COMID went through has a lower objective."""
    pairs, y = noisy(np.random.default_rng(3), 4)
    unit = np.mean(np.sum((pairs[:, 0] - pairs[:, 1]) ** 2, axis=1))
    found = best_fixed(pairs, y)
    learner = COMID(schedule="invsqrt")
    for _ in range(20):
        learner.partial_fit(pairs, y)
        M, mu = learner.get_mahalanobis_matrix(), learner.mu_
        mean = comparator_losses(pairs, y, (M, mu)).mean()
        assert mean + 0.01 * unit * np.trace(M) > found.objective


def test_pairs_of_equal_points_are_no_obstacle():
    found = best_fixed(np.ones((4, 2, 3)), [1, 1, -1, -1], n_iterations=20)
    assert np.isfinite(found.losses).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: static_regret([], []), "losses must be 1-D"),
        (lambda: static_regret([1.0, np.nan], [1.0, 1.0]), r"losses\[1\] is not finite"),
        (lambda: dynamic_regret([1.0, 2.0], [1.0]), r"must have shape \(2,\)"),
        (lambda: dynamic_regret([1.0, 2.0], np.ones((2, 2))), r"must have shape \(2,\)"),
        (lambda: interval_regret([1.0], [1.0], [(0, 2)]), r"intervals\[0\] = \(0, 2\)"),
        (lambda: interval_regret([1.0], [1.0], [(0.0, 1.0)]), "whole numbers"),
        (lambda: adaptive_regret([1.0], [1.0], [2]), "a length is 2"),
        (lambda: path_length(lambda t: np.eye(2)), "n_rounds is None"),
        (lambda: comparator_losses(np.ones((3, 2, 2)), [1, 1, 1], (np.eye(3), 1)), "metric must"),
        (
            lambda: comparator_losses(np.ones((3, 2, 2)), [1, 1, 1], (np.eye(2), [1, 1])),
            "threshold must",
        ),
        (lambda: comparator_losses(np.ones((1, 2, 2)), [2], (np.eye(2), 1)), r"y\[0\] = 2"),
        (lambda: best_fixed(np.ones((1, 2, 2)), [1], rho=-1), "rho is -1"),
        (lambda: best_fixed(np.ones((1, 2, 2)), [1], loss="hing"), "loss"),
    ],
)
def test_bad_input_says_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()
