"""Votes of neighbours and trust in them, held against numpy."""

import numpy as np
import pytest

from metrack.engine.online.neighbour_votes import NEIGHBOURS, NeighbourVotes, windows_up_to
from metrack.engine.online.votes import N_ROWS, _loss


def stream(n_points, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n_points)
    points = rng.normal(size=(n_points, 4))
    points[:, 0] += 2.0 * codes
    points[::17] = points[::-17][: len(points[::17])]  # some points come twice
    return points, codes


def test_windows_are_nested():
    assert windows_up_to(5000).tolist() == [8, 40, 200, 1000, 5000]
    assert windows_up_to(24).tolist() == [24]
    assert windows_up_to(1).tolist() == [1]


def shares(far, codes, k):
    """What each class has of the vote of the k nearest."""
    nearest = np.argsort(far, kind="stable")[:k]
    equal = far[nearest] == 0.0
    weights = equal.astype(float) if equal.any() else 1.0 / far[nearest]
    return np.bincount(codes[nearest], weights / weights.sum(), minlength=3)


def test_predictions_are_the_experts_by_their_weights():
    points, codes = stream(300)
    votes = NeighbourVotes(4, 200)
    votes.observe(points, codes, np.arange(3))
    units, columns = np.array([1.0, 2.0, 0.5, 1.0]), np.random.default_rng(1).normal(size=(4, 3))
    votes.look(units, columns)
    votes.embed_by(columns)
    queries, weights = stream(20, seed=1)[0], votes.weights
    memory, expected = votes.memory, np.zeros((20, 3))
    order = np.argsort(-memory.arrived, kind="stable")
    for metric, map_ in enumerate((np.eye(4), np.diag(units), columns)):
        for window, length in enumerate([*votes.table.windows, len(order)]):
            rows = order[:length]
            for i, query in enumerate(queries):
                far = np.sqrt((((memory.points[rows] - query) @ map_) ** 2).sum(axis=1))
                for k, weight in zip(NEIGHBOURS, weights[metric, window], strict=True):
                    expected[i] += weight * shares(far, memory.codes[rows], k)
    np.testing.assert_allclose(votes.predict_proba(queries, 3), expected, atol=1e-9)
    assert weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("codes", [[0, 0, 1], [2, 1, 0], [1, 1, 1], [-1, -1, -1]])
def test_losses_are_half_the_brier_score(codes):
    weights = np.array([0.5, 0.3, 0.2]) * (codes[0] >= 0)
    p = np.zeros(3)
    for code, weight in zip(codes, weights, strict=True):
        p[max(code, 0)] += weight
    expected = 0.5 * ((p - np.eye(3)[1]) ** 2).sum()
    assert _loss.py_func(weights, np.array(codes), 3, 1) == pytest.approx(expected)


def test_trust_goes_to_who_predicts():
    """Only the first feature tells; another metric hides it."""
    points, codes = stream(2000)
    votes = NeighbourVotes(4, 1000)
    columns = np.diag([0.0, 1.0, 1.0, 1.0])
    votes.embed_by(columns)
    votes.observe(points, codes, np.arange(3))
    given, own, tracked = votes.weights.sum(axis=(1, 2))
    assert tracked < 0.1 < min(given, own)


def test_the_past_is_told_by_stretches():
    points, codes = stream(3 * N_ROWS + 5)
    votes = NeighbourVotes(4, 50)
    predicted = votes.observe(points, codes, np.arange(3))
    past = votes.past()
    assert past.stops[-1] == len(points)
    stretches = np.split(predicted != codes, past.stops[:-1])
    np.testing.assert_allclose(past.errors, [each.mean() for each in stretches])
    np.testing.assert_allclose(past.weights.sum(axis=(1, 2, 3)), 1.0)


def test_an_unknown_class_is_predicted_by_nobody():
    votes = NeighbourVotes(4, 50)
    assert votes.observe(np.ones((1, 4)), np.array([2]), np.arange(3)).tolist() == [-1]
    assert votes.observe(np.ones((1, 4)), np.array([1]), np.arange(3)).tolist() == [2]
