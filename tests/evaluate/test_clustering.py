"""k-means, NMI and intervals against scikit-learn and scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from metrack import COMID
from metrack.evaluate import exceedance, kmeans_nmi, wilson_interval
from metrack.evaluate.clustering import kmeans, nmi
from metrack.streams import DriftingClusters, paper_schedule

LABELS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40)


@pytest.fixture(scope="module")
def embedded():
    """Embeddings from no structure to clear structure, with labels."""
    stream = DriftingClusters(schedule=paper_schedule(3000), random_state=5)
    learner, found = COMID(divergence="frobenius"), []
    for start, stop in [(0, 30), (30, 120), (120, 400), (400, 750), (750, 1250)]:
        learner.partial_fit(*stream.pairs(start, stop))
        found.append((learner.transform(stream.points(stop - 1)), stream.labels(stop - 1)))
    true = stream.points(1249) @ stream.components(1249).T
    return [*found, (true, stream.labels(1249))]


def test_kmeans_is_as_good_as_scikit_learns(embedded):
    """On streams of four seeds, means of five lay from 1.0001 to 1.0022 and minima above 0.9995."""
    ours = []
    for X, _ in embedded:
        best = KMeans(3, n_init=10, random_state=0).fit(X).inertia_
        ours += [kmeans(X, 3, random_state=seed).inertia / best for seed in range(5)]
    assert np.mean(ours) < 1.01
    assert np.min(ours) > 0.99


def test_a_single_start_hardly_ever_misses_clear_clusters():
    stream = DriftingClusters(schedule=paper_schedule(60), random_state=1)
    X = stream.points(0) @ stream.components(0).T
    best = KMeans(3, n_init=10, random_state=0).fit(X).inertia_
    misses = [kmeans(X, 3, n_init=1, random_state=seed).inertia > 1.1 * best for seed in range(200)]
    assert np.mean(misses) < 0.03


def test_kmeans_gives_a_local_optimum_and_its_inertia(embedded):
    for X, _ in embedded:
        found = kmeans(X, 3)
        squares = ((X[:, None] - found.centres) ** 2).sum(axis=2)
        assert np.array_equal(found.labels, squares.argmin(axis=1))
        assert found.inertia == pytest.approx(squares.min(axis=1).sum())
        again = KMeans(3, init=found.centres, n_init=1).fit(X)
        assert again.inertia_ == pytest.approx(found.inertia, rel=1e-3)


def test_nmi_of_kmeans_is_scikit_learns_for_the_same_clusters(embedded):
    for X, labels in embedded:
        expected = normalized_mutual_info_score(labels, kmeans(X, 3, random_state=7).labels)
        assert kmeans_nmi(X, labels, random_state=7) == pytest.approx(expected, abs=1e-12)


@given(LABELS)
def test_nmi_is_scikit_learns(pairs):
    a, b = np.array(pairs).T
    assert nmi(a, b) == pytest.approx(normalized_mutual_info_score(a, b), abs=1e-9)


def test_kmeans_of_fewer_places_than_clusters():
    found = kmeans(np.zeros((6, 2)), 3)
    assert found.inertia == 0.0
    assert kmeans_nmi(np.empty((6, 0)), [0, 0, 1, 1, 2, 2]) == 0.0
    assert kmeans([[0.0], [0.0], [5.0]], 3).inertia == 0.0


def test_same_seed_same_clusters(embedded):
    X = embedded[0][0]
    assert np.array_equal(kmeans(X, 3, random_state=1).labels, kmeans(X, 3, random_state=1).labels)


@given(st.integers(1, 5000), st.floats(0, 1), st.floats(0.5, 0.999))
def test_wilson_solves_its_equation(n, share, confidence):
    """Its ends are the shares that a score test at this level just does not reject."""
    hits = round(share * n)
    found = wilson_interval(hits, n, confidence)
    assert 0.0 <= found.low <= found.share == hits / n <= found.high <= 1.0
    for end in found[1:]:
        variance = norm.ppf(0.5 + 0.5 * confidence) ** 2 * end * (1 - end) / n
        assert (found.share - end) ** 2 == pytest.approx(variance, rel=1e-6, abs=1e-12)


def test_exceedance_counts_what_is_above():
    assert exceedance([0.8, 0.81, 0.9, 0.1], 0.8).share == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kmeans([[0.0]], 2), "n_clusters"),
        (lambda: nmi([0, 1], [0]), "alike"),
        (lambda: nmi([0.5], [0.5]), "whole numbers"),
        (lambda: wilson_interval(3, 2), "n_successes"),
        (lambda: wilson_interval(1, 2, 1.0), "confidence"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
