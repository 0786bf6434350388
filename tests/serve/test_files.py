"""States, logs and items that were exported, and come back."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metrack
from metrack import Client
from metrack.estimators.states.persistence import pack
from metrack.storage import State, to_bytes
from tests.serve.servers import judged
from tests.serve.test_api import learn, refused

PARQUET, ZIP = "application/vnd.apache.parquet", "application/zip"


def put_state(client, name, data):
    return json.loads(client.request("PUT", f"/v1/metrics/{name}/state", data, ZIP))


def table_of(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, store_schema=False)
    return sink.getvalue().to_pybytes()


def cut_short(n_bytes):
    """A state that lacks a few bytes at its beginning."""
    zipped = to_bytes(metrack.estimators.states.persistence.pack(metrack.COMID().fit(*judged(20))))
    return zipped[:2] + zipped[2 + n_bytes :]


def test_a_state_comes_back_and_learns_on(client, metric):
    pairs, y = judged(900)
    learn(client, metric, pairs[:700], y[:700])
    zipped = client.request("GET", f"/v1/metrics/{metric}/export")
    name = f"{metric}-2"
    brought = put_state(client, name, zipped)
    assert (brought["sequence"], brought["version"], brought["log_starts"]) == (700, 700, 701)
    course = [json.loads(client.request("GET", f"/v1/metrics/{n}/course")) for n in (metric, name)]
    assert course[0] == course[1]
    refused(client, 409, "already", put_state, client, name, zipped)
    for each in (metric, name):
        receipt = client.feedback(each, pairs[700:], y[700:])
        client.describe(each, receipt.sequence, timeout=60)
    np.testing.assert_array_equal(client.distance(name, pairs), client.distance(metric, pairs))
    client.delete(name)


def test_a_state_comes_back_after_a_kill(spawner, tmp_path):
    pairs, y = judged(300)
    tracker = metrack.COMID(random_state=0).fit(pairs[:200], y[:200])
    server = spawner.start(tmp_path / "data").wait()
    with Client(server.url) as client:
        zipped = to_bytes(pack(tracker))  # as a learner saves it
        assert put_state(client, "m", zipped)["sequence"] == 200
    server.end(9)
    server = spawner.start(tmp_path / "data").wait()
    with Client(server.url) as client:
        np.testing.assert_array_equal(client.distance("m", pairs), tracker.pair_distance(pairs))
        receipt = client.feedback("m", pairs[200:], y[200:])
        assert client.describe("m", receipt.sequence, timeout=60)["pairs"] == 300
        tracker.partial_fit(pairs[200:], y[200:])
        np.testing.assert_array_equal(client.distance("m", pairs), tracker.pair_distance(pairs))
    server.end()


@pytest.mark.parametrize(
    "data",
    [b"", b"PK nothing", to_bytes(State({"learner": {"class": "LMNN"}}, {})), cut_short(3)],
)
def test_what_is_no_state_is_refused_and_makes_nothing(client, data):
    refused(client, 422, "the zip", put_state, client, "never", data)
    refused(client, 404, "no metric", client.describe, "never")


def test_a_log_comes_back(client, metric):
    pairs, y = judged(300)
    client.put_items(metric, ["a", "b"], pairs[0])
    learn(client, metric, pairs, y, ids=[f"k{i}" for i in range(300)], judge="ann")
    client.feedback(metric, [("a", "b")], [1], ids=["named"])
    data = client.request("GET", f"/v1/metrics/{metric}/log")
    name = f"{metric}-2"
    client.create(name, 3)
    path = f"/v1/metrics/{name}/log"
    assert json.loads(client.request("POST", path, data, PARQUET))["accepted"] == 301
    assert json.loads(client.request("POST", path, data, PARQUET))["duplicates"] == 301
    for each in (metric, name):
        client.describe(each, 301, timeout=60)
    np.testing.assert_array_equal(client.distance(name, pairs), client.distance(metric, pairs))
    again = client.request("GET", f"/v1/metrics/{name}/log")
    one, other = (pq.read_table(pa.BufferReader(each)) for each in (data, again))
    assert one.equals(other)  # with judges, items and times
    client.delete(name)


def test_items_come_back(client, metric):
    vectors = np.random.default_rng(0).normal(size=(5, 3))
    ids, texts = list("abcde"), ["one", None, "three", None, None]
    body = {"ids": ids, "vectors": vectors.tolist(), "texts": texts}
    body["images"] = ["http://pictures.example/a.png", *[None] * 4]
    body["records"] = [{"price": 3.5, "brand": "ü"}, None, {"price": None}, None, None]
    data = json.dumps(body).encode()
    assert json.loads(client.request("PUT", f"/v1/metrics/{metric}/items", data)) == {"items": 5}
    data = client.request("GET", f"/v1/metrics/{metric}/items")
    name = f"{metric}-2"
    client.create(name, 3)
    found = client.request("PUT", f"/v1/metrics/{name}/items", data, PARQUET)
    assert json.loads(found) == {"items": 5}
    again = client.request("GET", f"/v1/metrics/{name}/items")
    one, other = (pq.read_table(pa.BufferReader(each)) for each in (data, again))
    assert one.equals(other)
    assert one["records"].to_pylist()[0] == '{"price": 3.5, "brand": "\\u00fc"}'
    client.delete(name)


LABELS = pa.array([1, -1])


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (b"PAR1", 400, "no Parquet file"),
        (table_of(pa.table({"y": [1]})), 422, "no column 'x_1'"),
        (
            table_of(pa.table({**{f"{s}_{i}": ["a"] for s in "xz" for i in (1, 2, 3)}, "y": [1]})),
            422,
            "must be numbers",
        ),
        (
            table_of(pa.table({**{f"{s}_{i}": [1.0] for s in "xz" for i in (1, 2, 3)}, "y": [7]})),
            422,
            "7",
        ),
        (
            table_of(
                pa.table(
                    {
                        **{f"{s}_{i}": np.zeros(200_000) for s in "xz" for i in (1, 2, 3)},
                        "y": np.ones(200_000),
                    }
                )
            ),
            413,
            "at most 100,000",
        ),
    ],
)
def test_wrong_logs_are_refused(client, metric, data, status, words):
    path = f"/v1/metrics/{metric}/log"
    refused(client, status, words, client.request, "POST", path, data, PARQUET)
    assert client.describe(metric)["sequence"] == 0


def test_small_files_that_are_large_in_memory_are_refused(client, metric):
    """A dictionary's entry may stand for a hundred thousand rows."""
    n = 90_000
    columns = {f"{s}_{i}": np.zeros(n) for s in "xz" for i in (1, 2, 3)}
    huge = pa.array(["x" * 20_000]).dictionary_encode()
    column = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), huge.dictionary)
    data = table_of(pa.table({**columns, "y": np.ones(n), "judge": column}))
    assert len(data) < 1 << 20
    path = f"/v1/metrics/{metric}/log"
    refused(client, 413, "unpacked", client.request, "POST", path, data, PARQUET)
