"""Several banks under one combiner: learn, then combine."""

import numba
import numpy as np
import pytest

from metrack.engine.ensemble import units
from metrack.engine.ensemble.basis import Basis
from metrack.engine.ensemble.combine import AVERAGE, SAMPLE, Combination
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.space import Space
from metrack.engine.ensemble.views import AS_THEY_COME, OWN
from metrack.engine.learners import cover
from metrack.engine.learners.mirror import CONSTANT, Ladder, MirrorBank, Rule
from metrack.engine.learners.plain import PlainBank
from metrack.engine.learners.target import Pace, TargetBank
from metrack.engine.numerics.divergences import BURG, FROBENIUS
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.losses import HINGE
from metrack.engine.numerics.steps import IMPLICIT
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from metrack.engine.representations.spectral import SPECTRAL
from tests.engine.ensemble.given import SHARING, dense, ensemble_of, mixture, observe, state

N = 4


def stream(n_pairs=300):
    rng = np.random.default_rng(0)
    u = rng.normal(size=(n_pairs, N))
    return u, np.where(np.abs(u[:, 0]) < 1.0, 1.0, -1.0)


def margin_bank(first_interval=1, divergence=BURG, rate=0.5):
    rule = Rule(HINGE, divergence, IMPLICIT, CONSTANT, 0.0, N, first_interval)
    representation = DENSE_FACTOR if divergence == BURG else SPECTRAL
    on_cover = first_interval > 0
    ladder = Ladder(rate, max(first_interval, 1), 2.0 if on_cover else 4.0)
    return MirrorBank(N, rule, ladder, representation, 2 if on_cover else 3, identity=True)


class Plain:
    """Another kind of learner: plain distance with fixed thresholds, always on, in plain Python."""

    STATE, first_interval, recent, remembers, name = (), 0, 0, False, "plain"

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
        return self.mixture(np.ones(1), unit)

    def mixture(self, p, unit):
        return Factored(p.sum() * np.ones(N) / unit, np.eye(N), 0.0)

    def matrix(self, p):
        return p.sum() * np.eye(N), p.sum()

    def continue_from(self, old):
        raise NotImplementedError

    def check(self, n_features):
        pass


def ensemble(*banks, combiner="sadl", output=AVERAGE):
    record = COMBINERS[combiner].record
    return ensemble_of(N, banks, Combination(HINGE, record, output, cap=4.0), scaled=True)


@pytest.mark.parametrize("combiner", COMBINERS)
def test_several_kinds_side_by_side_whatever_the_calls(combiner):
    """Many calls of any sizes give the same state, bit for bit, as one."""
    draws = np.random.default_rng(1).random(300)
    found = []
    for sizes in ((300,), (1,), (7, 64, 1)):
        banks = [Plain(), margin_bank(0)] if COMBINERS[combiner].always_on else [margin_bank()]
        tracker = ensemble(*banks, combiner=combiner, output=SAMPLE)
        losses = observe(tracker, *stream(), sizes, draws)
        found.append([losses.tobytes(), tracker.experts.weights.tobytes(), state(tracker)])
    assert found[0] == found[1] == found[2]


def test_experts_are_those_of_banks_alone():
    """Learners do not know of each other: each predicts what it predicts in a bank of its own."""
    banks = margin_bank(0), Plain(), margin_bank(0, FROBENIUS)
    tracker = ensemble(*banks)
    observe(tracker, *stream())
    assert tracker.experts.n_active == 3 + 2 + 3
    lengths = [1.0, 4.0, 16.0]
    assert tracker.experts.lengths.tolist() == [*lengths, np.inf, np.inf, *lengths]
    again = (banks[0], margin_bank(0), 0), (banks[2], margin_bank(0, FROBENIUS), 5)
    for learned, bank, first in again:
        alone = ensemble(bank)
        observe(alone, *stream())
        for ours, theirs in zip(learned.learners, bank.learners, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for j in range(alone.experts.n_active):
            ours, theirs = tracker.metric(first + j), alone.metric(j)
            # In one space with others a metric is read as the nearest to a form, by eigenvalues.
            np.testing.assert_allclose(ours.matrix(), theirs.matrix(), rtol=1e-7, atol=1e-9)
            assert tracker.mu[first + j] == alone.mu[j]
    with pytest.raises(IndexError, match="8"):
        tracker.metric(8)


def test_the_output_is_the_mean_over_all_banks():
    tracker = ensemble(margin_bank(0), Plain(), margin_bank(0, FROBENIUS))
    observe(tracker, *stream())
    p = tracker.experts.weights
    assert p.sum() == pytest.approx(1.0)
    mean = sum(weight * tracker.metric(j).matrix() for j, weight in enumerate(p))
    np.testing.assert_allclose(tracker.mixture(p).matrix(), mean, atol=1e-10)


def test_twins_share_what_one_had():
    """Two banks of the same learners: each has half the trust, and the output is the same."""
    one, two = ensemble(margin_bank(0)), ensemble(margin_bank(0), margin_bank(0))
    losses = [observe(each, *stream()) for each in (one, two)]
    np.testing.assert_allclose(*losses, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        np.tile(one.experts.weights, 2) / 2.0, two.experts.weights, rtol=1e-9
    )
    np.testing.assert_allclose(mixture(one).matrix(), mixture(two).matrix())


def test_the_combiner_finds_the_kind_that_is_right():
    """Where plain distance decides, plain distance is trusted."""
    u, _ = stream(2000)
    y = np.where((u**2).sum(axis=1) < 4.0, 1.0, -1.0)
    # In units of a mean |u|^2 of 2, the threshold is at 2 and not at 20.
    tracker = ensemble(Plain((2.0, 20.0)), margin_bank(0, rate=1e-3), combiner="fixed_share")
    observe(tracker, u, y)
    assert tracker.experts.weights[1] < 0.01
    assert np.argmax(tracker.experts.weights) == 0


def test_a_bank_on_a_cover_stands_alone():
    with pytest.raises(ValueError, match="2 banks on a cover: one alone"):
        ensemble(margin_bank(1), Plain())


@numba.njit
def active_levels(t, first_interval):
    return cover.active_levels(cover.time_on_cover(t, first_interval), first_interval)


@pytest.mark.parametrize("first_interval", [1, 3, 16])
def test_python_and_compiled_code_agree_on_who_is_active(first_interval):
    for t in range(1, 2000):
        assert cover.n_active_levels(t, first_interval) == active_levels(t, first_interval)


PACE = Pace(np.array([0.3, 0.05]), np.zeros(2), np.array([3, 0]), np.array([8, 1]), np.ones(2))


def space_of(n=N, width=0):
    """The same learners on all features, or on a basis."""
    banks = [TargetBank(width or n, PACE), PlainBank(width or n)]
    return Space(n, banks, True, Basis(n, width) if width else None, neighbours=True)


def spaces_of(names=(AS_THEY_COME, OWN), widths=(0, 0), n=N):
    """An ensemble of the same learners in each of some views."""
    return Ensemble(n, [space_of(n, width) for width in widths], names, SHARING)


def unlike(n_pairs=700):
    """Features of very different units."""
    u, _ = stream(n_pairs)
    return u * np.array([1e3, 1.0, 1.0, 1e-3]), np.where(np.abs(u[:, 3]) < 0.7, 1.0, -1.0)


def test_each_space_sees_its_view_of_the_pairs():
    """In own units or as they come: its learners are those of such pairs alone."""
    tracker, (u, y) = spaces_of(), unlike()
    observe(tracker, u, y)
    own = units.in_own_units(units.new_units(N), dense(u, y)).u.reshape(u.shape)
    for space, seen in zip(tracker.spaces, (u, own), strict=True):
        alone = ensemble_of(N, [TargetBank(N, PACE), PlainBank(N)], scaled=True, neighbours=True)
        observe(alone, seen, y)
        for ours, theirs in zip(space.banks, alone.banks, strict=True):
            for part in ours.STATE:
                record, expected = getattr(ours, part), getattr(theirs, part)
                for a, b in zip(record, expected, strict=True):
                    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("width", [0, N])
def test_what_spaces_predict_is_what_is_read(width):
    """The mixture is of pairs as they come, whatever spaces see, and on a basis, too."""
    u, y = unlike()
    tracker = spaces_of(widths=(0, width))
    for t in (30, 500, 650):
        done = slice(tracker.n_pairs, t)
        observe(tracker, u[done], y[done])
        mu, q = tracker.experts.weights @ tracker.mu, mixture(tracker).squared_distances(u[[t]])[0]
        loss = observe(tracker, u[[t]], y[[t]])[0]
        assert loss == pytest.approx(max(0.0, 1.0 - y[t] * (mu - q)), rel=1e-6, abs=1e-6)
    tracker.check()


def test_metrics_of_experts_add_up_over_spaces():
    tracker, (u, y) = spaces_of(), unlike()
    observe(tracker, u, y)
    p = tracker.experts.weights
    metrics = [tracker.metric(j).matrix() for j in range(len(p))]
    own = np.sqrt(np.diag(mixture(tracker).matrix()))  # in units that all features have alike
    found, expected = (
        M / np.outer(own, own) for M in (mixture(tracker).matrix(), np.tensordot(p, metrics, 1))
    )
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_predictions_are_told_block_by_block():
    """Those of each bank, of all pairs, in the order of spaces."""
    tracker, (u, y), said = spaces_of(), unlike(), []
    for rows in (slice(0, 100), slice(100, 700)):
        tracker.observe(dense(u[rows], y[rows]), np.empty(0), said)
    sizes = [len(banks[0].q) for banks in said]
    assert sum(sizes) == 700
    assert np.cumsum(sizes)[:4].tolist() == [1, 2, 4, 8]
    assert all([one.q.shape[1] for one in banks] == [2, 1, 2, 1] for banks in said)
    for bank in (1, 3):  # plain distance: in features as they come of the first one alone
        q = np.concatenate([banks[bank].q[:, 0] for banks in said])
        norm2 = (u**2).sum(axis=1)
        likeness = np.corrcoef(np.log(q[100:]), np.log(norm2[100:]))[0, 1]
        assert (likeness > 0.9) == (bank == 1)


def test_calls_of_any_sizes_with_several_spaces():
    u, y = unlike()
    found = []
    for sizes in ((700,), (1,), (7, 64, 300, 1)):
        tracker = spaces_of(widths=(3, 0))
        losses = observe(tracker, u, y, sizes)
        found.append([losses.tobytes(), state(tracker)])
    assert found[0] == found[1] == found[2]


def test_a_forgotten_pair_is_forgotten_in_every_space():
    """It is found by how it came, where units and bases have changed since."""
    u, y = unlike(200)
    for widths in ((0, 0), (3, 0), (0, 3)):
        tracker = spaces_of(widths=widths)
        observe(tracker, u, y)
        some = dense(-u[197:199], np.zeros(2))
        assert tracker.forget(some) == 2
        assert tracker.forget(some) == 0
        for space in tracker.spaces:
            kept = space.memory.recent.y
            expected = np.where(np.isin(np.arange(200), (197, 198)), 0.0, y)
            last = np.arange(200 - min(len(kept), 200), 200)
            np.testing.assert_array_equal(kept[last % len(kept)], expected[last])


def test_a_wider_ensemble_goes_on_space_by_space():
    """With the trust of each learner; what the other does not have starts now, trusted by none."""
    u, y = unlike()
    old, new = spaces_of(), spaces_of(n=N + 2)
    observe(old, u, y)
    new.continue_from(old)
    new.check()
    np.testing.assert_array_equal(new.experts.weights, old.experts.weights)
    M, before = mixture(new).matrix(), mixture(old).matrix()
    np.testing.assert_allclose(M[:N, :N], before, rtol=1e-9, atol=1e-12)
    only = spaces_of((AS_THEY_COME,), (0,))
    observe(only, u, y)
    more = spaces_of()
    more.continue_from(only)
    more.check()
    assert more.n_pairs == only.n_pairs
    np.testing.assert_array_equal(more.experts.weights[3:], 0.0)
    assert np.isfinite(observe(more, u, y)).all()
