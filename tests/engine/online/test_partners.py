"""Which remembered points are compared, held against numpy."""

import numpy as np
import pytest

from metrack.engine.online.nearest import EMPTY
from metrack.engine.online.partners import (
    CANDIDATES,
    PER_PAIR,
    PER_POINT,
    Drawn,
    Slots,
    draw,
    new_doubt,
    new_work,
    windows_of,
)

N_SLOTS, N_RECENT, N_NEW, N_PAIRS = 60, 30, 40, 6
WINDOWS = [1, 3, 7, 15, 30, 60]


def slots(rng, doubt, n_classes=3, rank=2, n_recent=N_RECENT):
    images = rng.normal(size=(N_SLOTS + N_NEW, rank))
    labels, windows = rng.integers(n_classes, size=N_SLOTS), windows_of(n_recent, N_SLOTS)
    doubts = np.concatenate([[float(N_SLOTS)], np.broadcast_to(doubt, len(windows))])
    tallies = np.array([N_SLOTS, 0]), doubts, windows
    return Slots(labels, np.arange(N_SLOTS), images, *tallies, n_recent)


def numbers(rng):
    return rng.random((N_NEW, N_PAIRS * PER_PAIR + PER_POINT))


def drawn(state, new, uniforms):
    n_pairs = len(new) * N_PAIRS
    found = Drawn(np.empty((n_pairs, 2), np.int64), np.empty(n_pairs))
    n = draw(state, new, uniforms, new_work(N_SLOTS, len(state.windows)), found)
    return found.pairs[:n], found.y[:n]


def expected(state, new, uniforms):
    """The same, a point at a time."""
    labels, rows, pairs, y = state.labels.copy(), state.rows.copy(), [], []
    compared, misled = state.doubt[0], state.doubt[1:].copy()
    for i, own in enumerate(new):
        far = ((state.images[rows] - state.images[N_SLOTS + i]) ** 2).sum(axis=1)
        order = [(N_SLOTS + i - 1 - back) % N_RECENT for back in range(N_RECENT)]
        order = np.array([*order, *range(N_RECENT, N_SLOTS)])
        compared = min(compared + 1, N_SLOTS)
        for w, length in enumerate(WINDOWS):
            same = labels[order[:length]] == own
            both = same.any() and not same.all()
            nearest = np.argmin(far[order[:length]])
            misled[w] += (1.0 - (both and same[nearest]) - misled[w]) / compared
        weights = np.exp(-np.sqrt(8 * np.log(len(WINDOWS)) * compared) * (misled - misled.min()))
        ends = np.cumsum(weights / weights.sum())
        k = int(np.clip(2 / max(misled[-1], 1 / N_SLOTS) / N_PAIRS, 1, CANDIDATES))
        for pair in range(N_PAIRS):
            alike = len(y) % 2 == 0
            place = (uniforms[i, -2] + pair // 2 * 2 / N_PAIRS) % 1
            window = np.searchsorted(ends[:-1], place, "right")
            draws = uniforms[i, pair * PER_PAIR :][:k]
            partners = []
            for length in WINDOWS[window:]:
                partners = [s for s in order[:length] if (labels[s] == own) == alike]
                if partners:
                    break
            chosen = np.array(partners)[(draws * len(partners)).astype(int)]
            pairs.append((N_SLOTS + i, rows[chosen[np.argmin(far[chosen])]]))
            y.append(1.0 if alike else -1.0)
        slot = (N_SLOTS + i) % N_RECENT
        old = labels[slot], rows[slot]
        labels[slot], rows[slot] = own, N_SLOTS + i
        place = int(uniforms[i, -1] * (N_SLOTS - N_RECENT + i + 1))
        if place < N_SLOTS - N_RECENT:
            labels[N_RECENT + place], rows[N_RECENT + place] = old
    return pairs, y, misled


@pytest.mark.parametrize("doubt", [0.0, 0.2, 1.0, np.linspace(0.5, 0.0, 6)], ids=str)
def test_partners_are_the_nearest_of_those_drawn_from_a_window(doubt):
    rng = np.random.default_rng(0)
    state, new = slots(rng, doubt), rng.integers(3, size=N_NEW)
    uniforms = numbers(rng)
    pairs, y, misled = expected(state, new, uniforms)
    found, labels = drawn(state, new, uniforms)
    assert found.tolist() == [list(pair) for pair in pairs]
    assert labels.tolist() == y
    np.testing.assert_allclose(state.doubt[1:], misled)


def test_windows_are_halves():
    assert windows_of(N_RECENT, N_SLOTS).tolist() == WINDOWS
    assert windows_of(8, 8).tolist() == [1, 2, 4, 8]
    assert windows_of(0, 5).tolist() == [5]


def late_share(meaning, n_points=3000):
    """How many of the last partners are among the latest 32 points.

    The class is told by the side of 0 on which a point is; ``meaning`` turns it by so much a point.
    """
    rng = np.random.default_rng(0)
    size, n_recent = 256, 128
    images = rng.normal(size=(size + n_points, 2))
    turns = meaning * np.arange(n_points)
    new = (images[size:, 0] * np.cos(turns) + images[size:, 1] * np.sin(turns) > 0).astype(int)
    windows = windows_of(n_recent, size)
    tallies = np.zeros(2, np.int64), new_doubt(len(windows)), windows
    state = Slots(np.full(size, EMPTY), np.arange(size), images, *tallies, n_recent)
    found = Drawn(np.empty((n_points * 4, 2), np.int64), np.empty(n_points * 4))
    uniforms = rng.random((n_points, 4 * PER_PAIR + PER_POINT))
    n = draw(state, new, uniforms, new_work(size, len(windows)), found)
    pairs = found.pairs[n // 2 : n]
    return np.mean(pairs[:, 0] - pairs[:, 1] <= 32)


def test_partners_are_of_late_where_classes_move_and_of_any_time_where_not():
    assert late_share(0.05) > 0.7
    assert late_share(0.0) < 0.3


def test_without_a_metric_partners_are_drawn_from_all_windows():
    rng = np.random.default_rng(0)
    state = slots(rng, 0.0, rank=0)
    found, _ = drawn(state, rng.integers(3, size=N_NEW), numbers(rng))
    assert len(found) == N_PAIRS * N_NEW
    assert state.doubt.tolist() == [N_SLOTS, *[0.0] * len(WINDOWS)]


@pytest.mark.parametrize("n_recent", [0, N_RECENT, N_SLOTS])
def test_where_there_is_no_partner_none_is_drawn(n_recent):
    rng = np.random.default_rng(0)
    state = slots(rng, 0.0, n_classes=1, n_recent=n_recent)
    found, y = drawn(state, np.zeros(N_NEW, np.int64), numbers(rng))
    assert y.tolist() == [1.0]
    assert len(found) == 1
