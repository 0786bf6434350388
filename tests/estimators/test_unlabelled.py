"""Points without judgements: what they say, and that they never harm what pairs say."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import metrack
from metrack import COMID, SADL, FromLabels
from metrack.estimators import unlabelled
from tests.estimators.learners import has_matrix, state

RNG = np.random.default_rng(5)
# Classes differ in the two features of largest variance.
LABELS = RNG.integers(4, size=800)
POINTS = RNG.normal(size=(800, 8))
POINTS[:, :2] += 1.5 * RNG.normal(size=(4, 2))[LABELS]


def pairs(n, seed):
    rows = np.random.default_rng(seed).integers(len(POINTS), size=(n, 2))
    return POINTS[rows], np.where(LABELS[rows[:, 0]] == LABELS[rows[:, 1]], 1, -1)


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
    covariance = np.cov(stream.points.T)
    shrunk = covariance + 0.1 * np.trace(covariance) / n_features * np.eye(n_features)
    M = learner.get_mahalanobis_matrix()
    np.testing.assert_allclose(M / np.trace(M), shrunk / np.trace(shrunk), rtol=1e-6, atol=1e-9)


def test_what_pairs_teach_is_learned_as_without_points(learner, stream):
    if not learner.takes_points(stream.points.shape[1]):
        pytest.skip("takes no points")
    with_points = type(learner)(**learner.get_params()).observe_points(stream.points)
    a, b = (each.observe(stream.pairs, stream.y) for each in (learner, with_points))
    np.testing.assert_array_equal(a, b)
    ours, theirs = state(with_points), state(learner)
    assert {k: v for k, v in ours.items() if k.startswith("engine")} == {
        k: v for k, v in theirs.items() if k.startswith("engine")
    }


def test_points_help_where_pairs_are_few_and_are_silent_where_they_are_many():
    held_out, y = pairs(4000, 1)
    scores = {}
    for few in (10, 5000):
        learned, judged = pairs(few, 2)
        for points in (None, POINTS):
            tracker = SADL(experts="kinds")
            if points is not None:
                tracker.observe_points(points)
            tracker.partial_fit(learned, judged)
            scores[few, points is not None] = roc_auc_score(y, tracker.pair_score(held_out))
    assert scores[10, True] > scores[10, False] + 0.02
    assert scores[5000, True] > scores[5000, False] - 0.001


def test_calls_of_any_sizes_and_sparse_points_give_the_same_covariance():
    one = COMID().observe_points(POINTS).points_
    many = COMID()
    for start in range(0, len(POINTS), 37):
        many.observe_points(sp.csr_array(POINTS[start : start + 37]))
    np.testing.assert_array_equal(many.points_.counts, [800, 0])
    np.testing.assert_allclose(many.points_.mean, one.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(many.points_.scatter, one.scatter, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(one.scatter / 799, np.cov(POINTS.T), rtol=1e-10, atol=1e-12)


def test_old_points_fade(monkeypatch):
    monkeypatch.setattr(unlabelled, "REMEMBERED", 1000)
    seen = unlabelled.take(unlabelled.no_points(1, 0), np.repeat([[-1.0], [1.0]], 400, axis=0))
    for _ in range(30):
        seen = unlabelled.take(seen, np.repeat([[6.0], [14.0]], 200, axis=0))
    assert seen.counts[0] == 1000
    assert seen.mean[0] == pytest.approx(10.0, abs=1e-3)
    assert seen.scatter[0, 0] / seen.counts[0] == pytest.approx(16.0, abs=1e-2)


def test_points_alone_put_the_mean_pair_at_the_threshold():
    tracker = SADL(experts="kinds").observe_points(POINTS)
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
    tracker = SADL().fit(learned, judged)
    before = tracker.get_mahalanobis_matrix()
    after = tracker.observe_points(POINTS).get_mahalanobis_matrix()
    assert np.abs(after - before).max() < 1e-3 * np.abs(before).max()


def test_what_is_saved_goes_on_bit_for_bit(tmp_path):
    learned, judged = pairs(20, 6)
    tracker = SADL(experts="kinds").observe_points(POINTS).partial_fit(learned[:9], judged[:9])
    tracker.save(tmp_path / "state")
    loaded = metrack.load(tmp_path / "state")
    for each in (tracker, loaded):
        each.partial_fit(learned[9:], judged[9:]).observe_points(POINTS[:50])
    np.testing.assert_array_equal(loaded.components_, tracker.components_)
    assert state(loaded) == state(tracker)
    for a, b in zip(loaded.points_, tracker.points_, strict=True):
        np.testing.assert_array_equal(a, b)


def test_fit_forgets_points():
    learned, judged = pairs(20, 6)
    fitted = SADL().observe_points(POINTS).fit(learned, judged)
    np.testing.assert_array_equal(fitted.components_, SADL().fit(learned, judged).components_)


def test_a_wider_learner_keeps_its_points():
    tracker = COMID().observe_points(POINTS)
    before = tracker.get_mahalanobis_matrix()
    after = tracker.widen(10).get_mahalanobis_matrix()
    assert after.shape == (10, 10)
    assert np.corrcoef(after[:8, :8].ravel(), before.ravel())[0, 1] > 0.99


def test_labelled_learners_take_points_too():
    model = FromLabels(SADL(experts="kinds"), random_state=0).observe_points(POINTS)
    assert model.learner_.points_.counts[0] == 800
    assert model.partial_fit(POINTS[:20], LABELS[:20]).transform(POINTS).shape == (800, 8)
    assert model.learner_.points_.counts[1] > 0


def test_bad_points_change_nothing():
    tracker = COMID().observe_points(POINTS)
    before = tracker.components_
    with pytest.raises(ValueError, match="X row 1 contains NaN; drop or impute"):
        tracker.observe_points([[0.0] * 8, [np.nan] * 8])
    with pytest.raises(ValueError, match="X has 3 features, but the metric was learned on 8"):
        tracker.observe_points(POINTS[:, :3])
    np.testing.assert_array_equal(tracker.components_, before)
    assert tracker.points_.counts[0] == 800
    with pytest.raises(ValueError, match="up to 1,024 features; got 1,025"):
        COMID().observe_points(np.zeros((2, 1025)))
