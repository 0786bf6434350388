"""The threshold chosen on labelled pairs, against trying them all."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrack.estimators.bases.linear import LinearEmbedding
from metrack.estimators.bases.pair_classifier import PairClassifier
from tests.estimators.learners import state


class Line(PairClassifier, LinearEmbedding):
    """Points on a line at their own distance: what is tested is the threshold alone."""

    def fit(self):
        self.components_ = np.eye(1)
        self.n_features_in_ = 1
        self.preprocessor_ = None
        return self


def on_line(distances):
    return np.stack([np.zeros(len(distances)), distances], axis=1)[:, :, None]


# Few values, so that there are ties; 0 is the distance that only a negative threshold excludes.
DISTANCES = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0]) | st.floats(0.0, 4.0, width=16)
LABELLED = st.lists(st.tuples(DISTANCES, st.sampled_from([-1, 1])), min_size=2, max_size=25).filter(
    lambda labelled: len({label for _, label in labelled}) == 2
)


def split(labelled):
    distances, y = np.array(labelled).T
    return distances, y.astype(int)


def candidates(distances):
    """A threshold for every way to cut, and more."""
    values = np.unique(distances)
    between = (values[1:] + values[:-1]) / 2
    return np.concatenate([[-2.0, 0.0, np.nextafter(values[0], -1.0)], values, between, [np.inf]])


def calibrated(distances, y, **arguments):
    line = Line().fit().calibrate_threshold(on_line(distances), y, **arguments)
    predicted = line.predict(on_line(distances))
    assert np.array_equal(predicted, np.where(distances <= line.threshold_, 1, -1))
    return predicted


def every_cut(distances):
    return [np.where(distances <= threshold, 1, -1) for threshold in candidates(distances)]


@given(LABELLED)
def test_accuracy(labelled):
    distances, y = split(labelled)
    best = max(np.mean(cut == y) for cut in every_cut(distances))
    assert np.mean(calibrated(distances, y) == y) == best
    assert np.mean(calibrated(distances, y, strategy="accuracy") == y) == best


@given(LABELLED, st.sampled_from([0.0, 0.3, 1.0, 2.0, -2.0]))
def test_f_beta(labelled, beta):
    distances, y = split(labelled)

    def f(predicted):
        hits = np.sum((predicted == 1) & (y == 1))
        if hits == 0:
            return 0.0
        precision, recall = hits / np.sum(predicted == 1), hits / np.sum(y == 1)
        return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)

    best = max(f(cut) for cut in every_cut(distances))
    found = f(calibrated(distances, y, strategy="f_beta", beta=beta))
    assert found == pytest.approx(best, rel=1e-12)


def rates(y, predicted):
    """True positive and true negative rate."""
    return np.mean(predicted[y == 1] == 1), np.mean(predicted[y == -1] == -1)


@given(LABELLED, st.integers(0, 10), st.sampled_from(["max_tpr", "max_tnr"]))
def test_rates(labelled, tenths, strategy):
    distances, y = split(labelled)
    order = 1 if strategy == "max_tpr" else -1
    min_rate = tenths / 10
    wanted, kept = rates(y, calibrated(distances, y, strategy=strategy, min_rate=min_rate))[::order]
    possible = [rates(y, cut)[::order] for cut in every_cut(distances)]
    assert kept >= min_rate
    assert (wanted, kept) == max(each for each in possible if each[1] >= min_rate)


def test_a_rate_that_is_just_met():
    """9 of 10 dissimilar pairs are too close: 1 - 0.9 is below 0.1."""
    distances = np.r_[np.arange(1.0, 11.0), 9.5]
    y = np.r_[-np.ones(10), 1]
    predicted = calibrated(distances, y, strategy="max_tpr", min_rate=0.1)
    assert rates(y, predicted) == (1.0, 0.1)


def test_to_call_nothing_alike_may_be_best():
    distances, y = np.array([0.0, 0.0, 1.0, 2.0]), np.array([-1, -1, 1, -1])
    assert np.array_equal(calibrated(distances, y), [-1, -1, -1, -1])


@pytest.mark.parametrize("strategy", ["accuracy", "f_beta", "max_tpr", "max_tnr"])
def test_calibration_of_learners(learner, stream, strategy):
    chosen = {"strategy": strategy, "min_rate": 0.5}
    assert (
        learner.fit(stream.pairs, stream.y).calibrate_threshold(stream.pairs, stream.y, **chosen)
        is learner
    )
    distances = learner.pair_distance(stream.pairs)
    line = Line().fit().calibrate_threshold(on_line(distances), stream.y, **chosen)
    assert learner.threshold_ == line.threshold_
    assert learner.threshold_ != np.sqrt(learner.mu_)
    at_once = copy.deepcopy(learner).fit(stream.pairs, stream.y, calibration_params=chosen)
    assert state(at_once) == state(learner)
    learner.partial_fit(stream.pairs[:1], stream.y[:1])
    assert learner.threshold_ == np.sqrt(learner.mu_)


ERRORS = [
    ({"strategy": "best"}, r"strategy='best'; choose one of 'accuracy', 'f1', 'f_beta', 'max_tpr'"),
    ({"strategy": None}, r"strategy=None; choose one of"),
    ({"strategy": ["accuracy"]}, r"strategy=\['accuracy'\]; choose one of"),
    ({"strategy": "max_tpr"}, r"'max_tpr' needs a min_rate in \[0, 1\], got None"),
    ({"strategy": "max_tnr", "min_rate": -0.1}, r"needs a min_rate in \[0, 1\], got -0.1"),
    ({"strategy": "max_tnr", "min_rate": 1.1}, r"needs a min_rate in \[0, 1\], got 1.1"),
    ({"strategy": "max_tnr", "min_rate": np.nan}, r"needs a min_rate in \[0, 1\], got nan"),
    ({"strategy": "max_tnr", "min_rate": "0.5"}, r"needs a min_rate in \[0, 1\], got '0.5'"),
    ({"strategy": "f_beta", "beta": np.nan}, r"needs a finite number as beta, got nan"),
    ({"strategy": "f_beta", "beta": None}, r"needs a finite number as beta, got None"),
    ({"strategy": "f_beta", "beta": 1j}, r"needs a finite number as beta, got 1j"),
]


@pytest.mark.parametrize(("arguments", "words"), ERRORS)
@pytest.mark.parametrize("learner", ["COMID"], indirect=True)
def test_errors(fitted, stream, arguments, words):
    before = state(fitted.set_threshold(0.75))
    with pytest.raises(ValueError, match=words):
        fitted.calibrate_threshold(stream.pairs, stream.y, **arguments)
    assert state(fitted) == before
    with pytest.raises(ValueError, match=words):
        fitted.fit(stream.pairs[:9], stream.y[:9], calibration_params=arguments)
    assert state(fitted) == before


@pytest.mark.parametrize("strategy", ["accuracy", "f_beta", "max_tpr", "max_tnr"])
@pytest.mark.parametrize(("label", "missing"), [(-1, r"\+1"), (1, "-1")])
@pytest.mark.parametrize("learner", ["COMID"], indirect=True)
def test_one_kind_of_pairs_alone(fitted, stream, strategy, label, missing):
    before = state(fitted)
    y = np.full(len(stream.y), label)
    chosen = {"strategy": strategy, "min_rate": 0.5}
    words = rf"all pairs have label \{label:+d}: .* add some with label {missing}"
    with pytest.raises(ValueError, match=words):
        fitted.calibrate_threshold(stream.pairs, y, **chosen)
    with pytest.raises(ValueError, match=words):
        fitted.fit(stream.pairs, y, calibration_params=chosen)
    assert state(fitted) == before
