"""The metric for neighbours, against its formula."""

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power

from metrack.engine.ensemble.similar import (
    ALONG,
    NOISE,
    SHARE,
    SHORTEST,
    Similar,
    follow,
    for_neighbours,
    memory,
    new_similar,
    turned,
    widened,
)
from metrack.engine.numerics.factored import Factored
from tests.engine.learners.given import chunk_of


def covariance(n, rng):
    A = rng.normal(size=(n, 2 * n))
    return A @ A.T


def factored(M, outside=0.0):
    values, vectors = np.linalg.eigh(M)
    return Factored(values, vectors.T, outside)


def textbook(M, S, window):
    """M #_t W = M^(1/2) (M^(-1/2) W M^(-1/2))^t M^(1/2), with the trace of M."""
    n, pairs = len(M), max(SHARE * window, SHORTEST)
    W = np.linalg.inv(S / (np.trace(S) / n) + NOISE * n / pairs * np.eye(n))
    root = fractional_matrix_power(M, 0.5)
    inverse = np.linalg.inv(root)
    found = root @ fractional_matrix_power(inverse @ W @ inverse, ALONG) @ root
    return found * np.trace(M) / np.trace(found)


@pytest.mark.parametrize("window", [1.0, 500.0])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_it_is_on_the_geodesic(n, window):
    rng = np.random.default_rng(n)
    M, S = covariance(n, rng), covariance(n, rng)
    found = for_neighbours(Similar(S, np.zeros(1)), factored(M), window)
    np.testing.assert_allclose(found.matrix(), textbook(M, S, window), rtol=1e-8, atol=1e-8)
    assert (np.diff(found.values) <= 0.0).all()


def test_on_a_basis_it_is_that_of_the_whole_space():
    rng = np.random.default_rng(0)
    inside, n = 3, 8
    M, S = np.diag(np.full(n, 0.7)), np.diag(np.full(n, 2.5))
    M[:inside, :inside], S[:inside, :inside] = covariance(inside, rng), covariance(inside, rng)
    similar = Similar(S[:inside, :inside], np.array([2.5 * (n - inside)]))
    found = for_neighbours(similar, factored(M[:inside, :inside], 0.7), 300.0, n - inside)
    expected = textbook(M, S, 300.0)
    np.testing.assert_allclose(found.outside, expected[-1, -1], rtol=1e-10)
    there = (found.vectors.T * found.values) @ found.vectors
    np.testing.assert_allclose(there, expected[:inside, :inside], rtol=1e-8, atol=1e-8)


def test_what_a_metric_does_not_look_at_stays_unseen():
    rng = np.random.default_rng(1)
    M = np.zeros((4, 4))
    M[:2, :2] = covariance(2, rng)
    found = for_neighbours(Similar(np.eye(4), np.zeros(1)), factored(M), 100.0)
    np.testing.assert_allclose(found.matrix()[2:], 0.0, atol=1e-6)


def test_before_any_similar_pair_it_is_the_metric_itself():
    metric = factored(np.diag([3.0, 1.0]))
    assert for_neighbours(new_similar(2), metric, 100.0) is metric


@pytest.mark.parametrize("whole", [False, True])
def test_what_similar_pairs_show_is_forgotten_over_its_memory(whole):
    """By the weight of each; of what is beyond the features at hand, the trace."""
    rng = np.random.default_rng(2)
    u, y = rng.normal(size=(30, 3)), rng.choice([1.0, -1.0, 0.5, 0.0], 30)
    beyond = rng.random(30) if whole else np.zeros(30)
    longer = (u**2).sum(axis=1) + beyond if whole else np.empty(0)
    memories = memory(rng.uniform(1.0, 500.0, 30))
    found = new_similar(3)
    follow(found, chunk_of(u, y, 0, longer), memories, np.zeros(3))
    S, trace = np.zeros((3, 3)), 0.0
    for row in np.flatnonzero(y > 0.0):
        kept = 1.0 - 1.0 / memories[row]
        S = kept * S + y[row] * np.outer(u[row], u[row])
        trace = kept * trace + y[row] * beyond[row]
    np.testing.assert_allclose(found.scatter, S, rtol=1e-12)
    np.testing.assert_allclose(found.outside, trace, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(memory(1.0), SHORTEST)
    np.testing.assert_allclose(memory(500.0), 500.0 * SHARE)


def test_a_turn_keeps_the_trace():
    """What was beyond is the same in all directions that are taken up; what goes is beyond then."""
    rng = np.random.default_rng(3)
    similar = Similar(covariance(3, rng), np.array([2.0]))
    wider = widened(similar, 2, 5)
    np.testing.assert_allclose(wider.scatter[:3, :3], similar.scatter)
    np.testing.assert_allclose(wider.scatter[3:, 3:], 0.4 * np.eye(2))
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0][:, :3]
    found = turned(wider, turn)
    np.testing.assert_allclose(found.scatter, turn.T @ wider.scatter @ turn)
    for each in (wider, found):
        assert np.trace(each.scatter) + each.outside == pytest.approx(
            np.trace(similar.scatter) + 2.0
        )
