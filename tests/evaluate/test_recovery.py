import numpy as np
import pytest

from metrack.evaluate import rate_of_change, time_to_recover
from metrack.streams import DriftingClusters, paper_schedule


def test_rate_of_change_is_the_streams():
    stream = DriftingClusters(schedule=paper_schedule(120), random_state=1)
    metrics = [stream.metric(t) for t in range(120)]
    np.testing.assert_allclose(rate_of_change(metrics), stream.rate_of_change(), atol=1e-12)


STEPS = [100, 200, 300, 400, 500]


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([0.1, 0.5, 0.3, 0.1, 0.1], 250.0),  # half way between 0.3 and 0.1
        ([0.1, 0.2, 0.9, 0.9, 0.9], 100.0),  # before anybody looked
        ([0.1, 0.9, 0.9, 0.9, 0.0], np.inf),  # after the next change
        ([0.1, 0.9, 0.2, 0.9, 0.9], 200.0),  # exactly there
    ],
)
def test_time_to_recover(errors, expected):
    found = time_to_recover(STEPS, errors, change=100, level=0.2, until=400)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("steps", [[1, 1], [2, 1], [1, 2, 3]])
def test_steps_must_rise(steps):
    with pytest.raises(ValueError, match="rise"):
        time_to_recover(steps, [0.1, 0.2], change=0, level=0.1)
