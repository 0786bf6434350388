"""Nearest items: exactly by a product, nearly by an index, always by a metric that is named."""

import time

import numpy as np
import pytest

from metrack.estimators.bases.linear import StaticEmbedding
from metrack.serve import neighbours
from metrack.serve.items import Items, NewItems
from metrack.serve.neighbours import Embedded, Neighbours, Picture, moved


def make_items(n_items=500, n_features=4, seed=0):
    points = np.random.default_rng(seed).normal(size=(n_items, n_features))
    ids = [f"i{i}" for i in range(n_items)]
    nothing = [None] * n_items
    return Items(n_features).with_more(NewItems(ids, points, nothing, nothing, nothing))


def rotated(by):
    """L of a metric that has turned so far."""
    return np.array([[np.cos(by), np.sin(by), 0, 0], [0, 0, 0.3, 0]])


def turned(angle):
    return StaticEmbedding(rotated(angle))


def exact(items, L, point, k):
    distances = np.linalg.norm((items.points - point) @ L.T, axis=1)
    return [items.ids[i] for i in np.argsort(distances, kind="stable")[:k]]


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_product_is_exact_where_rounding_allows(offset):
    """Far from the origin single precision tells few of them apart: distances are still right."""
    items = make_items()
    items.points += offset
    point, L = items.points[3], rotated(0.5)
    found = Embedded(items, StaticEmbedding(L), 7, indexed=False).nearest(point, 10)
    assert found.version == 7
    rows = [items.rows[key] for key in found.ids]
    own = np.linalg.norm((items.points[rows] - point) @ L.T, axis=1)
    np.testing.assert_allclose(found.distances, own, atol=1e-9)
    assert found.distances == sorted(found.distances)
    if offset == 0.0:
        assert found.ids == exact(items, L, point, 10)


def test_more_neighbours_than_items():
    items = make_items(5)
    assert len(Embedded(items, turned(0.0), 1, indexed=False).nearest(items.points[0], 99).ids) == 5


def test_a_metric_without_directions_finds_all_as_near():
    found = Embedded(make_items(5), StaticEmbedding(np.empty((0, 4))), 0, indexed=False).nearest(
        np.ones(4), 3
    )
    assert found.distances == [0.0] * 3


def test_embedding_follows_the_metric_and_the_items():
    items, held = make_items(), Neighbours()
    first = held.current(items, turned(0.0), 1)
    assert held.current(items, turned(0.0), 1) is first
    first.fresh_until = 0.0
    assert held.current(items, turned(0.4), 2).version == 2
    more = items.with_more(NewItems(["new"], np.zeros((1, 4)), *[[None]] * 3))
    assert len(held.current(more, turned(0.4), 2).points) == 501


def test_embedding_that_took_long_is_used_for_longer():
    items, held = make_items(), Neighbours()
    first = held.current(items, turned(0.0), 1)
    first.fresh_until = time.monotonic() + 1000
    assert held.current(items, turned(0.4), 2) is first


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_index_is_built_in_the_background_and_again_when_the_metric_has_moved(monkeypatch):
    pytest.importorskip("usearch")
    monkeypatch.setattr(neighbours, "BY_PRODUCT", 100)
    items, held = make_items(), Neighbours()
    point = items.points[3]
    before = held.current(items, turned(0.0), 1)
    assert before.index is None  # by the product, until the index is there
    wait_for(lambda: held.current(items, turned(0.0), 1).index is not None)
    first = held.current(items, turned(0.0), 1)
    assert set(first.nearest(point, 10).ids) == set(exact(items, rotated(0.0), point, 10))
    first.fresh_until = 0.0
    assert held.current(items, turned(0.01), 2) is first  # it has hardly moved
    assert held.current(items, turned(1.0), 3) is first  # until the next one is built
    wait_for(lambda: held.current(items, turned(1.0), 3).version == 3)
    found = held.current(items, turned(1.0), 3).nearest(point, 10)
    assert set(found.ids) == set(exact(items, rotated(1.0), point, 10))


def test_only_the_shape_of_a_metric_moves_it():
    assert not moved(turned(0.0), StaticEmbedding(3.0 * rotated(0.0)))
    assert moved(turned(0.0), turned(1.0))
    nothing = StaticEmbedding(np.empty((0, 4)))
    assert not moved(nothing, nothing)
    assert moved(nothing, turned(0.0))


def test_picture_turns_no_more_than_it_must():
    items, picture = make_items(60), Picture()
    ids, first = picture.take(items, turned(0.0), 1000)
    assert ids == items.ids
    _, mirrored = picture.take(items, StaticEmbedding(-rotated(0.0)[::-1]), 1000)
    np.testing.assert_allclose(mirrored, first, atol=1e-12)
    distances = np.linalg.norm(first[:, None] - first, axis=2)
    image = items.points @ rotated(0.0).T
    np.testing.assert_allclose(distances, np.linalg.norm(image[:, None] - image, axis=2))


def test_picture_of_few_or_no_items():
    assert Picture().take(Items(4), turned(0.0), 10)[1].shape == (0, 2)
    assert Picture().take(make_items(1), turned(0.0), 10)[1].tolist() == [[0.0, 0.0]]
    assert len(Picture().take(make_items(50), turned(0.0), 10)[0]) == 10
