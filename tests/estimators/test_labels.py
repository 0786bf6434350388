"""Labels: +1 and -1, 1 and 0, or booleans, wherever labels are taken."""

import numpy as np
import pytest

from metrack import ITML, MetricTracker, SlidingWindow, implied_pairs
from metrack.evaluate import best_fixed
from metrack.evaluate.meta import trace
from tests.estimators.learners import make_stream, state

STREAM = make_stream(4)
ALIKE = STREAM.y > 0
FORMS = {
    "booleans": ALIKE,
    "integers": ALIKE.astype(int),
    "bytes": ALIKE.astype(np.uint8),
    "floats": ALIKE.astype(float),
    "listed booleans": ALIKE.tolist(),
    "objects": ALIKE.astype(object),
}


@pytest.fixture(params=FORMS)
def y(request):
    return FORMS[request.param]


def taught(labels):
    """A tracker that was given labels in every way."""
    tracker = MetricTracker().fit(STREAM.pairs, labels, calibration_params={"strategy": "accuracy"})
    for cut in range(0, 60, 7):  # some batches are of one kind alone
        tracker.partial_fit(STREAM.pairs[cut : cut + 7], labels[cut : cut + 7])
    for i in range(20):
        tracker.learn_one(*STREAM.pairs[i], labels[i])
    tracker.observe(STREAM.pairs, labels, sample_weight=np.linspace(0, 1, len(ALIKE)))
    return tracker.calibrate_threshold(STREAM.pairs, labels, strategy="f_beta")


def test_what_is_learned_is_the_same_bit_for_bit(y):
    found, expected = taught(y), taught(STREAM.y)
    assert state(found) == state(expected)
    assert found.score(STREAM.pairs, y) == expected.score(STREAM.pairs, STREAM.y)


def test_everything_else_takes_them_too(y):
    def told(labels):
        yield ITML().fit(STREAM.pairs, labels).components_
        yield SlidingWindow(MetricTracker(), 100, 50).observe(STREAM.pairs, labels)
        yield trace(MetricTracker(), STREAM.pairs[:50], labels[:50]).losses
        yield best_fixed(STREAM.pairs, labels, n_iterations=5).losses
        yield implied_pairs(STREAM.rows[:9], labels[:9], 5, random_state=0)[0]

    for found, expected in zip(told(y), told(STREAM.y), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_graded_answers_are_unsure_at_0_and_sure_where_they_are_booleans():
    expected = MetricTracker().partial_fit(STREAM.pairs, STREAM.y, graded=True)
    assert state(MetricTracker().partial_fit(STREAM.pairs, ALIKE, graded=True)) == state(expected)
    unsure = MetricTracker().observe(STREAM.pairs, ALIKE.astype(float), graded=True)
    assert not unsure[~ALIKE].any()
