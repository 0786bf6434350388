"""Every limit has an error that says so, and what is refused changes nothing."""

import http.client
import json
import time

import numpy as np
import pytest

from metrack import Client
from metrack.client import ServeError
from metrack.serve.learning import Config
from metrack.serve.limits import Limits, Refused
from metrack.serve.log import Batch
from metrack.serve.registry import Registry
from tests.serve.servers import judged, open_database

LIMITS = {
    "body": 20_000,
    "pairs": 50,
    "metrics": 2,
    "features": 100,
    "items": 60,
    "memory": 2_000_000,
    "lag": 500,
    "streams": 1,
}


@pytest.fixture(scope="module")
def limited(spawner, tmp_path_factory):
    path = tmp_path_factory.mktemp("limited") / "data"
    server = spawner.start(path, limits=LIMITS).wait()
    with Client(server.url) as client:
        client.create("m", 3)
    yield server
    server.end()


@pytest.fixture
def client(limited):
    with Client(limited.url, retries=0) as found:
        yield found


def refused(status, words, call, *args):
    with pytest.raises(ServeError, match=words) as caught:
        call(*args)
    assert caught.value.status == status


def test_body(limited, client):
    refused(
        413, "at most 20,000 bytes", client.request, "POST", "/v1/metrics/m/feedback", b" " * 20_001
    )


def test_body_of_unknown_length(limited):
    connection = http.client.HTTPConnection("127.0.0.1", limited.port, timeout=30)
    parts = (b" " * 1000 for _ in range(100))
    connection.request(
        "POST", "/v1/metrics/m/feedback", parts, {"content-type": "application/json"}
    )
    answer = connection.getresponse()
    assert answer.status == 413
    assert "at most" in json.loads(answer.read())["detail"]
    connection.close()


def test_pairs(client):
    pairs, y = judged(51)
    refused(413, "51 rows; at most 50", client.feedback, "m", pairs, y)
    refused(413, "51 rows; at most 50", client.distance, "m", pairs)
    listed = [{"x": x, "z": z, "y": 1} for x, z in pairs.tolist()]
    body = json.dumps({"pairs": listed}).encode()
    path = "/v1/metrics/m/feedback"
    refused(413, "51 pairs; at most 50", client.request, "POST", path, body)
    refused(413, "51 points; at most 50", client.transform, "m", pairs[:, 0])
    refused(
        413, "51 items; at most 50", client.put_items, "m", [str(i) for i in range(51)], pairs[:, 0]
    )
    assert client.describe("m")["sequence"] == 0


def test_bodies_at_once(spawner, tmp_path):
    """As much as may be under way at once is taken, and no more; then there is room again."""
    server = spawner.start(tmp_path / "data", limits={"bodies": 5000}).wait()
    assert server.ask("PUT", "/v1/metrics/m", {"n_features": 3}).status == 201
    slow = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    slow.putrequest("POST", "/v1/metrics/m/feedback")
    slow.putheader("content-length", "4000")
    slow.endheaders(b" " * 10)  # the rest is to come
    end = time.monotonic() + 30
    while server.ask("POST", "/v1/metrics/m/feedback", b" " * 2000).status != 429:
        assert time.monotonic() < end
    slow.close()
    while server.ask("POST", "/v1/metrics/m/feedback", b" " * 2000).status == 429:
        assert time.monotonic() < end
    server.end()


def test_metrics(client):
    client.create("second", 3)
    refused(409, "as many as may be", client.create, "third", 3)
    client.create("second", 3)
    client.delete("second")


def test_items_and_memory(client):
    points = np.zeros((50, 3))
    client.put_items("m", [f"a{i}" for i in range(50)], points)
    client.put_items("m", [f"a{i}" for i in range(50)], points)
    refused(
        413,
        "70 items; at most 60: keep to those that are asked about",
        client.put_items,
        "m",
        [f"b{i}" for i in range(20)],
        points[:20],
    )
    says = "1,000,000,000 features; at most 100: project the points first"
    refused(413, says, client.create, "wide", 10**9)
    refused(413, "raise --memory", client.create, "wide", 100)


def test_streams(limited):
    def stream():
        found = http.client.HTTPConnection("127.0.0.1", limited.port, timeout=30)
        found.request("GET", "/v1/metrics/m/events")
        return found, found.getresponse()

    first, answer = stream()
    assert answer.status == 200
    answer.readline()
    second, refusal = stream()
    assert refusal.status == 429
    assert refusal.headers["retry-after"]
    first.close()
    second.close()


def test_lag(tmp_path):
    """Where learning cannot keep up, feedback is put off."""
    registry = Registry(open_database(tmp_path), Limits(lag=10), n_threads=1)
    metric, _ = registry.make("m", Config(3, "COMID", {}, None))
    pairs, y = judged(1)
    batch = Batch(pairs, y, *[[None]] * 6)
    metric.sequence = 11  # as if so many were acknowledged, and none learned
    with pytest.raises(Refused, match="11 judgements are not learned yet") as caught:
        registry.append(metric, batch)
    assert caught.value.status == 429
    assert caught.value.retry_after
    metric.sequence = 0
    assert registry.append(metric, batch).result().sequence == 1
    registry.close()
