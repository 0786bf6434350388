"""Metrics that change while others ask."""

import time

import numpy as np
import pytest

import metrack
from metrack.serve.items import NewItems
from metrack.serve.learning import Config
from metrack.serve.limits import Limits, Refused
from metrack.serve.log import Batch
from metrack.serve.registry import Registry
from tests.serve.servers import judged, open_database, sqlite_only

CONFIG = Config(3, "COMID", {}, None)


def batch_of(pairs, y):
    nothing = [None] * len(y)
    return Batch(pairs, y, *[nothing] * 6)


@pytest.fixture
def registry(tmp_path):
    found = Registry(open_database(tmp_path), Limits(), n_threads=1)
    yield found
    found.close()


def test_feedback_for_what_a_metric_was_before_is_refused(registry):
    """It was checked against the old width, and must not get into the log of the new one."""
    metric, _ = registry.make("m", CONFIG)
    old = batch_of(*judged(5))
    registry.make("m", CONFIG._replace(n_features=4))
    with pytest.raises(Refused, match="changed meanwhile"):
        registry.append(metric, old).result()
    with pytest.raises(Refused, match="changed meanwhile"):
        registry.put_items(metric, NewItems(["a"], np.zeros((1, 3)), *[[None]] * 3))
    assert registry.append(metric, batch_of(*judged(5, 4))).result().sequence == 5


def test_a_metric_with_judgements_keeps_its_settings(registry):
    metric, _ = registry.make("m", CONFIG)
    registry.append(metric, batch_of(*judged(5))).result()
    metric.sequence = 0  # as it is seen while the judgements are on their way
    with pytest.raises(Refused, match="and judgements"):
        registry.make("m", CONFIG._replace(estimator="MetricTracker"))
    assert metric.config == CONFIG


def test_feedback_for_a_deleted_metric_is_refused(registry):
    metric, _ = registry.make("m", CONFIG)
    registry.delete(metric)
    for call in (
        lambda: registry.append(metric, batch_of(*judged(1))).result(),
        lambda: registry.put_items(metric, NewItems(["a"], np.zeros((1, 3)), *[[None]] * 3)),
        lambda: registry.teaching.snapshot_of(metric),
        lambda: registry.export(metric),
    ):
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.status == 404


def test_an_error_of_a_learner_stops_its_metric_alone_and_loses_nothing(tmp_path, monkeypatch):
    registry = Registry(open_database(tmp_path), Limits(), n_threads=1)
    broken, _ = registry.make("broken", CONFIG)
    fine, _ = registry.make("fine", CONFIG)
    learning = registry.teaching.learning(broken, fence=fence_of(registry, broken))
    monkeypatch.setattr(learning, "learn", lambda stretch: 1 / 0)
    pairs, y = judged(50)
    for metric in (broken, fine):
        registry.append(metric, batch_of(pairs, y)).result()
    expected = metrack.COMID(random_state=0).fit(pairs, y).pair_distance(pairs)
    wait_until(lambda: fine.version == 50 and broken.error is not None)
    assert "ZeroDivisionError" in broken.described()["error"]
    np.testing.assert_array_equal(fine.snapshot.reading.metric.pair_distance(pairs), expected)
    registry.close()
    registry = Registry(open_database(tmp_path), Limits(), n_threads=1)
    wait_until(lambda: registry.get("broken").version == 50)
    found = registry.get("broken").snapshot.reading.metric.pair_distance(pairs)
    np.testing.assert_array_equal(found, expected)
    registry.close()


def test_a_state_ahead_of_the_log_is_refused(tmp_path):
    registry = Registry(open_database(tmp_path), Limits(), n_threads=1)
    metric, _ = registry.make("m", CONFIG)
    registry.append(metric, batch_of(*judged(50))).result()
    wait_until(lambda: metric.version == 50)
    registry.close()
    registry = Registry(open_database(tmp_path), Limits(), n_threads=1)
    metric = registry.get("m")
    older = "UPDATE metrics SET sequence = 20"  # as an older copy of the log says
    registry.database.submit(lambda c: c.execute(older).rowcount).result()
    metric.sequence = 20
    with pytest.raises(Refused, match="restore both from the same back-up") as caught:
        registry.export(metric)
    assert caught.value.status == 503
    registry.close()


@sqlite_only
def test_states_of_metrics_that_are_gone_are_removed(tmp_path):
    (tmp_path / "states" / "7").mkdir(parents=True)
    Registry(open_database(tmp_path), Limits(), n_threads=1).close()
    assert not (tmp_path / "states" / "7").exists()


def fence_of(registry, metric):
    wait_until(lambda: registry.database.fence(metric.number) is not None)
    return registry.database.fence(metric.number)


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
