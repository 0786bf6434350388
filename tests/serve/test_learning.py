"""What is learned and told depends on the judgements, and not on how they were cut."""

import numpy as np
import pytest

import metrack
from metrack.serve.course import Course, PlainDistance
from metrack.serve.learning import Config, Learning
from metrack.serve.log import Stretch
from metrack.storage import CorruptStateError, has_state, read
from metrack.tracking.state import Tracking
from tests.serve.servers import judged, keep
from tests.serve.test_crash import content_of

CONFIG = Config(3, "MetricTracker", {}, ["a", "b", "c"])


def saved_in(path):
    return lambda: read(path) if has_state(path) else None


def taught(pairs, y, sizes, learning=None):
    """A learner that was given stretches of these sizes, again and again."""
    learning, start, i = learning or Learning.new(CONFIG), 0, 0
    while start < len(y):
        stop = min(len(y), start + sizes[i % len(sizes)])
        numbers = learning.sequence + 1 + np.arange(stop - start)
        learning.learn(Stretch(numbers, pairs[start:stop], y[start:stop]))
        start, i = stop, i + 1
    return learning


def test_stretches_do_not_show(tmp_path):
    pairs, y = judged(2000)
    y[::7] = 0  # unsure
    keep(taught(pairs, y, [2000], Learning.new(CONFIG)), tmp_path / "whole")
    keep(taught(pairs, y, [1, 300, 17, 256], Learning.new(CONFIG)), tmp_path / "pieces")
    assert content_of(tmp_path / "whole") == content_of(tmp_path / "pieces")


def test_saved_learning_goes_on(tmp_path):
    pairs, y = judged(1500)
    first = taught(pairs[:700], y[:700], [700])
    keep(first, tmp_path / "half")
    loaded = Learning.load(CONFIG, saved_in(tmp_path / "half"), cut=0)
    assert loaded.snapshot().course == first.snapshot().course
    keep(taught(pairs[700:], y[700:], [90], loaded), tmp_path / "resumed")
    keep(taught(pairs, y, [1500]), tmp_path / "whole")
    assert content_of(tmp_path / "resumed") == content_of(tmp_path / "whole")


def test_state_is_one_that_other_commands_know(tmp_path):
    pairs, y = judged(600)
    keep(taught(pairs, y, [600]), tmp_path / "state")
    assert metrack.load(tmp_path / "state").n_pairs_seen_ == 600
    tracking = Tracking.load(tmp_path / "state")
    assert tracking.features == ["a", "b", "c"]
    assert len(tracking.history.losses) == 2


def test_state_that_is_missing_where_the_log_was_cut_off_is_an_error(tmp_path):
    with pytest.raises(CorruptStateError, match="restore states and log"):
        Learning.load(CONFIG, saved_in(tmp_path / "none"), cut=5)
    assert Learning.load(CONFIG, saved_in(tmp_path / "none"), cut=0).sequence == 0


def test_course_stays_small_and_its_parts_together():
    """Two and two blocks become one in all of it, at the same pairs."""
    rng, course = np.random.default_rng(0), Course(2)
    learner = metrack.MetricTracker().start(2)
    for _ in range(200):
        pairs, y = rng.normal(size=(256, 2, 2)), rng.choice([-1.0, 1.0], size=256)
        course.add(pairs, y, learner.observe(pairs, y), learner)
    n_blocks = len(course.history.losses)
    assert n_blocks < 64
    assert len(course.plain_losses) == len(course.weights) == n_blocks
    assert course.history.width * n_blocks + course.history.pairs == 200 * 256


def test_plain_distance_does_not_depend_on_units():
    pairs, y = judged(500)
    losses = PlainDistance().observe(pairs, y.astype(float))
    scaled = PlainDistance().observe(1000.0 * pairs, y.astype(float))
    np.testing.assert_allclose(scaled, losses, atol=1e-9)


def test_metric_before_a_change_is_kept():
    pairs, y = judged(4000)
    learning = taught(pairs[:1900], y[:1900], [256])
    assert learning.course.before is None
    taught(pairs[1900:], y[1900:], [256], learning)
    before, changed = learning.course.before, learning.course.changes[-1]
    assert 0 < before.pairs <= changed

    def share(L):
        return (L**2).sum(axis=0) / (L**2).sum()

    assert np.argmax(share(before.components)) == 0
    assert np.argmax(share(learning.snapshot().neighbours.components_)) == 1
