"""Several banks under one combiner: learn, then combine."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp

from metrack.engine.ensemble import cover
from metrack.engine.ensemble.combine import AVERAGE, SAMPLE, Combination
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.mirror import CONSTANT, Ladder, MirrorBank, Rule
from metrack.engine.ensemble.replay import new_buffer, store
from metrack.engine.numerics.divergences import BURG, FROBENIUS
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.losses import HINGE
from metrack.engine.numerics.pairs import Chunk, Pairs
from metrack.engine.numerics.steps import IMPLICIT
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from metrack.engine.representations.spectral import SPECTRAL

N = 4
NOTHING = np.empty(0)


def stream(n_pairs=300):
    rng = np.random.default_rng(0)
    u = rng.normal(size=(n_pairs, N))
    return u, np.where(np.abs(u[:, 0]) < 1.0, 1.0, -1.0)


def batch(u, y):
    return Pairs(u.ravel().copy(), np.arange(N), np.empty(0, np.int64), y)


def margin_bank(first_interval=1, divergence=BURG, rate=0.5):
    rule = Rule(HINGE, divergence, IMPLICIT, CONSTANT, 0.0, N, first_interval)
    representation = DENSE_FACTOR if divergence == BURG else SPECTRAL
    on_cover = first_interval > 0
    ladder = Ladder(rate, max(first_interval, 1), 2.0 if on_cover else 4.0)
    return MirrorBank(N, rule, ladder, representation, 2 if on_cover else 3, identity=True)


class Plain:
    """Another kind of learner: plain distance with fixed thresholds, always on, in plain Python."""

    first_interval, recent, name = 0, 0, "plain"

    def __init__(self, thresholds=(1.0, 2.0)):
        self.thresholds = np.array(thresholds)

    @property
    def lengths(self):
        return np.full(len(self.thresholds), np.inf)

    @property
    def mu(self):
        return self.thresholds

    def n_active(self, t):
        return len(self.thresholds)

    def learn(self, material, predictions):
        predictions.q[:] = material.chunk.norm2[:, None]
        predictions.mu[:] = self.thresholds

    def metric(self, j, unit):
        return Factored(np.ones(N) / unit, np.eye(N), 0.0)

    def mixture(self, p, unit):
        return Factored(p.sum() * np.ones(N) / unit, np.eye(N), 0.0)

    def continue_from(self, old):
        raise NotImplementedError

    def check(self, n_features):
        pass


def ensemble(*banks, combiner="sadl", output=AVERAGE):
    record = COMBINERS[combiner].record
    return Ensemble(N, banks, Combination(HINGE, record, output, cap=4.0), True)


def observe(tracker, sizes, draws=None):
    u, y = stream()
    losses, done, call = [], 0, 0
    while done < len(y):
        stop = done + sizes[call % len(sizes)]
        drawn = NOTHING if draws is None else draws[done:stop]
        losses.append(tracker.observe(batch(u[done:stop], y[done:stop]), drawn))
        done, call = stop, call + 1
    return np.concatenate(losses)


def arrays(tracker):
    """All state, bit for bit."""
    owners = [tracker, *(bank for bank in tracker.banks if isinstance(bank, MirrorBank))]
    parts = [part for owner in owners for part in vars(owner).values()]
    fields = [each for part in parts if isinstance(part, tuple) for each in part]
    return [each.tobytes() for each in (*parts, *fields) if isinstance(each, np.ndarray)]


@pytest.mark.parametrize("combiner", COMBINERS)
def test_several_kinds_side_by_side_whatever_the_calls(combiner):
    """Many calls of any sizes give the same state, bit for bit, as one."""
    draws = np.random.default_rng(1).random(300)
    found = []
    for sizes in ((300,), (1,), (7, 64, 1)):
        banks = [Plain(), margin_bank(0)]
        if COMBINERS[combiner].own_rows == 0:  # else for experts that are always on
            banks += [margin_bank(), margin_bank(divergence=FROBENIUS)]
        tracker = ensemble(*banks, combiner=combiner, output=SAMPLE)
        losses = observe(tracker, sizes, draws)
        found.append([losses.tobytes(), tracker.weights.tobytes(), *arrays(tracker)])
    assert found[0] == found[1] == found[2]


def test_experts_are_those_of_banks_alone():
    """Learners do not know of each other: each predicts what it predicts in a bank of its own."""
    banks = margin_bank(), Plain(), margin_bank(divergence=FROBENIUS), margin_bank(0)
    tracker = ensemble(*banks)
    observe(tracker, (50,))
    assert tracker.n_active == 2 + 3 + 2 * 9
    always, levels = tracker.lengths[:5], tracker.lengths[5:]
    assert always.tolist() == [np.inf, np.inf, 1.0, 4.0, 16.0]
    assert levels.tolist() == np.repeat(2.0 ** np.arange(9), 2).tolist()
    for bank, first, stride in ((margin_bank(), 5, 2), (margin_bank(0), 2, 1)):
        alone = ensemble(bank)
        observe(alone, (300,))
        for j in range(alone.n_active):
            ours, theirs = tracker.metric(first + stride * j), alone.metric(j)
            np.testing.assert_array_equal(ours.matrix(), theirs.matrix())
            assert tracker.mu[first + stride * j] == alone.mu[j]
    with pytest.raises(IndexError, match="expert 23 of 23"):
        tracker.metric(23)


def test_the_output_is_the_mean_over_all_banks():
    tracker = ensemble(margin_bank(), Plain(), margin_bank(divergence=FROBENIUS))
    observe(tracker, (300,))
    p = tracker.weights
    assert p.sum() == pytest.approx(1.0)
    mean = sum(weight * tracker.metric(j).matrix() for j, weight in enumerate(p))
    np.testing.assert_allclose(tracker.mixture(p).matrix(), mean, atol=1e-10)


def test_twins_share_what_one_had():
    """Two banks of the same learners: each has half the trust, and the output is the same."""
    one, two = ensemble(margin_bank()), ensemble(margin_bank(), margin_bank())
    np.testing.assert_allclose(observe(one, (300,)), observe(two, (300,)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.repeat(one.weights, 2) / 2.0, two.weights, rtol=1e-9)
    np.testing.assert_allclose(one.mixture(one.weights).matrix(), two.mixture(two.weights).matrix())


def test_the_combiner_finds_the_kind_that_is_right():
    """Where plain distance decides, plain distance is trusted."""
    u, _ = stream(2000)
    y = np.where((u**2).sum(axis=1) < 4.0, 1.0, -1.0)
    # In units of a mean |u|^2 of 2, the threshold is at 2 and not at 20.
    tracker = ensemble(Plain((2.0, 20.0)), margin_bank(0, rate=1e-3), combiner="fixed_share")
    tracker.observe(batch(u, y), NOTHING)
    assert tracker.weights[1] < 0.01
    assert np.argmax(tracker.weights) == 0


def test_banks_on_different_covers_are_refused():
    with pytest.raises(ValueError, match=r"\[\(1, 2\), \(4, 2\)\]: they must agree"):
        ensemble(margin_bank(1), margin_bank(4))


@pytest.mark.parametrize("sparse", [False, True])
def test_the_buffer_holds_the_last_pairs(sparse):
    rng = np.random.default_rng(2)
    u = rng.normal(size=(700, N)) * (rng.random((700, N)) < 0.6)
    buffer, seen = new_buffer(N, 256), 0
    for size in (1, 3, 250, 2, 400, 44):
        rows = u[seen : seen + size]
        parts = rows.ravel(), np.arange(N), np.empty(0, np.int64)
        if sparse:
            csr = sp.csr_array(rows)
            parts = csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
        y = np.arange(seen, seen + size, dtype=float)
        store(buffer, Chunk(*parts, y, np.empty(size), np.empty(0), seen))
        seen += size
        last = np.arange(max(0, seen - 256), seen)
        np.testing.assert_array_equal(buffer.u[last % 256], u[last])
        np.testing.assert_array_equal(buffer.y[last % 256], last)


@numba.njit
def active_levels(t, first_interval):
    return cover.active_levels(cover.time_on_cover(t, first_interval), first_interval)


@pytest.mark.parametrize("first_interval", [1, 3, 16])
def test_python_and_compiled_code_agree_on_who_is_active(first_interval):
    for t in range(1, 2000):
        assert cover.n_active_levels(t, first_interval) == active_levels(t, first_interval)
