"""k-NN errors against scikit-learn's brute force, also where single precision is not enough."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from metrack import MetricTracker
from metrack.evaluate import knn_error, leave_one_out_error
from metrack.evaluate.neighbours import _nearest
from metrack.streams import DriftingClusters, paper_schedule


def by_brute_force(X, k):
    """The k nearest of each point, itself left out, from all distances."""
    gaps = X[:, None, :] - X[None, :, :]
    distances = (gaps * gaps).sum(axis=2)  # exact differences, no cancellation
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


@pytest.fixture(scope="module")
def embedded():
    stream = DriftingClusters(schedule=paper_schedule(600), random_state=3)
    tracker = MetricTracker().partial_fit(*stream.pairs(0, 150))
    points, labels = stream.points(149), stream.labels(149)
    return {
        "raw": (points, labels),
        "true": (points @ stream.components(149).T, labels),
        "learned": (tracker.transform(points), labels),
    }


@pytest.mark.parametrize("name", ["raw", "true", "learned"])
@pytest.mark.parametrize("k", [1, 5, 8])
def test_leave_one_out_is_scikit_learns(embedded, name, k):
    X, labels = embedded[name]
    model = KNeighborsClassifier(k, algorithm="brute").fit(X, labels)
    assert leave_one_out_error(X, labels, k) == np.mean(model.predict(None) != labels)
    tested = np.mean(model.predict(None)[:500] != labels[:500])
    assert leave_one_out_error(X, labels, k, n_tested=500) == tested


@pytest.mark.parametrize("name", ["raw", "true", "learned"])
def test_held_out_is_scikit_learns(embedded, name):
    X, labels = embedded[name]
    model = KNeighborsClassifier(5).fit(X[500:], labels[500:])
    expected = np.mean(model.predict(X[:500]) != labels[:500])
    assert knn_error(X[500:], labels[500:], X[:500], labels[:500]) == expected


@pytest.mark.parametrize(
    ("offset", "scale", "outlier"),
    [(0.0, 1.0, 1.0), (1e6, 1.0, 1.0), (0.0, 1e-30, 1.0), (0.0, 1e30, 1.0), (0.0, 1.0, 1e5)],
)
def test_neighbours_are_exact_far_from_the_origin_and_beside_outliers(offset, scale, outlier):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[:3] *= outlier
    X = (X + offset) * scale
    expected = by_brute_force(X / scale, 6)
    np.testing.assert_array_equal(_nearest(X, X, np.arange(300), 6), expected)


@given(st.integers(2, 60), st.integers(0, 6), st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_neighbours_by_brute_force(n_points, n_features, k, seed):
    k = min(k, n_points - 1)
    X = np.random.default_rng(seed).normal(size=(n_points, n_features))
    found = _nearest(X, X, np.arange(n_points), k)
    assert all(len(set(row) | {i}) == k + 1 for i, row in enumerate(found.tolist()))
    if n_features:
        np.testing.assert_array_equal(found, by_brute_force(X, k))


def test_a_tied_vote_goes_to_the_smallest_label():
    assert knn_error([[0.0], [1.0]], [2, 1], [[0.4]], [1], n_neighbors=2) == 0.0


@pytest.mark.parametrize(
    ("X", "labels", "message"),
    [
        ([[np.nan], [0.0]], [0, 1], "not finite"),
        ([[0.0], [1.0]], [0.5, 1.0], "whole numbers"),
        ([[0.0], [1.0]], [0], "as many"),
        ([0.0, 1.0], [0, 1], "2-D"),
        ([[0.0], [1.0]], [0, 1], "n_neighbors"),
    ],
)
def test_what_cannot_be_judged_is_refused(X, labels, message):
    with pytest.raises(ValueError, match=message):
        leave_one_out_error(X, labels)
