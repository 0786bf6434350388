"""Every adapter against the real library: what is found, embedded anew, added meanwhile, kept."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from metrack import LMNN, KernelTracker, MetricTracker
from metrack.estimators.bases.linear import StaticEmbedding
from metrack.stores import Search
from metrack.stores import store as stores
from metrack.stores.search import bound
from tests.stores.stores import KINDS, N_FEATURES, left

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(500, N_FEATURES)).astype(np.float32)
IDS = RNG.permutation(5_000)[:500]
QUERIES = RNG.normal(size=(20, N_FEATURES)).astype(np.float32)
FIRST, LAST = np.eye(N_FEATURES)[:2], np.eye(N_FEATURES)[-2:]  # metrics of two features each


def exact(weight, queries=QUERIES, points=POINTS, ids=IDS, k=10):
    """Ids of the nearest, and distances, by brute force."""
    gaps = (queries[:, None].astype(float) - points) @ np.asarray(weight).T
    distances = np.linalg.norm(gaps, axis=2)
    order = np.argsort(distances, axis=1)[:, :k]
    return np.asarray(ids)[order], np.take_along_axis(distances, order, axis=1)


def tracked(weight):
    return StaticEmbedding(np.asarray(weight, float))


@pytest.fixture(params=KINDS)
def kind(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture
def store(kind, tmp_path):
    made = KINDS[kind](tmp_path)
    made.add(IDS, POINTS)
    yield made
    if kind == "qdrant_client":
        made._client.close()


def test_plain_vectors_are_found_and_given_back(store):
    found = Search(store, tracked(FIRST)).query(QUERIES)
    ids, distances = exact(np.eye(N_FEATURES))
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-5)
    one = Search(store, tracked(FIRST)).query(QUERIES[0], 3)
    np.testing.assert_array_equal(one.ids, ids[:1, :3])
    assert len(store) == 500
    assert set(store.ids().tolist()) == set(IDS.tolist())
    np.testing.assert_array_equal(store.vectors(IDS[[3, 1]]), POINTS[[3, 1]])
    assert np.isnan(store.vectors(np.array([-1, 6_000]))).all()


def test_candidates_are_ordered_by_the_metric_of_the_moment(store):
    all_ = Search(store, tracked(FIRST), candidates=50, may_miss=1.0)
    told = all_.refresh().result()
    assert told.embedded == 0
    assert told.missed == told.left == 0.0
    assert store.weight is None
    ids, distances = exact(FIRST)
    found = all_.query(QUERIES)
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-4, atol=1e-6)
    few = Search(store, tracked(FIRST), candidates=2, may_miss=1.0)
    told = few.refresh().result()
    assert told.embedded == 0
    assert 0.0 < told.missed < told.at_most < 1.0
    assert "nothing to do" in told.why


def test_vectors_are_embedded_anew_where_too_many_are_missing(store):
    search = Search(store, tracked(FIRST))
    told = search.refresh().result()
    assert told.embedded == 500
    assert told.missed > told.allowed
    assert told.left == 0.0
    assert "500 items were embedded anew, which leaves 0.0%" in told.why
    np.testing.assert_array_equal(store.weight, FIRST)
    np.testing.assert_array_equal(store.query(QUERIES, 10), exact(FIRST)[0])
    again = search.refresh().result()
    assert (again.embedded, again.missed) == (0, 0.0)
    near = np.array(FIRST)
    near[:, 5] = 1e-3  # a metric that has hardly moved
    search._read = lambda: tracked(near)
    assert search.refresh().result().embedded == 0
    np.testing.assert_array_equal(search.query(QUERIES).ids, exact(near)[0])
    search._read = lambda: tracked(LAST)
    assert search.refresh().result().embedded == 500
    np.testing.assert_array_equal(search.query(QUERIES).ids, exact(LAST)[0])


def test_what_is_added_is_found_before_and_after(store):
    search = Search(store, tracked(FIRST))
    search.refresh().result()
    new = np.arange(6_000, 6_005)
    search.add(new, QUERIES[:5])
    np.testing.assert_array_equal(search.query(QUERIES[:5], 1).ids[:, 0], new)
    search._read = lambda: tracked(LAST)
    assert search.refresh().result().embedded == 505
    np.testing.assert_array_equal(search.query(QUERIES[:5], 1).ids[:, 0], new)


def test_queries_go_on_and_what_is_added_meanwhile_is_there(store, monkeypatch):
    search = Search(store, tracked(FIRST))
    search.refresh().result()
    begun, go_on, blocks = threading.Event(), threading.Event(), store.blocks

    def slow():
        begun.set()
        assert go_on.wait(60)
        yield from blocks()

    monkeypatch.setattr(store, "blocks", slow)
    search._read = lambda: tracked(LAST)
    under_way = search.refresh()
    assert begun.wait(60)
    assert search.refresh() is under_way
    np.testing.assert_array_equal(store.query(QUERIES, 10), exact(FIRST)[0])
    search.add([7_000], QUERIES[:1])
    assert search.query(QUERIES[:1], 1).ids == 7_000
    assert not under_way.done()
    go_on.set()
    assert under_way.result().embedded == 501
    assert store.query(QUERIES[:1], 1) == 7_000


@pytest.mark.parametrize("step", ["_fill", "_complete", "_keep"])
def test_a_crash_leaves_what_was_there(kind, tmp_path, step, monkeypatch):
    store = KINDS[kind](tmp_path)
    store.add(IDS, POINTS)
    store.refresh(FIRST)
    store.add([9_000], QUERIES[:1])
    left(store, tmp_path)
    code = (
        "from metrack.stores import store; store.BLOCK = 100\n"
        f"from tests.stores.stores import crash_at; crash_at({kind!r}, {str(tmp_path)!r}, {step!r})"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 9, run.stderr
    store = KINDS[kind](tmp_path, fresh=False)
    np.testing.assert_array_equal(store.weight, FIRST)
    points, ids = np.concatenate([POINTS, QUERIES[:1]]), np.append(IDS, 9_000)
    np.testing.assert_array_equal(store.query(QUERIES, 10), exact(FIRST, points=points, ids=ids)[0])
    for weight in (LAST, FIRST[:1], LAST[:1]):  # and goes on, with what is left of the crash
        assert store.refresh(weight) == 501
        found = store.query(QUERIES, 10)
        np.testing.assert_array_equal(found, exact(weight, points=points, ids=ids)[0])
    left(store, tmp_path)


def test_old_images_go(store, tmp_path):
    for i in range(4):
        store.refresh(FIRST * (i + 1))
    kept = [
        name
        for name in ("metrack_1", "metrack_2", "metrack_3", "metrack_4")
        if any(name.replace("_", sign) in str(p) for p in tmp_path.rglob("*") for sign in "_-")
    ] or sorted(p.name for p in (tmp_path / "images").iterdir())
    assert len(kept) == 2


def test_fewer_items_than_asked_for(kind, tmp_path):
    store = KINDS[kind](tmp_path)
    search = Search(store, tracked(FIRST))
    assert search.refresh().result().embedded == 0
    assert (search.query(QUERIES).ids == -1).all()
    search.add([3, 4], POINTS[:2])
    search.refresh().result()
    found = search.query(QUERIES[:1], 5)
    assert set(found.ids[0, :2].tolist()) == {3, 4}
    assert (found.ids[0, 2:] == -1).all()
    assert np.isinf(found.distances[0, 2:]).all()
    left(store, tmp_path)


BAD = {
    "twice": ([1, 1], POINTS[:2], "id 1 is given twice"),
    "known": ([int(IDS[0])], POINTS[:1], "is in the store already"),
    "negative": ([-1], POINTS[:1], "whole numbers from 0"),
    "texts": (["a"], POINTS[:1], "whole numbers from 0"),
    "too few": ([6_001], POINTS[:2], "1 ids, but 2 vectors"),
    "other width": ([6_001], POINTS[:1, :3], r"\(n, 8\), as those in the store; got \(1, 3\)"),
    "no number": ([6_001, 6_002], [POINTS[0], POINTS[1] * np.nan], "vector 1 contains NaN"),
}


@pytest.mark.parametrize(("ids", "vectors", "says"), BAD.values(), ids=BAD)
def test_bad_items_change_nothing(store, ids, vectors, says):
    with pytest.raises(ValueError, match=says):
        store.add(ids, vectors)
    assert len(store) == 500


def test_bad_uses_are_refused(store):
    with pytest.raises(TypeError, match="KernelTracker; stores follow linear metrics"):
        Search(store, KernelTracker())
    with pytest.raises(ValueError, match="may_miss is 2"):
        Search(store, MetricTracker(), may_miss=2)
    search = Search(store, tracked(np.eye(3)))
    with pytest.raises(ValueError, match="the metric is of 3 features, the store of 8"):
        search.refresh().result()
    assert search.query(QUERIES).ids.shape == (20, 10)


def test_the_metric_is_that_of_neighbours(store):
    rows = np.random.default_rng(1).integers(500, size=(600, 2))
    alike = np.abs(POINTS[rows[:, 0], 2] - POINTS[rows[:, 1], 2]) < 0.5
    tracker = MetricTracker(preprocessor=POINTS).fit(rows, alike)
    search = Search(store, tracker, candidates=50)
    search.refresh().result()
    ids, distances = exact(tracker.for_neighbours().components_)
    found = search.query(QUERIES)
    assert np.mean(found.ids == ids) > 0.99  # but for single precision
    np.testing.assert_allclose(found.distances, distances, rtol=1e-3)
    classes = (POINTS[:, 2] > 0).astype(int)
    batch = LMNN().fit(POINTS, classes)
    search = Search(store, batch, candidates=50)
    search.refresh().result()
    np.testing.assert_allclose(
        search.query(QUERIES).distances, exact(batch.components_)[1], rtol=1e-3
    )


@pytest.mark.parametrize(
    ("module", "package"),
    [("usearch", "usearch"), ("faiss", "faiss"), ("qdrant", "qdrant_client")],
)
def test_without_the_library_the_remedy_is_named(module, package):
    code = f"import sys; sys.modules[{package!r}] = None; import metrack.stores.{module}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f'{package} is missing: pip install "metrack[stores]"' in run.stderr


def test_the_bound_holds_as_often_as_it_says():
    """Of shares of ten, whose mean is known, over many samples."""
    rng = np.random.default_rng(0)
    for share in (0.0, 0.02, 0.1, 0.5, 1.0):
        means = rng.binomial(10, share, size=(2_000, 200)).mean(axis=1) / 10
        assert np.mean([bound(mean, 200) >= share for mean in means]) >= 0.95
    assert bound(0.0, 200) < 0.02
    assert stores.padded([[1, 2], []], 3).tolist() == [[1, 2, -1], [-1, -1, -1]]
