"""The pass over nested windows, held against sorting all distances."""

import numba
import numpy as np
import pytest

from metrack.engine.online.nearest import (
    EMPTY,
    Nearest,
    Point,
    embed,
    find_nearest,
    make_room,
    new_memory,
)

N_RING, N_RESERVE, N_FEATURES, K = 40, 8, 5, 3
WINDOWS = np.array([8, 40])
ORDER = np.arange(N_FEATURES)


@numba.njit
def look(memory, images, newest, point, windows, found):
    find_nearest(memory, images, newest, point, windows, found)


@numba.njit
def room(memory, n_ring, slot, held):
    return make_room(memory, n_ring, slot, held)


def filled(n_points, codes=None, seed=0):
    """A memory after a stream, by plain lists: the ring's points, oldest first, and the reserve."""
    rng = np.random.default_rng(seed)
    points = np.round(rng.normal(size=(n_points, N_FEATURES)), 1)  # some are equally far
    codes = rng.integers(3, size=n_points) if codes is None else codes
    memory, held = new_memory(N_RING + N_RESERVE, N_FEATURES), np.zeros(10, np.int64)
    reserve = []
    for t in range(n_points):
        slot = t % N_RING
        room(memory, N_RING, slot, held)
        if t >= N_RING:
            retire(reserve, t - N_RING, codes)
        memory.points[slot], memory.codes[slot], memory.arrived[slot] = points[t], codes[t], t + 1
    assert not held.any()
    return memory, points, codes, reserve


def retire(reserve, leaving, codes):
    """The oldest of the class that has most makes place."""
    if len(reserve) == N_RESERVE:
        counts = np.bincount([codes[i] for i in [*reserve, leaving]])
        most = max(counts[codes[i]] for i in reserve)
        gone = min(i for i in reserve if counts[codes[i]] == most)
        reserve[reserve.index(gone)] = leaving
    else:
        reserve.append(leaving)


@pytest.mark.parametrize("n_points", [0, 1, 7, 8, 39, 40, 41, 45, 200])
def test_nearest_of_each_window(n_points):
    memory, points, codes, reserve = filled(n_points)
    rng = np.random.default_rng(1)
    query, units = rng.normal(size=N_FEATURES), rng.random(N_FEATURES)
    columns = rng.normal(size=(N_FEATURES, 2))
    images = np.zeros((len(memory.codes), 2))
    embed(memory.points, columns, ORDER, images)
    image = np.zeros((1, 2))
    embed(query[None], columns, ORDER, image)
    found = Nearest(np.empty((3, 3, K)), np.empty((3, 3, K), np.int64))
    look(memory, images, (n_points - 1) % N_RING, Point(query, units, image[0]), WINDOWS, found)
    newest_first = list(range(n_points))[::-1][:N_RING]
    remembered = [newest_first[: WINDOWS[0]], newest_first, newest_first + reserve]
    for metric, map_ in enumerate((np.eye(N_FEATURES), np.diag(units), columns)):
        for window, rows in enumerate(remembered):
            far = (((points[rows] - query) @ map_) ** 2).sum(axis=1)
            nearest = np.argsort(far, kind="stable")[:K]
            n = len(nearest)
            np.testing.assert_allclose(found.squares[metric, window, :n], far[nearest])
            assert (
                found.codes[metric, window, :n].tolist()
                == codes[np.array(rows, int)][nearest].tolist()
            )
            assert (found.codes[metric, window, n:] == EMPTY).all()


def test_the_reserve_keeps_every_class():
    """Four rare ones come first; then one class alone, for long."""
    codes = np.concatenate([np.repeat(np.arange(4), 3), np.full(500, 4)])
    memory, _, _, reserve = filled(len(codes), codes)
    kept = memory.codes[N_RING:]
    assert sorted(kept.tolist()) == sorted(codes[reserve].tolist())
    assert set(kept.tolist()) == {0, 1, 2, 3, 4}
    assert set(memory.arrived[N_RING:].tolist()) == {i + 1 for i in reserve}


def test_an_image_does_not_depend_on_the_others():
    rng = np.random.default_rng(0)
    points, columns = rng.normal(size=(50, N_FEATURES)), rng.normal(size=(N_FEATURES, 7))
    together, alone = np.empty((50, 7)), np.empty((50, 7))
    embed(points, columns, ORDER, together)
    for i in range(50):
        embed(points[i : i + 1], columns, ORDER, alone[i : i + 1])
    assert (together == alone).all()
    np.testing.assert_allclose(together, points @ columns)
