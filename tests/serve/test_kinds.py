"""Learners of every kind behind the same routes: what is served is what they would say alone."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest

import metrack
from metrack import Client
from metrack.client import ServeError
from metrack.serve.kinds.table import KINDS
from metrack.serve.learning import Config, Learning
from metrack.serve.snapshots import pack, unpack
from tests.serve.servers import judged, stretch_of
from tests.serve.test_api import ARROW, arrow, lists, refused


def post(client, metric, what, body):
    data = json.dumps(body).encode()
    return json.loads(client.request("POST", f"/v1/metrics/{metric}/{what}", data))


@pytest.fixture
def make(client, request):
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", request.node.name)[:60]

    def made(estimator, settings=None):
        client.create(name, 3, estimator, settings)
        return name

    yield made
    client.delete(name)


def classes_of(n_points, seed=0):
    points = np.random.default_rng(seed).normal(size=(n_points, 3))
    return points, np.where(points[:, 0] > 0, "up", "down")


def feed_points(client, name, points, labels, start=0):
    listed = [
        {"x": x, "label": label, "id": f"p{start + i}"}
        for i, (x, label) in enumerate(zip(points.tolist(), labels.tolist(), strict=True))
    ]
    answer = post(client, name, "feedback", {"points": listed})
    return client.describe(name, min_sequence=answer["sequence"], timeout=60)


def test_kernel(client, make):
    pairs, _ = judged(400)
    radius = np.linalg.norm(pairs, axis=2)
    y = np.where(np.abs(radius[:, 0] - radius[:, 1]) < 0.5, 1, -1)
    name = make("KernelTracker", {"n_landmarks": 32})
    client.describe(name, client.feedback(name, pairs, y).sequence, timeout=60)
    tracker = metrack.KernelTracker(n_landmarks=32, random_state=0).fit(pairs, y)
    np.testing.assert_array_equal(client.distance(name, pairs), tracker.pair_distance(pairs))
    np.testing.assert_array_equal(
        client.transform(name, pairs[:9, 0]), tracker.transform(pairs[:9, 0])
    )
    expected = tracker.predict_proba(pairs)[:, list(tracker.classes_).index(1)]
    np.testing.assert_allclose(client.probability(name, pairs), expected)
    ids = [f"i{i}" for i in range(50)]
    client.put_items(name, ids, pairs[:50, 0])
    near = tracker.for_neighbours().transform(pairs[:50, 0])
    order = np.argsort(np.linalg.norm(near - near[7], axis=1), kind="stable")[1:6]
    assert [key for key, _ in client.neighbours(name, "i7", k=5)] == [ids[i] for i in order]
    assert len(client.suggest(name, 3)) == 3
    course = json.loads(client.request("GET", f"/v1/metrics/{name}/course"))
    assert course["series"]["accuracy"][-1] == client.describe(name)["accuracy"]


def test_triplets(client, make):
    rng = np.random.default_rng(0)
    triplets = rng.normal(size=(300, 3, 3))
    nearer = triplets[:, 0, 0] * (triplets[:, 1, 0] - triplets[:, 2, 0]) > 0
    triplets[~nearer] = triplets[~nearer][:, [0, 2, 1]]
    name = make("OASIS")
    client.put_items(name, ["a", "b", "c"], triplets[0])
    listed = [{"anchor": a, "near": n, "far": f} for a, n, f in triplets[1:200].tolist()]
    first = {"triplets": [{"anchor": "a", "near": "b", "far": "c", "id": "first"}]}
    assert post(client, name, "feedback", first)["sequence"] == 1
    assert post(client, name, "feedback", first)["duplicates"] == 1
    post(client, name, "feedback", {"triplets": listed})
    sides = dict(zip(("anchor", "near", "far"), np.moveaxis(triplets[200:], 1, 0), strict=True))
    table = pa.table({side: lists(np.ascontiguousarray(v)) for side, v in sides.items()})
    client.request("POST", f"/v1/metrics/{name}/feedback", arrow(table), ARROW)
    described = client.describe(name, 300, timeout=60)
    learner = metrack.OASIS(random_state=0)
    losses = learner.observe(triplets)
    assert described["pairs"] == 300
    assert described["learns_from"] == "triplets"
    assert described["accuracy"] == pytest.approx(np.mean(losses[-256:] < 1.0))
    pairs = triplets[:, :2]
    found = post(client, name, "distance", {"pairs": [{"x": x, "z": z} for x, z in pairs.tolist()]})
    np.testing.assert_allclose(
        found["distances"],
        np.linalg.norm((pairs[:, 0] - pairs[:, 1]) @ learner.components_.T, axis=1),
    )
    assert found["alike"] is found["threshold"] is None
    refused(client, 409, "no probabilities", post, client, name, "probability", {"pairs": []})
    refused(client, 409, "learns from triplets", client.suggest, name)
    refused(client, 422, "may be anchor, near", client.feedback, name, pairs[:1], [1])
    wrong = {"triplets": [{"anchor": "a", "near": [1, 2, 3], "far": "c"}]}
    refused(client, 422, "send them apart", post, client, name, "feedback", wrong)
    wrong = {"triplets": [{"anchor": [1, 2], "near": [1, 2], "far": [1, 2]}]}
    refused(client, 422, "2 features", post, client, name, "feedback", wrong)


def test_classes_by_a_metric(client, make):
    points, labels = classes_of(300)
    name = make("FromLabels")
    feed_points(client, name, points[:100], labels[:100])
    described = feed_points(client, name, points[100:], labels[100:], start=100)
    learner = metrack.FromLabels(random_state=0)
    for point, label in zip(points, labels, strict=True):
        learner.partial_fit(point[None], [label])
    assert described["pairs"] == 300
    assert described["accuracy"] > 0.5
    pairs = np.stack([points[:50], points[50:100]], axis=1)
    np.testing.assert_allclose(client.distance(name, pairs), learner.learner_.pair_distance(pairs))
    assert len(client.probability(name, pairs)) == 50


def test_classes_by_neighbours(client, make):
    points, labels = classes_of(400)
    name = make("DriftKNN", {"window": 200})
    refused(
        client, 409, "no class yet", post, client, name, "probability", {"vectors": [[1, 2, 3]]}
    )
    described = feed_points(client, name, points[:150], labels[:150])
    table = pa.table({"x": lists(points[150:300]), "label": labels[150:300].tolist()})
    client.request("POST", f"/v1/metrics/{name}/feedback", arrow(table), ARROW)
    described = client.describe(name, 300, timeout=60)
    model = metrack.DriftKNN(window=200, random_state=0)
    right = model.observe(points[:300], labels[:300]) == labels[:300]
    assert described["accuracy"] == pytest.approx(right[-256:].mean())
    found = post(client, name, "probability", {"vectors": points[300:].tolist()})
    assert sorted(found["classes"]) == model.classes_.tolist()
    order = [found["classes"].index(each) for each in model.classes_]
    np.testing.assert_array_equal(
        np.array(found["probabilities"])[:, order], model.predict_proba(points[300:])
    )
    assert found["predicted"] == model.predict(points[300:]).tolist()
    client.put_items(name, ["a", "b"], points[:2])
    assert client.neighbours(name, "a")[0][0] == "b"
    missing = {"points": [{"x": [1, 2, 3]}]}
    refused(client, 422, "label", post, client, name, "feedback", missing)
    assert client.probability(name, points[300:302]).shape == (2, 2)


@pytest.mark.parametrize(
    ("estimator", "settings", "words"),
    [
        ("FromLabels", {"learner": "MetricTracker"}, "no setting here"),
        ("KernelTracker", {"kernel": "nope"}, "kernel"),
        ("DriftKNN", {"window": 0}, "window"),
        ("LMNN", {}, "choose one of"),
    ],
)
def test_wrong_settings_of_other_kinds_are_refused(client, estimator, settings, words):
    refused(client, 422, words, client.create, "wrong", 3, estimator, settings)


def examples(name, n, seed=0):
    kind, rng = KINDS[name], np.random.default_rng(seed)
    points = rng.normal(size=(n, kind.members, 3))
    y = np.ones(n, int) if kind.members != 2 else rng.choice([-1, 1], size=n)
    labels = rng.choice(["a", "b", "c"], size=n).tolist()
    return stretch_of(np.arange(1, n + 1), points, y)._replace(labels=labels)


def parts(stretch, sizes):
    start, i = 0, 0
    while start < len(stretch.y):
        stop = min(len(stretch.y), start + sizes[i % len(sizes)])
        yield type(stretch)(*(each[start:stop] for each in stretch))
        start, i = stop, i + 1


@pytest.mark.parametrize("name", KINDS)
def test_every_learner_is_served_the_same_however_its_log_is_cut(name):
    """What it says and what it saves does not depend on batches; and a snapshot crosses over."""
    config = Config(3, name, {"n_landmarks": 16} if name == "KernelTracker" else {}, None)
    stretch = examples(name, 700)
    whole, pieces = Learning.new(config), Learning.new(config)
    whole.learn(stretch)
    for part in parts(stretch, [1, 300, 17, 64]):
        pieces.learn(part)
    states = whole.pack(), pieces.pack()
    assert states[0].content == states[1].content
    assert {k: v.tobytes() for k, v in states[0].arrays.items()} == {
        k: v.tobytes() for k, v in states[1].arrays.items()
    }
    saved = Learning.load(config, lambda: states[0], cut=0)
    assert saved.snapshot().course == whole.snapshot().course
    here = whole.snapshot()
    there = unpack(pack(here))
    pairs = np.random.default_rng(1).normal(size=(20, 2, 3))
    for what in ("metric", "neighbours"):
        mine, other = (getattr(each.reading, what).pair_distance(pairs) for each in (here, there))
        np.testing.assert_array_equal(mine, other)
    assert there.reading.threshold == here.reading.threshold
    assert (there.reading.classes is None) == (name != "DriftKNN")
    before = here.reading.metric.pair_distance(pairs)
    whole.learn(examples(name, 200, seed=2)._replace(sequences=np.arange(701, 901)))
    np.testing.assert_array_equal(here.reading.metric.pair_distance(pairs), before)


def test_other_kinds_survive_a_kill(spawner, tmp_path):
    server = spawner.start(tmp_path / "data", save_work=0.0).wait()
    points, labels = classes_of(300)
    with Client(server.url) as client:
        client.create("m", 3, "DriftKNN")
        feed_points(client, "m", points[:200], labels[:200])
    server.end(9)
    server = spawner.start(tmp_path / "data").wait()
    with Client(server.url) as client:
        feed_points(client, "m", points[200:], labels[200:], start=200)
        with pytest.raises(ServeError, match="409"):
            client.suggest("m")
        model = metrack.DriftKNN(random_state=0).fit(points, labels)
        found = post(client, "m", "probability", {"vectors": points.tolist()})
        assert found["predicted"] == model.predict(points).tolist()
    server.end()
