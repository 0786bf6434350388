"""Pairs by their differences, at the doors that take pairs."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

import metrack
from metrack import ITML, Differences, KernelTracker, MetricTracker

NAMES = ["title", "price", "maker"]


def judged(n=300):
    u = np.random.default_rng(0).random((n, 3))
    return Differences(u, NAMES), np.where(u[:, 0] < 0.5, 1, -1)


@pytest.mark.parametrize("learner", [MetricTracker, KernelTracker, ITML])
def test_they_are_pairs_of_which_one_point_is_0(learner):
    pairs, y = judged()
    points = np.stack([np.asarray(pairs), np.zeros(pairs.shape)], axis=1)
    by_differences, by_points = learner().fit(pairs, y), learner().fit(points, y)
    assert np.array_equal(by_differences.pair_distance(pairs), by_points.pair_distance(points))
    assert by_differences.feature_names_in_.tolist() == NAMES
    assert not hasattr(by_points, "feature_names_in_")


def test_every_method_of_a_tracker_takes_them():
    pairs, y = judged()
    tracker = MetricTracker()
    assert tracker.observe(pairs[:100], y[:100]).shape == (100,)
    tracker.partial_fit(pairs[100:200], y[100:200])
    assert tracker.n_pairs_seen_ == 200
    assert tracker.score(pairs[200:], y[200:]) > 0.9
    assert tracker.predict_proba(pairs).shape == (300, 2)
    assert tracker.informativeness(pairs).shape == (300,)
    assert set(tracker.predict(pairs)) == {1, -1}
    tracker.calibrate_threshold(pairs, y)
    assert tracker.forget(pairs[:1]) == 1


def test_names_go_to_reports_and_states(tmp_path):
    pairs, y = judged()
    tracker = MetricTracker().partial_fit(pairs, y)
    assert tracker.drift_report().most_changed(1)[0][0] == "title"
    tracker.save(tmp_path)
    assert metrack.load(tmp_path).partial_fit(pairs, y).n_pairs_seen_ == 600


def test_other_libraries_take_them_as_arrays():
    pairs, y = judged()
    assert RandomForestClassifier(10, random_state=0).fit(pairs, y).score(pairs, y) > 0.9
    assert (cross_val_score(MetricTracker(), pairs, y, cv=3) > 0.9).all()
    assert np.asarray(pairs, dtype=np.float32).dtype == np.float32
    assert np.array_equal(pairs[5], np.asarray(pairs)[5])
    assert pairs[:2].followed_by(pairs[2:]).names == NAMES


def test_other_names_are_refused_and_nothing_is_learned():
    pairs, y = judged()
    tracker = MetricTracker().partial_fit(pairs, y)
    with pytest.raises(ValueError, match="feature 0 of the differences is 'price'"):
        tracker.observe(Differences(np.asarray(pairs), ["price", "title", "maker"]), y)
    assert tracker.n_pairs_seen_ == 300


@pytest.mark.parametrize("fitted", [True, False])
def test_a_fit_that_is_refused_late_changes_nothing(fitted):
    pairs, y = judged()
    tracker = MetricTracker(preprocessor=pd.DataFrame(np.eye(3), columns=NAMES[::-1]))
    if fitted:
        tracker.fit(np.asarray(pairs)[:, None] * [[[1.0], [0.0]]], y)
    before = dict(vars(tracker))
    with pytest.raises(ValueError, match="feature 0 of the differences is 'title'"):
        tracker.fit(pairs, y)
    assert vars(tracker) == before


@pytest.mark.parametrize(
    ("u", "names", "words"),
    [
        (np.zeros(3), None, "one pair a row"),
        (np.zeros((2, 3)), ["a"], "1 names for 3 features"),
    ],
)
def test_what_is_none_is_refused(u, names, words):
    with pytest.raises(ValueError, match=words):
        Differences(u, names)


def test_numbers_are_checked_where_pairs_are():
    pairs, y = judged()
    u = np.asarray(pairs).copy()
    u[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"pairs\[7, 0\] contains NaN"):
        MetricTracker().fit(Differences(u), y)
    with pytest.raises(ValueError, match="has 2 features, but"):
        MetricTracker().fit(pairs, y).predict(Differences(u[:5, :2]))
