"""The measures of the benchmarks, against their definitions."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from benchmarks import measures


@pytest.fixture
def judged():
    rng = np.random.default_rng(0)
    alike = rng.random(500) < 0.1
    return rng.normal(size=500) - alike, alike


def test_f1_is_scikit_learns(judged):
    distances, alike = judged
    assert measures.f1(distances < -1.0, alike) == pytest.approx(f1_score(alike, distances < -1.0))
    assert measures.f1(np.zeros(3, bool), np.zeros(3, bool)) == 0.0


def test_no_threshold_is_better_than_the_best(judged):
    distances, alike = judged
    each = [measures.f1(distances <= threshold, alike) for threshold in distances]
    assert measures.best_f1(distances, alike) == pytest.approx(max(each))


def test_average_precision_of_a_perfect_order_is_one():
    assert measures.average_precision([1.0, 2.0, 3.0], np.array([True, True, False])) == 1.0


def test_calibration_error_is_the_mean_gap_by_bin():
    probabilities = np.array([0.05, 0.05, 0.95, 1.0])
    alike = np.array([False, True, True, True])
    expected = (2 * abs(0.05 - 0.5) + 2 * abs(0.975 - 1.0)) / 4
    assert measures.calibration_error(probabilities, alike) == pytest.approx(expected)


def test_each_of_several_values_has_its_best_inside_the_grid():
    def value(rate):
        return -abs(np.log([rate / 0.01, rate / 3.0]))

    found = measures.along(lambda rate: rate, value, (0.1, 0.3), factor=3.0)
    assert min(found) < 0.01
    assert max(found) > 3.0
    unbounded = measures.along(lambda rate: rate, lambda rate: -rate, (0.1, 0.3), more=2)
    assert len(unbounded) == 4
