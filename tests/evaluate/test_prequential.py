"""Means over time against brute force; recovery on losses with a known shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrack import MetricTracker
from metrack.evaluate import fading_mean, recovery_times, running_mean, windowed_mean
from metrack.streams import DriftingClusters, abrupt

LOSSES = st.lists(st.floats(0, 100, width=32), min_size=1, max_size=20)


@given(LOSSES)
def test_running_mean(losses):
    expected = [np.mean(losses[: t + 1]) for t in range(len(losses))]
    np.testing.assert_allclose(running_mean(losses), expected, atol=1e-9)


@given(LOSSES, st.integers(1, 25))
def test_windowed_mean(losses, window):
    expected = [np.mean(losses[max(t + 1 - window, 0) : t + 1]) for t in range(len(losses))]
    np.testing.assert_allclose(windowed_mean(losses, window), expected, atol=1e-9)


@given(LOSSES, st.floats(0.01, 1.0))
def test_fading_mean(losses, fading):
    expected = []
    for t in range(len(losses)):
        weights = fading ** np.arange(t, -1.0, -1.0)
        expected.append(weights @ losses[: t + 1] / weights.sum())
    np.testing.assert_allclose(fading_mean(losses, fading), expected, atol=1e-9)


@given(LOSSES)
def test_means_agree_where_nothing_is_forgotten(losses):
    np.testing.assert_allclose(fading_mean(losses, 1.0), running_mean(losses), atol=1e-9)
    np.testing.assert_allclose(windowed_mean(losses, len(losses)), running_mean(losses), atol=1e-9)


@given(
    bad=st.integers(0, 30),
    window=st.integers(1, 10),
    target=st.sampled_from([None, 1.0]),
)
def test_recovery_from_a_bad_stretch(bad, window, target):
    losses = np.concatenate([np.ones(20), np.full(bad, 100.0), np.ones(40)])
    found = recovery_times(losses, [20], window, target=target)
    assert found == [bad + window]


def test_recovery_is_that_of_brute_force():
    losses = np.random.default_rng(0).uniform(size=300)
    changes, window = [50, 120, 130, 250], 8
    expected = []
    for change, end in zip(changes, [*changes[1:], 300], strict=True):
        level = losses[change - window : change].mean()
        times = (
            t - change
            for t in range(change + window, end + 1)
            if losses[t - window : t].mean() <= 1.1 * level
        )
        expected.append(next(times, np.inf))
    np.testing.assert_array_equal(recovery_times(losses, changes, window), expected)


def test_no_recovery_before_the_next_change_or_the_end():
    losses = np.concatenate([np.ones(10), np.full(10, 5.0), np.ones(10), np.full(10, 5.0)])
    assert recovery_times(losses, [10, 20, 30], window=5, target=1.0).tolist() == [
        np.inf,
        5,
        np.inf,
    ]
    assert recovery_times(losses, [], window=5).shape == (0,)


def test_a_level_of_zero_can_be_reached():
    losses = [0.0] * 5 + [0.1] * 5 + [0.0] * 5
    assert recovery_times(losses, [5], window=3) == [8]


def test_a_tracker_recovers_from_a_switch():
    stream = DriftingClusters(n_features=8, schedule=abrupt("A", "B", length=2000), random_state=0)
    losses = MetricTracker().observe(*stream.pairs())
    [time] = recovery_times(losses, stream.switches, window=200, target=0.35)
    assert 200 < time < 1500


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: running_mean([]), "losses must be 1-D"),
        (lambda: windowed_mean([1.0], 0), "window is 0"),
        (lambda: windowed_mean([1.0], 2.5), "window is 2.5"),
        (lambda: fading_mean([1.0], 0.0), "fading is 0.0"),
        (lambda: fading_mean([1.0], 1.5), "fading is 1.5"),
        (lambda: recovery_times([1.0, 1.0], [0]), "give a target"),
        (lambda: recovery_times([1.0, 1.0], [1, 1]), "must rise"),
        (lambda: recovery_times([1.0, 1.0], [2]), "lie within 2 rounds"),
        (lambda: recovery_times([1.0, 1.0], [-1]), "a change is"),
        (lambda: recovery_times([1.0, 1.0], [1], tolerance=-1), "tolerance is -1"),
        (lambda: recovery_times([1.0, 1.0], [1], target=np.nan), "target is nan"),
    ],
)
def test_bad_input_says_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()
