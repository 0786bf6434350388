"""Judgements as people give them: weights, and answers that are not sure."""

import numpy as np
import pytest
from sklearn.base import clone

import metrack
from metrack import COMID, LEGO, SADL, MetricTracker, OnlineITML
from metrack.engine.ensemble.ensemble import Ensemble
from tests.estimators.learners import make_stream, state


def test_weights_of_1_are_none(learner, stream):
    same = clone(learner)
    a = learner.observe(stream.pairs, stream.y)
    b = same.observe(stream.pairs, stream.y, sample_weight=np.ones(len(stream.y)))
    np.testing.assert_array_equal(a, b)
    assert state(learner) == state(same)


@pytest.mark.parametrize(
    "learner", [COMID(), COMID(step="explicit"), OnlineITML(), LEGO()], ids=str
)
def test_a_weight_multiplies_the_rate(learner):
    stream = make_stream(4)
    learner = clone(learner).set_params(learning_rate=0.1)
    twice = clone(learner).set_params(learning_rate=0.2)
    a = learner.observe(stream.pairs, stream.y, sample_weight=np.full(len(stream.y), 2.0))
    b = twice.observe(stream.pairs, stream.y)
    np.testing.assert_allclose(a, 2.0 * b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        learner.get_mahalanobis_matrix(), twice.get_mahalanobis_matrix(), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(
    "learner", [COMID(), MetricTracker(), SADL(), OnlineITML(), LEGO()], ids=str
)
def test_graded_answers_are_labels_with_weights(learner):
    stream = make_stream(4)
    certainty = np.random.default_rng(0).random(len(stream.y))
    graded, weighted = clone(learner), clone(learner)
    a = graded.observe(stream.pairs, stream.y * certainty, graded=True)
    b = weighted.observe(stream.pairs, stream.y, sample_weight=certainty)
    np.testing.assert_array_equal(a, b)
    assert state(graded) == state(weighted)


@pytest.mark.parametrize("learner", [COMID(), MetricTracker(), OnlineITML(), LEGO()], ids=str)
def test_an_unsure_answer_is_counted_and_teaches_nothing(learner):
    stream = make_stream(4)
    learner = clone(learner).fit(stream.pairs, stream.y)
    before = metrics(learner)
    losses = learner.observe(stream.pairs[:9] * 0.9, np.zeros(9), graded=True)
    np.testing.assert_array_equal(losses, 0.0)
    assert learner.n_pairs_seen_ == len(stream.y) + 9
    for old, new in zip(before, metrics(learner), strict=True):
        # Up to a factor: the units go on being measured, and each feature's own, too.
        near = 0.02 if isinstance(learner, MetricTracker) else 1e-9
        np.testing.assert_allclose(new / np.trace(new), old / np.trace(old), atol=near)


def metrics(learner):
    engine = learner.engine_
    n_experts = engine.experts.n_active if isinstance(engine, Ensemble) else 1
    return [engine.metric(j).matrix() for j in range(n_experts)]


def test_unsure_answers_are_no_change():
    stream = make_stream(4)
    tracker = MetricTracker().fit(stream.pairs, stream.y)
    before = state(tracker)
    tracker.observe(stream.pairs, np.zeros(len(stream.y)), graded=True)
    after = state(tracker)
    assert after["engine.experts.detector.mean"] == before["engine.experts.detector.mean"]
    assert after["engine.experts.detector.cusum"] == before["engine.experts.detector.cusum"]


@pytest.mark.parametrize("learner", [MetricTracker(), SADL()], ids=str)
def test_calls_of_any_sizes_and_resumption_are_exact_with_weights(learner, tmp_path):
    """Also of pairs that are replayed."""
    stream = make_stream(4)
    weights = 3.0 * np.random.default_rng(1).random(len(stream.y))
    weights[::5] = 0.0
    one, many = clone(learner), clone(learner)
    one.observe(stream.pairs, stream.y, sample_weight=weights)
    for start in range(0, len(stream.y), 23):
        some = slice(start, start + 23)
        many.observe(stream.pairs[some], stream.y[some], sample_weight=weights[some])
        if start == 92:
            many.save(tmp_path / "state")
            many = metrack.load(tmp_path / "state")
    assert state(many) == state(one)


def test_pairs_that_count_more_are_learned_better():
    """Half of the pairs say the opposite of the others; weights say whom to believe."""
    pairs = np.random.default_rng(0).normal(size=(2000, 2, 3))
    first, second = (np.abs(pairs[:, 0, i] - pairs[:, 1, i]) < 1 for i in (0, 1))
    honest = np.arange(2000) % 2 == 0
    y = np.where(np.where(honest, first, second), 1, -1)
    tracker = MetricTracker().fit(pairs, y, sample_weight=np.where(honest, 1.0, 0.01))
    assert np.mean(tracker.predict(pairs) == np.where(first, 1, -1)) > 0.9


BAD = {
    "one short": ({"sample_weight": np.ones(4)}, r"one number per pair: 5 pairs, .* shape \(4,\)"),
    "negative": ({"sample_weight": [1, 1, -1, 1, 1]}, r"sample_weight\[2\] = -1; weights must be"),
    "NaN": ({"sample_weight": [1, np.nan, 1, 1, 1]}, r"sample_weight\[1\] = nan; weights must be"),
    "huge": ({"sample_weight": [1, 1, 1, 1, 1e7]}, r"sample_weight\[4\] = 1e\+07; .* 0 to 1e\+06"),
    "text": ({"sample_weight": ["a"] * 5}, r"sample_weight row 0 is not numbers"),
    "0 and -1": ({"y": [1, 0, 1, 1, -1]}, r"y\[4\] = -1, but y\[1\] = 0: not alike is"),
    "beyond 1": ({"y": [1, 0.5, -2, 1, 0], "graded": True}, r"y\[2\] = -2; graded answers are"),
    "NaN graded": ({"y": [1, np.nan, 1, 1, 0], "graded": True}, r"y\[1\] = nan; graded answers"),
    "graded, one short": ({"y": [1, 0.5], "graded": True}, r"y must have one label per pair: 5"),
}


@pytest.mark.parametrize(("given", "says"), BAD.values(), ids=BAD)
def test_bad_weights_change_nothing(given, says):
    stream = make_stream(4)
    tracker = COMID().fit(stream.pairs, stream.y)
    before = state(tracker)
    with pytest.raises(ValueError, match=says):
        tracker.observe(stream.pairs[:5], **{"y": stream.y[:5], **given})
    assert state(tracker) == before
