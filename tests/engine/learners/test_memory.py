"""The pairs that are kept: the last ones, and of all the past some, each kind for itself."""

import numpy as np
import pytest
import scipy.sparse as sp

from metrack.engine.learners.memory import Memory, new_past, remember
from metrack.engine.learners.replay import (
    Material,
    draw_past,
    draw_recent,
    last_pairs,
    new_minibatch,
)
from metrack.engine.numerics.pairs import Chunk
from tests.engine.learners.given import DENSE, NOTHING, chunk_of

N = 4


def stored(memory, u, y, seen=0, whole=NOTHING):
    """A memory that these pairs were added to."""
    memory.store(chunk_of(u, y, seen, whole))
    return memory


def numbered(numbers, y):
    """A memory of pairs whose one feature is their number, as many as are given."""
    u = np.asarray(numbers, dtype=float)[:, None]
    return stored(Memory(1, len(u), 0, False), u, np.asarray(y, dtype=float)).recent


def remembered(past, numbers, y):
    """The past, when pairs of these numbers were added."""
    remember(past, numbered(numbers, y), np.arange(len(numbers)))
    return past


@pytest.mark.parametrize("sparse", [False, True])
def test_the_last_pairs_are_held(sparse):
    rng = np.random.default_rng(2)
    u = rng.normal(size=(700, N)) * (rng.random((700, N)) < 0.6)
    longer = (u**2).sum(axis=1) + rng.random(700)
    memory, seen = Memory(N, 256, 0, True), 0
    for size in (1, 3, 250, 2, 400, 44):
        rows = u[seen : seen + size]
        parts = rows.ravel(), np.arange(N), DENSE
        if sparse:
            csr = sp.csr_array(rows)
            parts = csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
        y = np.arange(seen, seen + size, dtype=float)
        memory.store(Chunk(*parts, y, np.empty(size), longer[seen : seen + size], seen))
        seen += size
        last = np.arange(max(0, seen - 256), seen)
        np.testing.assert_array_equal(memory.recent.u[last % 256], u[last])
        np.testing.assert_array_equal(memory.recent.y[last % 256], last)
        np.testing.assert_array_equal(memory.recent.whole[last % 256], longer[last])
    memory.check(N)


@pytest.mark.parametrize("stop", [0, 3, 5])
@pytest.mark.parametrize("most", [2, 6, 100])
def test_the_last_pairs_before_a_row(stop, most):
    """Those of the chunk and, where these are too few, of the memory."""
    u, y = np.random.default_rng(1).normal(size=(13, N)), np.arange(13.0)
    recent = stored(Memory(N, 8, 0, False), u[:8], y[:8]).recent
    material = Material(chunk_of(u[8:], y[8:], 8), recent, new_past(0, N))
    found = last_pairs(material, stop, most)
    asked = slice(max(8 + stop - most, 0), 8 + stop)
    np.testing.assert_array_equal(found.u, u[asked])
    np.testing.assert_array_equal(found.y, y[asked])


def test_a_few_pairs_are_all_kept():
    past = remembered(new_past(8, 1), range(10), [1, -1] * 4 + [-1, 0])
    np.testing.assert_array_equal(past.seen, [4, 5])
    np.testing.assert_array_equal(past.u[0, :4, 0], [0, 2, 4, 6])
    np.testing.assert_array_equal(past.u[1, :5, 0], [1, 3, 5, 7, 8])


def test_of_many_pairs_each_part_of_the_past_has_its_share():
    """A sample of 512 of 16,384: of each quarter 128, with a standard deviation of about 10."""
    past, n = new_past(512, 1), 16_384
    for first in range(0, n, 64):
        remembered(past, range(first, first + 64), np.ones(64))
    kept = past.u[0, :, 0]
    assert len(np.unique(kept)) == 512
    quarters = np.bincount((kept // (n // 4)).astype(int), minlength=4)
    assert (np.abs(quarters - 128) < 50).all()
    assert past.seen.tolist() == [n, 0]


def test_room_for_the_past_grows_as_pairs_come():
    """It is doubled as long as there are more pairs than places, up to what is to be kept."""
    rng = np.random.default_rng(5)
    u, y = rng.normal(size=(90, 2)), np.where(np.arange(90) % 3 == 0, 1.0, -1.0)
    longer = (u**2).sum(axis=1) + 1.0
    memory, places = Memory(2, 16, 32, True), []
    for begin in range(0, 90, 10):
        rows = slice(begin, begin + 10)
        stored(memory, u[rows], y[rows], begin, longer[rows]).keep(begin, begin + 10)
        memory.check(2)
        places.append(memory.past.u.shape[1])
    assert places == [16, 16, 32, 32, 32, 32, 32, 32, 32]
    assert memory.past.seen.tolist() == [30, 60]
    np.testing.assert_array_equal(memory.past.u[0, :30], u[y > 0.0])
    np.testing.assert_array_equal(memory.past.whole[0, :30], longer[y > 0.0])


def test_draws_of_all_the_past_take_half_of_each_kind():
    past, found = new_past(64, 1), new_minibatch(32, 1)
    remembered(past, range(50), np.where(np.arange(50) < 3, 1.0, -1.0))
    draw_past(past, 7, found)
    assert (found.y > 0).sum() == 16
    assert set(found.u[found.y > 0, 0]) <= {0.0, 1.0, 2.0}


def test_where_there_is_one_kind_it_is_drawn():
    past, found = new_past(4, 1), new_minibatch(6, 1)
    draw_past(past, 0, found)
    assert not found.y.any()  # nothing yet: a pair that asks for nothing
    draw_past(remembered(past, [5], [-1.0]), 0, found)
    assert (found.y == -1.0).all()


@pytest.mark.parametrize("width", [1, 3])
def test_drawn_pairs_are_as_long_as_they_were(width):
    """What a bank does not see of a pair, it is told by its length."""
    rng = np.random.default_rng(6)
    u, y = rng.normal(size=(9, 3)), np.where(np.arange(9) % 2 == 0, 1.0, -1.0)
    longer = (u**2).sum(axis=1) + rng.random(9)
    memory = stored(Memory(3, 16, 16, True), u, y, 0, longer)
    memory.keep(0, 9)
    chunk = chunk_of(np.zeros((0, 3)), np.zeros(0), 9, np.zeros(0))
    found, material = new_minibatch(16, width), Material(chunk, memory.recent, memory.past)
    for draw in (
        lambda: draw_past(memory.past, 3, found),
        lambda: draw_recent(material, 0, 9, 3, found),
    ):
        draw()
        for own, label, rest in zip(found.u, found.y, found.rest, strict=True):
            (which,) = np.flatnonzero((u[:, :width] == own).all(axis=1))
            assert label == y[which]
            assert rest == pytest.approx(longer[which] - own @ own, rel=1e-12)


@pytest.mark.parametrize("window", [4, 16])
def test_recent_draws_are_of_the_window(window):
    numbers = np.arange(15.0)[:, None]
    recent = stored(Memory(1, 16, 0, False), numbers[:10], np.ones(10)).recent
    material = Material(chunk_of(numbers[10:], np.ones(5), 10), recent, new_past(0, 1))
    found, drawn = new_minibatch(16, 1), set()
    for number in range(40):
        draw_recent(material, 3, window, number, found)
        drawn |= set(found.u[:, 0].tolist())
    assert drawn == set(range(max(0, 13 - window), 13))


def test_forgotten_pairs_ask_for_nothing():
    u = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    memory = stored(Memory(2, 4, 4, False), u, np.ones(3))
    memory.keep(0, 3)
    places = memory.places(memory.recent.u[:, 0] == 3.0, memory.past.u[..., 0] == 3.0, 3)
    assert memory.forget(places, 3) == 1
    np.testing.assert_array_equal(memory.recent.y, [1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(memory.past.y[0], [1.0, 0.0, 1.0, 0.0])
    assert memory.forget(places, 3) == 0


def test_pairs_that_are_gone_are_not_forgotten_in_the_place_of_others():
    u = np.eye(6)
    memory, other = Memory(6, 8, 0, False), Memory(6, 4, 0, False)
    for each in (memory, other):
        stored(each, u, np.ones(6))
    places = memory.places(memory.recent.u[:, :3].any(axis=1), memory.past.u[..., 0] > 0.0, 6)
    assert sorted(places.recent) == [0, 1, 2]
    assert other.forget(places, 6) == 1
    np.testing.assert_array_equal(other.recent.y, [1.0, 1.0, 0.0, 1.0])  # pairs 4, 5, 2 and 3


@pytest.mark.parametrize(("before", "after"), [(4, 8), (8, 4), (8, 8), (0, 4), (4, 0)])
@pytest.mark.parametrize("n_pairs", [3, 11])
def test_another_memory_goes_on_from_one(before, after, n_pairs):
    """With more features, and for more or fewer pairs, which may be longer than what is kept."""
    u, y = np.random.default_rng(7).normal(size=(n_pairs, 2)), np.arange(1.0, n_pairs + 1.0)
    old = stored(Memory(2, before, 4, False), u, y)
    old.past = remembered_pairs(u)
    new = Memory(3, after, 4, True)
    new.continue_from(old, n_pairs)
    new.check(3)
    known = np.arange(max(n_pairs - min(before, after), 0), n_pairs)
    if before and after:
        slots = known % after
        np.testing.assert_array_equal(new.recent.u[slots], np.pad(u[known], ((0, 0), (0, 1))))
        np.testing.assert_array_equal(new.recent.y[slots], y[known])
        np.testing.assert_allclose(new.recent.whole[slots], (u[known] ** 2).sum(axis=1))
        assert np.sum(new.recent.y != 0.0) == len(known)
    np.testing.assert_array_equal(new.past.u[..., :2], old.past.u)
    assert not new.past.u[..., 2].any()


def remembered_pairs(u):
    """All of these, which are alike."""
    past = new_past(4, u.shape[1])
    remember(past, stored(Memory(2, 16, 0, False), u, np.ones(len(u))).recent, np.arange(len(u)))
    return past


def test_a_memory_of_other_pairs_is_refused():
    memory = Memory(2, 4, 4, False)
    with pytest.raises(ValueError, match="0 pairs of the past are"):
        memory.check(3)
    memory.recent = Memory(2, 8, 4, False).recent
    with pytest.raises(ValueError, match="the replay buffer is"):
        memory.check(2)
    memory.past = new_past(8, 2)
    with pytest.raises(ValueError, match=r"pairs of the past are .*expected at most \(2, 4, 2\)"):
        memory.check(2)
