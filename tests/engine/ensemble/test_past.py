"""Pairs that are kept of all the past: drawn evenly, each kind for itself."""

import numpy as np
import pytest

from metrack.engine.ensemble import replay
from metrack.engine.ensemble.replay import Material, Minibatch, new_minibatch, new_past
from metrack.engine.numerics.pairs import Chunk


def block(numbers, y):
    """Pairs whose one feature is their number."""
    u = np.asarray(numbers, dtype=float)[:, None]
    return Minibatch(u, np.asarray(y, dtype=float), np.zeros(len(u)), np.empty(0), np.empty((0, 0)))


def test_a_few_pairs_are_all_kept():
    past = new_past(8, 1)
    replay.remember(past, block(range(10), [1, -1] * 4 + [-1, 0]))
    np.testing.assert_array_equal(past.seen, [4, 5])
    np.testing.assert_array_equal(past.u[0, :4, 0], [0, 2, 4, 6])
    np.testing.assert_array_equal(past.u[1, :5, 0], [1, 3, 5, 7, 8])


def test_of_many_pairs_each_part_of_the_past_has_its_share():
    """A sample of 512 of 16,384: of each quarter 128, with a standard deviation of about 10."""
    past, n = new_past(512, 1), 16_384
    for first in range(0, n, 64):
        replay.remember(past, block(range(first, first + 64), np.ones(64)))
    kept = past.u[0, :, 0]
    assert len(np.unique(kept)) == 512
    quarters = np.bincount((kept // (n // 4)).astype(int), minlength=4)
    assert (np.abs(quarters - 128) < 50).all()
    assert past.seen.tolist() == [n, 0]


def test_balanced_draws_take_half_of_each_kind():
    past, found = new_past(64, 1), new_minibatch(32, 1)
    replay.remember(past, block(range(50), np.where(np.arange(50) < 3, 1.0, -1.0)))
    replay.draw_past(past, True, 7, found)
    assert (found.y > 0).sum() == 16
    assert set(found.u[found.y > 0, 0]) <= {0.0, 1.0, 2.0}
    replay.draw_past(past, False, 7, found)
    assert (found.y > 0).sum() < 12  # of 32, where 2 are expected


def test_where_there_is_one_kind_it_is_drawn():
    past, found = new_past(4, 1), new_minibatch(6, 1)
    replay.draw_past(past, True, 0, found)
    assert not found.y.any()  # nothing yet: a pair that asks for nothing
    replay.remember(past, block([5], [-1.0]))
    replay.draw_past(past, True, 0, found)
    assert (found.y == -1.0).all()


@pytest.mark.parametrize("window", [4, 16])
def test_recent_draws_are_of_the_window(window):
    chunk = Chunk(
        np.arange(10.0, 15.0),
        np.arange(1),
        np.empty(0, np.int64),
        np.ones(5),
        np.arange(10.0, 15.0) ** 2,
        np.empty(0),
        10,
    )
    buffer = replay.new_buffer(1, 16)
    buffer.u[:10, 0], buffer.y[:10] = np.arange(10), 1.0
    found, drawn = new_minibatch(16, 1), set()
    for number in range(40):
        replay.draw_recent(
            Material(chunk, buffer, np.empty(0), new_past(0, 1)), 3, window, number, found
        )
        drawn |= set(found.u[:, 0].tolist())
    assert drawn == set(range(max(0, 13 - window), 13))


def test_forgotten_pairs_ask_for_nothing():
    buffer, past = replay.new_buffer(2, 4), new_past(4, 2)
    u = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    buffer.u[:3], buffer.y[:3] = u, 1.0
    pairs = Minibatch(u, np.ones(3), np.zeros(3), np.empty(0), np.empty((0, 0)))
    replay.remember(past, pairs)
    places = replay.places_of(buffer, past, -2.0 * u[1:2], 3)  # known by their direction
    assert replay.forget(buffer, past, places, 3) == 1
    np.testing.assert_array_equal(buffer.y, [1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(past.y[0], [1.0, 0.0, 1.0, 0.0])
