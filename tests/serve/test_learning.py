"""What is learned and told depends on the judgements, and not on how they were cut."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import metrack
from metrack.serve.course import Course
from metrack.serve.learning import Config, Learning
from metrack.serve.plain_distance import PlainDistance
from metrack.serve.series import Outcome, Series
from metrack.serve.spread import Spread
from metrack.storage import CorruptStateError, has_state, read
from metrack.tracking.state import Tracking
from tests.serve.servers import judged, keep, stretch_of
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
        learning.learn(stretch_of(numbers, pairs[start:stop], y[start:stop]))
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
        losses, nothing = learner.observe(pairs, y), np.full(256, np.nan)
        course.add(Outcome(losses, nothing, nothing, nothing, y > 0), np.arange(256.0), learner)
    n_blocks = len(course.history.losses)
    assert n_blocks < 64
    assert len(course.weights) == n_blocks
    assert len(course.series.blocks) < 256
    assert course.series.width * len(course.series.blocks) + course.series.pairs == 200 * 256
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
    before, changed = learning.course.before, learning.course.changes[-1].pair
    assert 0 < before.pairs <= changed

    def share(L):
        return (L**2).sum(axis=0) / (L**2).sum()

    assert np.argmax(share(before.components)) == 0
    assert np.argmax(share(learning.snapshot().reading.neighbours.components_)) == 1


def test_accuracy_and_area_are_those_of_predictions_made_before():
    """Pair by pair, by what a learner of the same pairs says just before it learns each."""
    pairs, y = judged(300)
    learning = taught(pairs, y, [300])
    learner, distances, right = metrack.MetricTracker(random_state=0).start(3), [], []
    for pair, label in zip(pairs, y, strict=True):
        distances.append(learner.pair_distance(pair[None])[0] / learner.threshold_)
        right.append((distances[-1] <= 1.0) == (label > 0))
        learner.observe(pair[None], [label])
    summary, late = learning.summary(), slice(300 - 256, 300)
    # What is put out is the metric nearest to the experts' forms: near the threshold it may differ.
    assert summary["accuracy"] == pytest.approx(np.mean(right[late]), abs=3 / 256)
    expected = roc_auc_score(y[late], -np.array(distances[late]))
    assert summary["auc"] == pytest.approx(expected, abs=0.02)  # the scale moves within a block
    told = learning.snapshot().course["series"]
    assert told["ends"] == [*range(8, 300, 8), 300]
    assert told["accuracy"][-1] == summary["accuracy"]


def test_series_keep_means_when_two_blocks_become_one():
    series, rng = Series(), np.random.default_rng(0)
    n = 8 * 256 + 40
    losses, right = rng.random(n), rng.integers(2, size=n).astype(float)
    scores, alike = rng.random(n), rng.random(n) < 0.5
    outcome, times = Outcome(losses, losses + 1.0, right, scores, alike), np.arange(float(n))
    series.add(outcome, times)
    pieces = Series()
    for start in range(0, n, 7):
        pieces.add(outcome.part(start, min(n, start + 7)), times[start : start + 7])
    assert series.described() == pieces.described()
    told = series.described()
    assert series.width == 16
    assert told["ends"][:2] == [16, 32]
    np.testing.assert_allclose(told["loss"][:128], losses[:2048].reshape(128, 16).mean(axis=1))
    assert told["time"][:2] == [15.0, 31.0]
    content, arrays = series.pack()
    again = Series.unpack(json.loads(json.dumps(content)), arrays)
    assert again.described() == told


def test_what_a_change_moved_is_told_with_its_time():
    pairs, y = judged(4000)
    learning, times = Learning.new(CONFIG), 1000.0 + np.arange(4000)
    numbers = np.arange(1, 4001)
    learning.learn(stretch_of(numbers, pairs, y, times))
    (told,) = learning.snapshot().course["changes"][-1:]
    assert told["time"] == 999.0 + told["pair"]
    by = {each["feature"]: each["by"] for each in told["moved"]}
    assert by["b"] > 0.3 > -0.3 > by["a"]
    assert sum(n for _, n in learning.summary()["hours"]) == 4000


@pytest.mark.parametrize("units", [[1.0, 1.0, 1.0], [1000.0, 0.01, 1.0], [0.01, 1000.0, 1.0]])
def test_what_counts_does_not_depend_on_units(units):
    """A price in cents is no less important than one in millions."""
    pairs, y = judged(1200)  # by the first feature, then by the second
    half = taught(pairs[:600] * units, y[:600], [600]).snapshot().course
    assert half["shares"][0] > 0.5
    course = taught(pairs * units, y, [600]).snapshot().course
    assert course["shares"][1] > 0.5
    assert sum(course["shares"]) == pytest.approx(1.0)


def test_spread_is_of_differences():
    rng, spread, alone = np.random.default_rng(0), Spread(3), Spread(3)
    triplets, points = rng.normal(size=(50, 3, 3)), rng.normal(size=(50, 1, 3))
    spread.observe(triplets)
    gaps = [(t[0] - t[k]) ** 2 for t in triplets for k in (1, 2)]
    np.testing.assert_allclose(spread.totals, np.sum(gaps, axis=0))
    for start in range(0, 50, 7):
        alone.observe(points[start : start + 7])
    np.testing.assert_allclose(alone.totals, (np.diff(points[:, 0], axis=0) ** 2).sum(axis=0))
    again = Spread(3)
    again.unpack(alone.pack())
    again.observe(points)
    alone.observe(points)
    np.testing.assert_array_equal(again.totals, alone.totals)
    np.testing.assert_allclose(Spread(2).weigh(np.array([0.25, 0.75])), [0.25, 0.75])
