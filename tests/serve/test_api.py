"""What each route does, against a running server."""

import asyncio
import json
import re
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metrack
from metrack.client import ServeError
from metrack.serve.auth import Door
from metrack.serve.guard import Guard
from metrack.serve.limits import Limits
from metrack.storage import ForeignStateError
from tests.serve.servers import judged, open_database

DOCS = Path(__file__).parents[2] / "docs"
ARROW = "application/vnd.apache.arrow.stream"


def refused(client, status, words, call, *args, **kwargs):
    with pytest.raises(ServeError, match=words) as caught:
        call(*args, **kwargs)
    assert caught.value.status == status


def learn(client, metric, pairs, y, **options):
    receipt = client.feedback(metric, pairs, y, **options)
    described = client.describe(metric, min_sequence=receipt.sequence, timeout=60)
    assert described["version"] >= receipt.sequence
    return described


def arrow(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_arrow(body):
    return pa.ipc.open_stream(body).read_all()


def lists(points):
    return pa.FixedSizeListArray.from_arrays(pa.array(points.ravel()), points.shape[1])


def quiet(pairs, y):
    return metrack.MetricTracker(random_state=0).fit(pairs, y)


def test_learns_what_observe_learns(client, metric):
    pairs, y = judged(900)
    described = learn(client, metric, pairs, y)
    tracker = quiet(pairs, y)
    assert described["pairs"] == 900
    assert described["threshold"] == tracker.threshold_
    assert described["effective_window"] == tracker.effective_window_
    assert described["last_change"] == tracker.last_change_
    np.testing.assert_array_equal(
        client.distance(metric, pairs[:50]), tracker.pair_distance(pairs[:50])
    )
    np.testing.assert_array_equal(
        client.transform(metric, pairs[:9, 0]), tracker.transform(pairs[:9, 0])
    )


def test_it_rests_on_no_more_than_was_judged(client, metric):
    pairs, y = judged(40)
    for n in (1, 2, 5, 40):
        described = learn(client, metric, pairs[:n], y[:n], ids=[f"k{i}" for i in range(n)])
        assert described["pairs"] == n
        assert 0 < described["effective_window"] <= n


def test_losses_of_late_are_those_of_the_last_256_pairs(client, metric):
    pairs, y = judged(512)
    described = learn(client, metric, pairs, y)
    losses = metrack.MetricTracker(random_state=0).observe(pairs, y)
    assert described["loss"] == pytest.approx(losses[256:].mean())
    assert 0.0 < described["loss"] < described["plain_loss"]


def test_a_repeated_id_is_not_learned_twice(client, metric):
    pairs, y = judged(20)
    ids = [f"k{i}" for i in range(20)]
    assert client.feedback(metric, pairs, y, ids) == (20, 0, 20)
    assert client.feedback(metric, pairs[:12], y[:12], ids[:12]) == (0, 12, 20)
    twice = np.concatenate([pairs[:1], pairs[:1]])
    assert client.feedback(metric, twice, [1, 1], ["new", "new"]) == (1, 1, 21)
    assert client.describe(metric, min_sequence=21, timeout=60)["pairs"] == 21


def test_unsure_is_kept_and_not_learned(client, metric):
    pairs, _ = judged(3)
    described = learn(client, metric, pairs, [1, None, -1], judge="ann")
    assert described["sequence"] == described["version"] == 3
    assert described["pairs"] == 2
    found = json.loads(client.request("GET", f"/v1/metrics/{metric}/judges"))
    assert found["judges"] == [{"judge": "ann", "alike": 1, "not_alike": 1, "unsure": 1}]


@pytest.mark.parametrize("make", [lambda alike: alike, lambda alike: alike * 1])
@pytest.mark.parametrize("kind", ["application/json", ARROW])
def test_booleans_and_1_and_0_are_labels(client, metric, make, kind):
    pairs, y = judged(40)
    tracker = metrack.MetricTracker(random_state=0).fit(pairs, y)
    given = make(y > 0)
    if kind == ARROW:
        receipt = client.feedback(metric, pairs, given)
    else:
        rows = zip(pairs.tolist(), given.tolist(), strict=True)
        body = {"pairs": [{"x": x, "z": z, "y": label} for (x, z), label in rows]}
        path = f"/v1/metrics/{metric}/feedback"
        receipt = metrack.client.Receipt(**client._json("POST", path, body))
    client.describe(metric, min_sequence=receipt.sequence, timeout=60)
    np.testing.assert_array_equal(client.distance(metric, pairs), tracker.pair_distance(pairs))


def test_zero_is_not_unsure(client, metric):
    pairs, _ = judged(3)
    says = r"y\[2\] = -1, but y\[0\] = 0: not alike is either -1 or 0.*null means unsure"
    refused(client, 422, says, client.feedback, metric, pairs, [0, 1, -1])
    says = r"y\[2\] = -1, but y\[1\] = 0"
    refused(client, 422, says, client.feedback, metric, pairs, [None, 0, -1])
    described = learn(client, metric, pairs, [0, None, 1], judge="ann")
    assert described["pairs"] == 2
    found = json.loads(client.request("GET", f"/v1/metrics/{metric}/judges"))
    assert found["judges"] == [{"judge": "ann", "alike": 1, "not_alike": 1, "unsure": 1}]


def test_arrow_is_json(server, client, metric):
    pairs, y = judged(40)
    table = pa.table({"x": lists(pairs[:, 0]), "z": lists(pairs[:, 1]), "y": y})
    path = f"/v1/metrics/{metric}"
    answer = json.loads(client.request("POST", f"{path}/feedback", arrow(table), ARROW))
    assert answer == {"accepted": 40, "duplicates": 0, "sequence": 40}
    client.describe(metric, min_sequence=40, timeout=60)
    headers = {"content-type": ARROW, "accept": ARROW}
    body = arrow(table.select(["x", "z"]))
    found = from_arrow(server.ask("POST", f"{path}/distance", body, headers).body)
    tracker = quiet(pairs, y)
    np.testing.assert_array_equal(found["distances"].to_numpy(), tracker.pair_distance(pairs))
    assert found["alike"].to_pylist() == (tracker.predict(pairs) == 1).tolist()
    assert found.schema.metadata[b"version"] == b"40"
    body = arrow(pa.table({"vectors": lists(pairs[:, 0])}))
    found = from_arrow(server.ask("POST", f"{path}/transform", body, headers).body)
    embedded = np.array(found["vectors"].to_pylist())
    np.testing.assert_array_equal(embedded, tracker.transform(pairs[:, 0]))


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        ({"x": [[1.0, 2.0, 3.0]], "z": [[1.0, 2.0]], "y": [1]}, {}, "x has 3 features"),
        ({"x": [[1.0], [1.0, 2.0]], "z": [[1.0], [1.0]], "y": [1, 1]}, {}, "differ in length"),
        ({"x": [[1.0, None, 3.0]], "z": [[1.0, 2.0, 3.0]], "y": [1]}, {}, "missing values"),
        ({"x": [None], "z": [[1.0, 2.0, 3.0]], "y": [1]}, {}, "lists of numbers"),
        ({"x": [["a"]], "z": [["b"]], "y": [1]}, {}, "lists of numbers"),
        ({"x": [[1.0, 2.0, 3.0]], "z": [[1.0, 2.0, 3.0]]}, {}, "no column y"),
        ({"x": [[1.0, 2.0, 3.0]], "z": [[1.0, 2.0, 3.0]], "y": ["1"]}, {}, "y must be numbers"),
        ({"x": [[1.0, 2.0, 3.0]], "y": [1]}, {}, "columns x and z"),
        ({"q": [1]}, {}, "there may be"),
        (
            {"x": [[1.0, 2.0, 3.0]] * 99, "z": [[1.0, 2.0, 3.0]] * 99, "y": [1] * 99},
            {"options": pa.ipc.IpcWriteOptions(compression="zstd")},
            "compressed",
        ),
        ({"y": pa.array(["1"]).dictionary_encode()}, {}, "no dictionaries"),
    ],
)
def test_arrow_that_is_wrong_is_refused(client, metric, table, options, words):
    body = arrow(pa.table(table), **options)
    refused(
        client, 422, words, client.request, "POST", f"/v1/metrics/{metric}/feedback", body, ARROW
    )
    assert client.describe(metric)["sequence"] == 0


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ({"x": [1, 2, 3], "z": [1, 2], "y": 1}, "differ in length"),
        ({"x": [1, 2], "z": [1, 2], "y": 1}, "2 features"),
        ({"x": [1, 2, "3"], "z": [1, 2, 3], "y": 1}, "valid number"),
        ({"x": [1, 2, 1e41], "z": [1, 2, 3], "y": 1}, "too large"),
        ({"x": [1, 2, 3], "z": [1, 2, 3]}, "y: Field required"),
        ({"x": [1, 2, 3], "z": [1, 2, 3], "y": "yes"}, "valid number"),
        ({"x": [1, 2, 3], "b": "pear", "y": 1}, "give x and z"),
        ({"a": "fig", "b": "pear", "y": 1}, "no item 'fig'"),
        ({"x": [1, 2, 3], "z": [1, 2, 3], "y": 1, "label": 1}, "Extra inputs"),
        ({"x": [1, 2, 3], "z": [1, 2, 3], "y": 1, "id": ""}, "at least 1"),
    ],
)
def test_json_that_is_wrong_is_refused(client, metric, pair, words):
    body = json.dumps({"pairs": [pair]}).encode()
    refused(client, 422, words, client.request, "POST", f"/v1/metrics/{metric}/feedback", body)
    assert client.describe(metric)["sequence"] == 0


def test_nan_is_refused(client, metric):
    refused(client, 422, "NaN", client.feedback, metric, [[[1, 2, np.nan], [1, 2, 3]]], [1])


def test_other_bodies_are_refused(client, metric):
    path = f"/v1/metrics/{metric}/feedback"
    refused(client, 415, "Content-Type", client.request, "POST", path, b"x=1", "text/plain")
    refused(client, 422, "Invalid JSON", client.request, "POST", path, b"{")
    refused(client, 400, "no Arrow stream", client.request, "POST", path, b"ARROW1" * 9, ARROW)


def test_items(client, metric):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(30, 3))
    ids = [f"i{i}" for i in range(30)]
    assert client.put_items(metric, ids[:20], vectors[:20]) == 20
    assert client.put_items(metric, ids[10:], vectors[10:]) == 30
    assert client.put_items(metric, ["i3"], [[9.0, 9.0, 9.0]]) == 30
    vectors[3] = 9.0
    pairs, y = judged(300)
    learn(client, metric, pairs, y)
    tracker = quiet(pairs, y)
    by_id = client.distance(metric, [("i3", "i5"), ("i29", "i0")])
    given = np.array([[vectors[3], vectors[5]], [vectors[29], vectors[0]]])
    np.testing.assert_array_equal(by_id, tracker.pair_distance(given))
    np.testing.assert_array_equal(client.transform(metric, ["i7"]), tracker.transform(vectors[7:8]))
    L = tracker.for_neighbours().components_
    distances = np.linalg.norm((vectors - vectors[7]) @ L.T, axis=1)
    nearest = np.argsort(distances)[1:6]
    found = client.neighbours(metric, "i7", k=5)
    assert [key for key, _ in found] == [ids[i] for i in nearest]
    np.testing.assert_allclose([d for _, d in found], distances[nearest])
    assert client.neighbours(metric, vectors[7], k=1)[0][0] == "i7"
    assert len(client.neighbours(metric, "i7", k=99)) == 29


def test_judgements_of_items_keep_the_points_of_their_time(client, metric):
    """A change of an item does not change what was learned."""
    client.put_items(metric, ["a", "b"], [[0, 0, 0], [1, 0, 0]])
    client.feedback(metric, [("a", "b")], [-1])
    client.put_items(metric, ["a"], [[5, 5, 5]])
    receipt = client.feedback(metric, [("a", "b")], [1])
    client.describe(metric, min_sequence=receipt.sequence, timeout=60)
    tracker = quiet(np.array([[[0, 0, 0], [1, 0, 0]], [[5, 5, 5], [1, 0, 0.0]]]), [-1, 1])
    point = np.array([[[1, 2, 3.0], [0, 0, 0]]])
    assert client.distance(metric, point) == tracker.pair_distance(point)


def test_items_survive(spawner, tmp_path):
    server = spawner.start(tmp_path / "data").wait()
    with metrack.Client(server.url) as client:
        client.create("m", 2)
        client.put_items("m", ["a", "b", "c"], [[0, 0], [1, 0], [0, 3]])
        client.put_items("m", ["b"], [[2, 0]])
    server.end(9)
    server = spawner.start(tmp_path / "data").wait()
    with metrack.Client(server.url) as client:
        found = dict(client.neighbours("m", "a"))
        assert set(found) == {"b", "c"}
        assert found["c"] / found["b"] == pytest.approx(1.5)
    server.end()


def test_suggestions_are_of_different_items_and_new_to_a_judge(client, metric):
    client.put_items(metric, list("abcd"), np.eye(4, 3))
    seen = set()
    for _ in range(6):
        (pair,) = client.suggest(metric, 1, judge="ann")
        assert frozenset(pair) not in seen
        assert len(set(pair)) == 2
        seen.add(frozenset(pair))
        client.feedback(metric, [pair], [None], judge="ann")
    assert client.suggest(metric, 1, judge="ann") == []
    assert len(client.suggest(metric, 1, judge="bob")) == 1


def test_export_is_loaded(client, metric, tmp_path):
    pairs, y = judged(300)
    learn(client, metric, pairs, y)
    file = tmp_path / "state.zip"
    file.write_bytes(client.request("GET", f"/v1/metrics/{metric}/export"))
    loaded = metrack.load(file)
    more, labels = judged(50, seed=1)
    tracker = quiet(pairs, y)
    np.testing.assert_array_equal(loaded.observe(more, labels), tracker.observe(more, labels))


def test_zip_that_holds_something_else_is_refused(tmp_path):
    for name in ("../evil", "generation-000000000001/other", "manifest.json"):
        with zipfile.ZipFile(tmp_path / "state.zip", "w") as archive:
            archive.writestr(name, b"x")
        with pytest.raises(ForeignStateError, match="no state"):
            metrack.load(tmp_path / "state.zip")
    assert not (tmp_path.parent / "evil").exists()


def test_log_is_what_track_reads(client, metric, tmp_path):
    from metrack.tracking.loop import Run, track

    pairs, y = judged(300)
    learn(client, metric, pairs, [*y[:-1], None], ids=[f"k{i}" for i in range(300)])
    file = tmp_path / "log.parquet"
    file.write_bytes(client.request("GET", f"/v1/metrics/{metric}/log"))
    assert pq.read_table(file)["id"].to_pylist() == [f"k{i}" for i in range(299)]
    track(Run(str(file), tmp_path / "state", metrack.MetricTracker(random_state=0)))
    tracked = metrack.load(tmp_path / "state")
    np.testing.assert_array_equal(client.distance(metric, pairs), tracked.pair_distance(pairs))
    file.write_bytes(client.request("GET", f"/v1/metrics/{metric}/log?after=250"))
    assert pq.read_table(file)["sequence"].to_pylist() == list(range(251, 300))


def test_replay_into_another_learner(client, metric):
    pairs, y = judged(200)
    ids = [f"k{i}" for i in range(200)]
    client.feedback(metric, pairs, y, ids)
    other = f"{metric}-2"
    client.create(other, 3, estimator="COMID")
    path = f"/v1/metrics/{other}/replay"
    body = json.dumps({"source": metric}).encode()
    assert json.loads(client.request("POST", path, body)) == {"sequence": 200}
    assert client.describe(other, min_sequence=200, timeout=60)["pairs"] == 200
    tracker = metrack.COMID(random_state=0).fit(pairs, y)
    np.testing.assert_array_equal(client.distance(other, pairs), tracker.pair_distance(pairs))
    assert client.feedback(other, pairs[:5], y[:5], ids[:5]).duplicates == 5
    refused(client, 409, "of its own", client.request, "POST", path, body)
    client.delete(other)


def test_cut_log(spawner, tmp_path):
    pairs, y = judged(400)
    ids = [f"k{i}" for i in range(400)]
    server = spawner.start(tmp_path / "data").wait()
    with metrack.Client(server.url) as client:
        client.create("m", 3)
        learn(client, "m", pairs[:300], y[:300], ids=ids[:300])
        end, cut = time.monotonic() + 60, None
        while cut != {"log_starts": 251}:  # until the one that learns it has saved it
            assert time.monotonic() < end, cut
            cut = json.loads(client.request("DELETE", "/v1/metrics/m/log?upto=250"))
        beyond = "DELETE", "/v1/metrics/m/log?upto=301"
        refused(client, 422, "the log ends at 300; nothing was cut", client.request, *beyond)
        assert client.describe("m")["log_starts"] == 251
        assert client.feedback("m", pairs[:3], y[:3], ids[:3]).duplicates == 3
        client.feedback("m", pairs[300:], y[300:], ids[300:])
    server.end(9)
    server = spawner.start(tmp_path / "data").wait()
    with metrack.Client(server.url) as client:
        assert client.describe("m", min_sequence=400, timeout=60)["pairs"] == 400
        expected = quiet(pairs, y).pair_distance(pairs)
        np.testing.assert_array_equal(client.distance("m", pairs), expected)
        assert client.describe("m")["log_starts"] == 251
    server.end()


def test_the_wrong_number_of_features_is_told_without_advice_for_python(client, metric):
    said = "have 2 features, and this metric has 3"
    refused(client, 422, f"pairs {said}", client.feedback, metric, np.zeros((1, 2, 2)), [1])
    refused(client, 422, f"pairs {said}", client.distance, metric, np.zeros((1, 2, 2)))
    refused(client, 422, f"vectors {said}", client.transform, metric, np.zeros((1, 2)))
    refused(client, 422, f"vectors {said}", client.put_items, metric, ["a"], np.zeros((1, 2)))
    client.put_items(metric, ["a"], np.zeros((1, 3)))
    refused(client, 422, f"vectors {said}", client.neighbours, metric, np.zeros(2))


def test_settings(client):
    made = client.create("settings", 4, "COMID", {"divergence": "burg"}, ["a", "b", "c", "d"])
    assert made["settings"] == {"divergence": "burg"}
    assert client.create("settings", 4, "COMID", {"divergence": "burg"}, ["a", "b", "c", "d"])
    client.create("settings", 3, "MetricTracker")
    client.feedback("settings", np.zeros((1, 2, 3)), [1])
    refused(client, 409, "and judgements", client.create, "settings", 3, "COMID")
    assert client.create("settings", 3, "MetricTracker")["sequence"] == 1
    client.delete("settings")
    refused(client, 404, "no metric", client.describe, "settings")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"n_features": 0}, 422, "greater than or equal to 1"),
        ({"n_features": 10**9}, 413, "at most 2,048"),
        ({"n_features": 3, "estimator": "LMNN"}, 422, "choose one of MetricTracker"),
        ({"n_features": 3, "estimator": "__class__"}, 422, "choose one of MetricTracker"),
        ({"n_features": 3, "settings": {"speed": 3}}, 422, "no setting 'speed'"),
        ({"n_features": 3, "estimator": "COMID", "settings": {"rho": -1}}, 422, "rho"),
        ({"n_features": 3, "settings": {"preprocessor": None}}, 422, "no setting here"),
        ({"n_features": 3, "settings": {"random_state": -1}}, 422, "seed|Seed|between"),
        ({"n_features": 3, "features": ["a"]}, 422, "1 names for 3 features"),
    ],
)
def test_wrong_settings_are_refused(server, body, status, words):
    answer = server.ask("PUT", "/v1/metrics/wrong", body)
    assert answer.status == status
    assert re.search(words, answer.json()["detail"])
    assert server.ask("GET", "/v1/metrics/wrong").status == 404


@pytest.mark.parametrize("name", ["..", ".hidden", "a b", "a%2Fb", "ü", "x" * 65, "-a"])
def test_names_that_could_be_something_else_are_refused(server, name):
    from urllib.parse import quote

    answer = server.ask("PUT", f"/v1/metrics/{quote(name, safe='%')}", {"n_features": 3})
    assert answer.status in (404, 405, 422)


def test_a_deleted_metric_leaves_nothing(spawner, tmp_path):
    data = tmp_path / "data"
    server = spawner.start(data).wait()
    with metrack.Client(server.url) as client:
        client.create("m", 3)
        pairs, y = judged(50)
        learn(client, "m", pairs, y)
        client.put_items("m", ["a"], [[1, 2, 3]])
        client.delete("m")
        client.create("m", 2)
        assert client.describe("m")["sequence"] == 0
    server.end()
    database = open_database(data)
    with database.reading() as connection:
        for table in ("judgements", "ids", "items"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    assert database.load(1) is None
    database.close()


def test_waiting_ends_when_it_was_learned_or_the_time_is_over(client, metric):
    start = time.monotonic()
    with pytest.raises(
        ServeError, match=r"judgement 5 was not learned in 0\.3 seconds: 0 are"
    ) as late:
        client.describe(metric, min_sequence=5, timeout=0.3)
    assert late.value.status == 408
    assert time.monotonic() - start >= 0.3
    pairs, y = judged(5)
    later = threading.Timer(0.2, client.feedback, (metric, pairs, y))
    later.start()
    assert client.describe(metric, min_sequence=5, timeout=60)["version"] == 5
    later.join()


def test_events(server, client, metric):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", f"/v1/metrics/{metric}/events")
    stream = connection.getresponse()
    assert stream.headers["content-type"].startswith("text/event-stream")

    def next_event():
        lines = iter(stream.readline, b"\n")
        parts = dict(line.decode().rstrip("\n").split(": ", 1) for line in lines)
        return parts["event"], json.loads(parts["data"])

    assert next_event()[1]["version"] == 0
    pairs, y = judged(3000)
    for start in range(0, 3000, 500):
        client.feedback(metric, pairs[start : start + 500], y[start : start + 500])
    seen, version = set(), 0
    while version < 3000 or "change" not in seen:
        kind, data = next_event()
        seen.add(kind)
        version = data.get("version", version)
    assert seen == {"progress", "change"}
    connection.close()


def test_neighbours_before_a_change(client, metric):
    pairs, y = judged(3000)
    points = np.random.default_rng(3).normal(size=(200, 3))
    client.put_items(metric, [str(i) for i in range(200)], points)
    body = {"id": "0", "k": 20, "at": "before"}
    ask = (metric, body)
    refused(client, 409, "no change", lambda: post(client, "neighbours", *ask))
    learn(client, metric, pairs, y)
    before = post(client, "neighbours", *ask)
    now = post(client, "neighbours", metric, {"id": "0", "k": 20})
    assert before["version"] < now["version"] == 3000

    def apart(found, feature):
        rows = [int(each["id"]) for each in found["neighbours"]]
        return np.abs(points[rows, feature] - points[0, feature]).mean()

    assert apart(before, 0) < apart(now, 0)
    assert apart(now, 1) < apart(before, 1)


def post(client, what, metric, body):
    return json.loads(
        client.request("POST", f"/v1/metrics/{metric}/{what}", json.dumps(body).encode())
    )


def test_course(client, metric):
    pairs, y = judged(2000)
    learn(client, metric, pairs, y)
    course = json.loads(client.request("GET", f"/v1/metrics/{metric}/course"))
    assert course["ends"] == [256.0 * (i + 1) for i in range(7)]
    series = course["series"]
    assert series["ends"] == [8 * (i + 1) for i in range(250)]
    losses = metrack.MetricTracker(random_state=0).observe(pairs, y)
    np.testing.assert_allclose(series["loss"], losses.reshape(250, 8).mean(axis=1))
    assert len(series["plain_loss"]) == len(series["time"]) == 250
    assert len(course["weights"]) == 7
    assert len(course["experts"]) == len(course["weights"][-1])
    assert course["changes"]
    assert course["shares"][1] > course["shares_before"][1]


def test_figures_and_health(server, client, metric):
    client.feedback(metric, *judged(10))
    figures = client.request("GET", "/metrics").decode()
    assert f'metrack_judgements_acknowledged_total{{metric="{metric}"}} 10\n' in figures
    assert server.ask("GET", "/healthz").body == b"ok"
    assert server.ask("GET", "/readyz").body == b"ready learner"


def test_a_refusal_names_its_request(server, client, metric):
    path = f"/v1/metrics/{metric}"
    for method, where, headers in (
        ("POST", f"{path}/distance", {}),  # no body
        ("GET", f"{path}?timeout=x", {}),
        ("GET", "/v1/metrics/nope", {}),
        ("GET", "/nowhere", {}),
        ("GET", path, {"host": "elsewhere.example"}),  # at the door
    ):
        answer = server.ask(method, where, headers=headers)
        assert answer.status >= 400
        assert answer.json()["request"] == answer.headers["x-request-id"] != ""
    ids = {server.ask("GET", path).headers["x-request-id"] for _ in range(20)}
    assert len(ids) == 20
    given = {"x-request-id": "proxy-17.a"}
    assert server.ask("GET", path, headers=given).headers["x-request-id"] == "proxy-17.a"
    odd = {"x-request-id": "a b" + "c" * 100}
    assert server.ask("GET", path, headers=odd).headers["x-request-id"] not in odd.values()
    with pytest.raises(ServeError) as caught:
        client.describe("nope")
    assert len(caught.value.request) == 12


def test_an_error_of_the_server_is_found_in_its_log(caplog):
    async def broken(scope, receive, send):
        raise RuntimeError("broken")

    headers = [(b"host", b"localhost"), (b"x-request-id", b"r-1")]
    scope = {"type": "http", "method": "GET", "path": "/x", "headers": headers}
    with pytest.raises(RuntimeError):
        asyncio.run(Guard(broken, Door(None), Limits())(scope, None, None))
    assert "request r-1: GET other failed" in caplog.text


def test_the_dashboard_shows_figures_that_there_are(server, client, metric):
    learn(client, metric, *judged(600))
    figures = client.request("GET", "/metrics").decode()
    known = set(re.findall(r"^(metrack_\w+){", figures, re.MULTILINE))
    dashboard = json.loads((DOCS / "how-to" / "grafana-metrack.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = set(re.findall(r"metrack_\w+", " ".join(asked)))
    assert used <= known
    assert len(used) > 8


def test_description_has_all_routes(server):
    described = server.ask("GET", "/openapi.json").json()
    assert len(described["paths"]) >= 17
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            assert route.get("description") or route.get("summary"), (path, method)
    feedback = described["paths"]["/v1/metrics/{name}/feedback"]["post"]
    assert set(feedback["requestBody"]["content"]) == {"application/json", ARROW}
    assert described["components"]["schemas"]["FeedbackBody"]["properties"]["pairs"]


def test_logs_have_no_payloads(server, client, metric):
    client.put_items(metric, ["secret-item"], [[123.456, 1, 2]], texts=["secret text"])
    client.feedback(
        metric, [[[123.456, 1, 2], [1, 2, 3]]], [1], ["secret-id"], judge="secret-judge"
    )
    refused(client, 422, "no item", client.distance, metric, [("secret-item", "secret-other")])
    client.describe(metric, min_sequence=1, timeout=60)
    written = server.log.read_text()
    assert "secret" not in written
    assert "123.456" not in written


@pytest.mark.parametrize(
    "address",
    [
        *("ftp://host/a.png", "javascript:alert(1)", "//host/a.png", "a.png", ""),
        *("http://host/a b", "http://host;script-src *", "http://h\r\nx: y", "http://h\u00fc/a"),
        *("http://\u65e5/a", "http://h'", 'http://h"', "http://h,i"),
    ],
)
def test_images_have_addresses_that_a_policy_can_name(server, client, metric, address):
    images = {"images": [address]}
    refused(client, 422, "address", client.put_items, metric, ["a"], [[1, 2, 3]], **images)


def test_policy_of_the_judges_page_names_where_images_come_from(server, client, metric):
    images = ["https://one.example/a/b.png", "http://two.example:81/c.png", "https://one.example?d"]
    client.put_items(metric, list("abc"), np.eye(3), images=images)
    answer = server.ask("GET", f"/m/{metric}/judge")
    assert answer.status == 200
    (sources,) = [
        part.split()[1:]
        for part in answer.headers["content-security-policy"].split(";")
        if part.split()[0] == "img-src"
    ]
    assert {"https://one.example", "http://two.example:81"} <= set(sources)
    assert not any("png" in each for each in sources)
