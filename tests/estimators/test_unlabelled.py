"""Points without judgements: what they say, and that they never harm what pairs say."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import fractional_matrix_power, sqrtm
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

import metrack
from metrack import COMID, SADL, FromLabels, MetricTracker
from metrack.engine.numerics.factored import Factored
from metrack.estimators.bases import unlabelled
from metrack.estimators.states.persistence import pack, unpack
from tests.estimators.learners import has_matrix, state

RNG = np.random.default_rng(5)
# Classes differ in the two features of largest variance.
LABELS = RNG.integers(4, size=800)
POINTS = RNG.normal(size=(800, 8))
POINTS[:, :2] += 1.5 * RNG.normal(size=(4, 2))[LABELS]


def pairs(n, seed):
    rows = np.random.default_rng(seed).integers(len(POINTS), size=(n, 2))
    return POINTS[rows], np.where(LABELS[rows[:, 0]] == LABELS[rows[:, 1]], 1, -1)


def textbook_prior(points):
    """C^1/2 S^-1 C^1/2, by brute force."""

    def shrunk(matrix):
        return matrix / np.trace(matrix) * len(matrix) + 0.1 * np.eye(len(matrix))

    near = np.zeros((points.shape[1], points.shape[1]))
    for start in range(0, len(points), 256):
        block = points[start : start + 256]
        if start + 256 <= len(points):
            near *= 1.0 - 256 / 100_000
        for i, x in enumerate(block):
            others = np.delete(block, i, axis=0) - x
            for u in sorted(others, key=np.linalg.norm)[:3]:
                near += np.outer(u, u)
    root = sqrtm(shrunk(np.cov(points.T))).real
    return root @ np.linalg.inv(shrunk(near)) @ root


def test_every_online_learner_takes_points(learner, stream):
    n_features = stream.points.shape[1]
    if not has_matrix(learner):
        assert not learner.takes_points(n_features)
        assert not hasattr(learner, "observe_points")
        return
    if getattr(learner, "n_components", None) is not None:
        with pytest.raises(ValueError, match=r"full rank .* Project the points first"):
            learner.observe_points(stream.points)
        assert not hasattr(learner, "engine_")
        return
    assert learner.observe_points(stream.points) is learner
    prior = textbook_prior(stream.points)
    M = learner.get_mahalanobis_matrix()
    np.testing.assert_allclose(M / np.trace(M), prior / np.trace(prior), rtol=1e-6, atol=1e-9)


def textbook_start(points):
    """M0^0.1, on which points are as far from one another as they were, root mean square."""
    root = np.real(fractional_matrix_power(textbook_prior(points), 0.1))
    covariance = np.cov(points.T)
    return root * np.sqrt(np.trace(covariance) / np.trace(root @ covariance @ root))


def test_learning_starts_on_the_way_to_the_prior(learner, stream):
    """As if points had been given by coordinates in which plain distance is M0^0.2."""
    if not learner.takes_points(stream.points.shape[1]):
        pytest.skip("takes no points")
    with_points = type(learner)(**learner.get_params()).observe_points(stream.points)
    of_features = learner._is_of_features()
    root = np.eye(stream.points.shape[1]) if of_features else textbook_start(stream.points)
    a, b = learner.observe(stream.pairs @ root, stream.y), with_points.observe(*stream[2:])
    np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-9)
    if not of_features:
        found = with_points.points_.start.on_points(with_points.engine_.metric(0)).matrix()
        expected = root @ learner.engine_.metric(0).matrix() @ root
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_rounding_of_features_that_hardly_vary_does_not_count():
    """Some pixels are black in all digits; in their own units, what turning pairs leaves is not."""
    X, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows, held_out = (rng.integers(len(X), size=(n, 2)) for n in (300, 4000))
    scores = []
    for tracker in (MetricTracker(preprocessor=X), MetricTracker(preprocessor=X)):
        if scores:
            tracker.observe_points(X)
        tracker.partial_fit(rows, digit[rows[:, 0]] == digit[rows[:, 1]])
        alike = digit[held_out[:, 0]] == digit[held_out[:, 1]]
        scores.append(roc_auc_score(alike, tracker.pair_score(held_out)))
    assert scores[1] > scores[0] - 0.01


def test_the_committee_judges_points_too():
    learner = SADL().observe_points(POINTS).partial_fit(*pairs(300, 7))
    mean = sum(each.weight * each.components.T @ each.components for each in learner._committee())
    np.testing.assert_allclose(mean, learner.get_mahalanobis_matrix(), rtol=1e-3, atol=1e-3)


def test_the_rank_of_a_metric_stays():
    rng = np.random.default_rng(0)
    start = unlabelled.settled(COMID().observe_points(POINTS).points_).start
    vectors = np.linalg.qr(rng.normal(size=(8, 8)))[0][:3]
    found = start.on_points(Factored(np.array([3.0, 2.0, 1.0]), vectors, 0.0))
    assert found.vectors.shape == (3, 8)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("points", [POINTS[:8], np.ones((20, 8))])
def test_few_points_or_equal_ones_leave_the_start_where_it_was(points):
    learned, judged = pairs(30, 8)
    tracker, plain = COMID().observe_points(points), COMID()
    assert tracker.partial_fit(learned, judged).points_.start is None
    np.testing.assert_array_equal(
        tracker.engine_.metric(0).matrix(), plain.fit(learned, judged).engine_.metric(0).matrix()
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_pairs_in_calls_of_any_sizes_lead_to_the_same_state(sparse):
    rows = np.random.default_rng(9).integers(len(POINTS), size=(120, 2))
    y = np.where(LABELS[rows[:, 0]] == LABELS[rows[:, 1]], 1, -1)
    one, many = (
        MetricTracker(preprocessor=sp.csr_array(POINTS) if sparse else POINTS).observe_points(
            range(800)
        )
        for _ in range(2)
    )
    one.observe(rows, y)
    for start in range(0, 120, 7):
        many.observe(rows[start : start + 7], y[start : start + 7])
    assert state(one) == state(many)
    assert one.forget(rows[:5]) == 5


def test_points_help_where_pairs_are_few_and_are_silent_where_they_are_many():
    held_out, y = pairs(4000, 1)
    scores = {}
    for few in (10, 5000):
        learned, judged = pairs(few, 2)
        for points in (None, POINTS):
            tracker = MetricTracker()
            if points is not None:
                tracker.observe_points(points)
            tracker.partial_fit(learned, judged)
            scores[few, points is not None] = roc_auc_score(y, tracker.pair_score(held_out))
    assert scores[10, True] > scores[10, False] + 0.015
    assert scores[5000, True] > scores[5000, False] - 0.001


def test_calls_of_any_sizes_and_sparse_points_give_the_same_covariance():
    learner = COMID().observe_points(POINTS)
    many = COMID()
    for start in range(0, len(POINTS), 37):
        many.observe_points(sp.csr_array(POINTS[start : start + 37]))
    one, other = learner.points_.moments, many.points_.moments
    np.testing.assert_array_equal(other.counts, [800, 0])
    np.testing.assert_allclose(other.mean, one.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.scatter, one.scatter, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(one.scatter / 799, np.cov(POINTS.T), rtol=1e-10, atol=1e-12)
    for a, b in zip(learner.points_.neighbours, many.points_.neighbours, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_tells_clusters_apart_counts():
    """All features have the same variance; clusters differ in the first."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1000, 5))
    points[:, 0] = rng.choice([-1.0, 1.0], 1000) + 0.1 * points[:, 0]
    weights = np.diag(COMID().observe_points(points).get_mahalanobis_matrix())
    assert weights[0] > 2.0 * weights[1:].max()


def test_old_points_fade(monkeypatch):
    monkeypatch.setattr(unlabelled, "REMEMBERED", 1000)
    seen = unlabelled.take(unlabelled.no_points(1, 0), np.repeat([[-1.0], [1.0]], 400, axis=0))
    for _ in range(30):
        seen = unlabelled.take(seen, np.repeat([[6.0], [14.0]], 200, axis=0))
    moments = seen.moments
    assert moments.counts[0] == 1000
    assert moments.mean[0] == pytest.approx(10.0, abs=1e-3)
    assert moments.scatter[0, 0] / moments.counts[0] == pytest.approx(16.0, abs=1e-2)


def test_points_alone_put_the_mean_pair_at_the_threshold():
    tracker = MetricTracker().observe_points(POINTS)
    squares = tracker.pair_distance(pairs(4000, 3)[0]) ** 2
    assert np.mean(squares) == pytest.approx(tracker.threshold_**2, rel=0.1)
    rows = tracker.suggest_pairs(POINTS, 20, random_state=0)
    assert rows.shape == (20, 2)


def test_points_that_do_not_vary_say_nothing():
    tracker = COMID().observe_points(np.ones((10, 3)))
    np.testing.assert_array_equal(
        tracker.get_mahalanobis_matrix(), COMID().start(3).get_mahalanobis_matrix()
    )


def test_points_after_many_pairs_change_little():
    learned, judged = pairs(2000, 4)
    tracker = MetricTracker().fit(learned, judged)
    before = tracker.get_mahalanobis_matrix()
    after = tracker.observe_points(POINTS).get_mahalanobis_matrix()
    assert np.abs(after - before).max() < 1e-3 * np.abs(before).max()


@pytest.mark.parametrize("kind", [COMID, MetricTracker])
def test_what_is_saved_goes_on_bit_for_bit(tmp_path, kind):
    learned, judged = pairs(20, 6)
    tracker = kind().observe_points(POINTS).partial_fit(learned[:9], judged[:9])
    tracker.save(tmp_path / "state")
    loaded = metrack.load(tmp_path / "state")
    for each in (tracker, loaded):
        each.partial_fit(learned[9:], judged[9:]).observe_points(POINTS[:50])
    np.testing.assert_array_equal(loaded.components_, tracker.components_)
    assert state(loaded) == state(tracker)
    for ours, theirs in zip(loaded.points_, tracker.points_, strict=True):
        for a, b in zip(ours or (), theirs or (), strict=True):
            np.testing.assert_array_equal(a, b)


def test_states_from_before_neighbours_were_compared_go_on():
    written = pack(COMID().observe_points(POINTS))
    del written.content["learner"]["neighbours"]
    arrays = {n: each for n, each in written.arrays.items() if not n.startswith("neighbours.")}
    loaded = unpack(written._replace(arrays=arrays), None, "here")
    covariance = np.cov(POINTS.T)
    shrunk = covariance + 0.1 * np.trace(covariance) / 8 * np.eye(8)
    M = loaded.get_mahalanobis_matrix()
    np.testing.assert_allclose(M / np.trace(M), shrunk / np.trace(shrunk), rtol=1e-9, atol=1e-12)
    assert loaded.observe_points(POINTS[:10]).points_.neighbours.n_waiting[0] == 10


def test_fit_forgets_points():
    learned, judged = pairs(20, 6)
    fitted = MetricTracker().observe_points(POINTS).fit(learned, judged)
    np.testing.assert_array_equal(
        fitted.components_, MetricTracker().fit(learned, judged).components_
    )


def test_a_wider_learner_keeps_its_points():
    tracker = COMID().observe_points(POINTS)
    before = tracker.get_mahalanobis_matrix()
    after = tracker.widen(10).get_mahalanobis_matrix()
    assert after.shape == (10, 10)
    assert np.corrcoef(after[:8, :8].ravel(), before.ravel())[0, 1] > 0.99


def test_a_wider_learner_keeps_its_start():
    learned, judged = pairs(300, 6)
    tracker = COMID().observe_points(POINTS).partial_fit(learned, judged)
    before = tracker.pair_distance(learned)
    wider = np.pad(learned, ((0, 0), (0, 0), (0, 2)))
    np.testing.assert_allclose(tracker.widen(10).pair_distance(wider), before, rtol=1e-3)
    assert tracker.partial_fit(wider, judged).n_pairs_seen_ == 600


def test_labelled_learners_take_points_too():
    model = FromLabels(MetricTracker(), random_state=0).observe_points(POINTS)
    assert model.learner_.points_.moments.counts[0] == 800
    assert model.partial_fit(POINTS[:20], LABELS[:20]).transform(POINTS).shape == (800, 8)
    assert model.learner_.points_.moments.counts[1] > 0


def test_bad_points_change_nothing():
    tracker = COMID().observe_points(POINTS)
    before = tracker.components_
    with pytest.raises(ValueError, match="X row 1 contains NaN; drop or impute"):
        tracker.observe_points([[0.0] * 8, [np.nan] * 8])
    with pytest.raises(ValueError, match="X has 3 features, but the metric was learned on 8"):
        tracker.observe_points(POINTS[:, :3])
    np.testing.assert_array_equal(tracker.components_, before)
    assert tracker.points_.moments.counts[0] == 800
    with pytest.raises(ValueError, match="up to 1,024 features; got 1,025"):
        COMID().observe_points(np.zeros((2, 1025)))
