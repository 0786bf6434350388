"""Which remembered points are compared, held against numpy."""

import numpy as np
import pytest

from metrack.engine.online.partners import CANDIDATES, PER_PAIR, Drawn, Slots, draw

N_SLOTS, N_NEW = 60, 40


def slots(rng, doubt, n_classes=3, rank=2):
    images = rng.normal(size=(N_SLOTS + N_NEW, rank))
    labels = rng.integers(n_classes, size=N_SLOTS)
    clock, doubt = np.array([N_SLOTS, 0]), np.array([float(N_SLOTS), doubt])
    return Slots(labels, np.arange(N_SLOTS), images, clock, doubt, N_SLOTS // 2)


def drawn(state, new, uniforms):
    found = Drawn(np.empty((len(new) * 4, 2), np.int64), np.empty(len(new) * 4))
    n = draw(state, new, uniforms, np.empty(N_SLOTS, np.int64), found)
    return found.pairs[:n], found.y[:n]


def expected(state, new, uniforms):
    """The same, a point at a time."""
    labels, rows, pairs, y = state.labels.copy(), state.rows.copy(), [], []
    compared, misled = state.doubt
    for i, label in enumerate(new):
        point = state.images[N_SLOTS + i]
        far = ((state.images[rows] - point) ** 2).sum(axis=1)
        nearest = [far[labels == label].min(), far[labels != label].min()]
        compared = min(compared + 1, N_SLOTS)
        misled += (float(nearest[1] < nearest[0]) - misled) / compared
        k = int(np.clip(1 / max(misled, 1 / N_SLOTS) / 2, 1, CANDIDATES))
        for pair in range(4):
            numbers = uniforms[i, pair * PER_PAIR :][:k]
            alike = len(y) % 2 == 0
            partners = np.flatnonzero((labels == label) == alike)
            chosen = partners[(numbers * len(partners)).astype(int)]
            pairs.append((N_SLOTS + i, rows[chosen[np.argmin(far[chosen])]]))
            y.append(1.0 if alike else -1.0)
        slot = (N_SLOTS + i) % (N_SLOTS // 2)
        old = labels[slot], rows[slot]
        labels[slot], rows[slot] = label, N_SLOTS + i
        place = int(uniforms[i, -1] * (N_SLOTS // 2 + i + 1))
        if place < N_SLOTS // 2:
            labels[N_SLOTS // 2 + place], rows[N_SLOTS // 2 + place] = old
    return pairs, y, misled


@pytest.mark.parametrize("doubt", [0.0, 0.2, 1.0])
def test_partners_are_the_nearest_of_those_drawn(doubt):
    rng = np.random.default_rng(0)
    state, new = slots(rng, doubt), rng.integers(3, size=N_NEW)
    uniforms = rng.random((N_NEW, 4 * PER_PAIR + 1))
    pairs, y, misled = expected(state, new, uniforms)
    found, labels = drawn(state, new, uniforms)
    assert found.tolist() == [list(pair) for pair in pairs]
    assert labels.tolist() == y
    assert state.doubt[1] == pytest.approx(misled)


def test_without_a_metric_partners_are_drawn_at_random():
    rng = np.random.default_rng(0)
    state = slots(rng, 0.0, rank=0)
    found, _ = drawn(state, rng.integers(3, size=N_NEW), rng.random((N_NEW, 4 * PER_PAIR + 1)))
    assert len(found) == 4 * N_NEW
    assert state.doubt.tolist() == [N_SLOTS, 0.0]


def test_where_there_is_no_partner_none_is_drawn():
    rng = np.random.default_rng(0)
    state = slots(rng, 0.0, n_classes=1)
    found, y = drawn(state, np.zeros(N_NEW, np.int64), rng.random((N_NEW, 4 * PER_PAIR + 1)))
    assert y.tolist() == [1.0]
    assert len(found) == 1
