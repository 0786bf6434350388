"""The textbook COMID-SADL against hand-made rounds and its own regret bound."""

import numpy as np
import pytest

from .comid import DenseCOMID
from .sadl import DenseSADL, cover


def stream(seed, n_pairs, n_features=3):
    """Random differences and labels."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_pairs, n_features)), rng.choice([-1, 1], n_pairs)


def test_cover_table():
    """The cover for I0 = 1 up to 20."""
    expected = [(s, s) for s in range(1, 21)]
    expected += [(s, s + 1) for s in range(2, 21, 2)]
    expected += [(4, 7), (8, 11), (12, 15), (16, 19), (20, 23)]
    expected += [(8, 15), (16, 23), (16, 31)]
    assert cover(20) == expected
    assert cover(12, first_interval=3) == [
        (3, 5), (6, 8), (9, 11), (12, 14), (6, 11), (12, 17), (12, 23),
    ]  # fmt: skip


@pytest.mark.parametrize("first_interval", [1, 3, 4])
def test_active_levels_follow_the_cover(first_interval):
    """floor(log2(tau / I0)) + 1 levels are active: those with an interval of the cover on tau."""
    sadl = DenseSADL(2, eta0=0.5, first_interval=first_interval)
    differences, labels = stream(0, 70, 2)
    intervals = cover(80, first_interval)
    for t, (u, y) in enumerate(zip(differences, labels, strict=True), start=1):
        tau = t + first_interval - 1
        sadl.observe(u, y)
        active = sorted(end - start + 1 for start, end in intervals if start <= tau <= end)
        assert [sadl.length(level) for level in sadl.levels] == active
        assert len(sadl.levels) == int(np.floor(np.log2(tau / first_interval))) + 1


@pytest.mark.parametrize("output", ["sample", "average", "best"])
def test_weights_and_probabilities(output):
    """Weights stay positive, p sums to one, and what is returned is the chosen output's loss."""
    sadl = DenseSADL(3, eta0=2.0, output=output, rng=np.random.RandomState(4))
    same_draws = np.random.RandomState(4)
    for u, y in zip(*stream(1, 100), strict=True):
        suffered = sadl.observe(u, y)
        assert np.all(sadl.weights > 0)
        assert sadl.p.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.all(np.abs(sadl.regrets) <= 1)
        assert sadl.p @ sadl.regrets == pytest.approx(0.0, abs=1e-12)
        if output == "average":
            assert sadl.drawn is None
            assert suffered <= sadl.p @ sadl.losses + 1e-12  # convexity
        else:
            assert suffered == sadl.losses[sadl.drawn]
        if output == "best":
            assert sadl.drawn == list(sadl.p).index(max(sadl.p))
        if output == "sample":
            draw, bounds = same_draws.random_sample(), np.append(0, np.cumsum(sadl.p))
            assert bounds[sadl.drawn] <= draw
            assert draw < bounds[sadl.drawn + 1] or sadl.drawn == sadl.levels[-1]


def test_first_level_is_one_learner_that_never_restarts():
    """Level 0 is COMID at rate eta0 / sqrt(I0) over the whole stream."""
    settings = {"loss": "logistic", "rho": 0.02, "step": "implicit"}
    sadl = DenseSADL(3, eta0=0.8, first_interval=2, **settings)
    alone = DenseCOMID(3, learning_rate=0.8 / np.sqrt(2), **settings)
    for u, y in zip(*stream(2, 40), strict=True):
        sadl.observe(u, y)
        assert sadl.losses[0] == alone.observe(u, y)
        np.testing.assert_array_equal(sadl.learners[0].M, alone.M)
        assert sadl.learners[0].mu == alone.mu


@pytest.mark.parametrize("divergence", ["frobenius", "von_neumann", "burg"])
def test_births_take_the_iterate_of_the_shorter_scale(divergence):
    """I0 = 1, five rounds by hand: level 1 is born at 2 and 4, level 2 at 4."""
    differences, labels = stream(3, 5)
    settings = {"divergence": divergence, "loss": "logistic"}
    levels = [DenseCOMID(3, learning_rate=1 / np.sqrt(2**j), **settings) for j in range(3)]
    sadl = DenseSADL(3, eta0=1.0, **settings)
    for t, (u, y) in enumerate(zip(differences, labels, strict=True), start=1):
        if t == 4:
            levels[2].start_from(levels[1])
        if t in (2, 4):
            levels[1].start_from(levels[0])
        active = levels[: int(np.log2(t)) + 1]
        expected = [learner.observe(u, y) for learner in active]
        sadl.observe(u, y)
        np.testing.assert_array_equal(sadl.losses, expected)
        for ours, by_hand in zip(sadl.learners, active, strict=True):
            np.testing.assert_array_equal(ours.M, by_hand.M)
            assert ours.mu == by_hand.mu


def test_weights_of_the_first_rounds():
    """I0 = 1: births at weight 1/2, then w (1 + eta r) with losses capped at c = 2."""
    sadl = DenseSADL(2, eta0=1.0, output="average")
    u = np.array([1.0, 0.0])
    assert sadl.observe(u, -1) == 2.0  # M = 0, mu = 1, m = -1
    np.testing.assert_array_equal(sadl.p, [1.0])
    np.testing.assert_array_equal(sadl.weights, [0.5])
    sadl.observe(2 * u, 1)  # both levels at M = diag(1, 0), mu = 1: m = -3, loss 4
    np.testing.assert_array_equal(sadl.losses, [4.0, 4.0])
    np.testing.assert_array_equal(sadl.p, [0.5, 0.5])
    np.testing.assert_array_equal(sadl.weights, [0.5, 0.5])
    # level 0: M = 0, mu = 2; level 1: M = 0, mu = 1 + 1/sqrt(2)
    sadl.observe(u, -1)
    losses = np.array([3.0, 2 + 1 / np.sqrt(2)])
    np.testing.assert_allclose(sadl.losses, losses)
    np.testing.assert_allclose(sadl.weights, [0.5, 0.5])  # both above the cap


def test_weights_tell_learners_apart():
    """With a large cap the weights follow w (1 + eta (mean loss - loss))."""
    sadl = DenseSADL(2, eta0=1.0, cap=10.0, output="average")
    u = np.array([1.0, 0.0])
    for difference, y in ((u, -1), (2 * u, 1), (u, -1)):
        sadl.observe(difference, y)
    gap = (3.0 - (2 + 1 / np.sqrt(2))) / 10
    np.testing.assert_allclose(sadl.weights, [0.5 * (1 - gap / 4), 0.5 * (1 + gap / 4)])


def test_weight_at_birth():
    """min(1/2, 1/sqrt(L)), and the weight is born anew with each interval."""
    sadl = DenseSADL(2, eta0=1.0, first_interval=8)
    assert [sadl.weight_rate(j) for j in range(3)] == [1 / np.sqrt(8), 0.25, 1 / np.sqrt(32)]
    for t, (u, y) in enumerate(zip(*stream(5, 40, 2), strict=True), start=1):
        sadl.observe(u, y)
        before = sadl.weights / (1 + [sadl.weight_rate(j) for j in sadl.levels] * sadl.regrets)
        for level in sadl.levels:
            if (t + 7) % sadl.length(level) == 0:
                assert before[level] == pytest.approx(sadl.weight_rate(level), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_meta_regret_bound(seed):
    """The sum of r_t over I = [q, s] is at most 5 ln(s + 1) sqrt(|I|) for every I of the cover."""
    sadl = DenseSADL(3, eta0=2.0)
    horizon = 255
    regrets = []
    for u, y in zip(*stream(seed, horizon), strict=True):
        sadl.observe(u, y)
        regrets.append(sadl.regrets)
    for start, end in cover(horizon):
        if end <= horizon:
            level = int(np.log2(end - start + 1))
            total = sum(regrets[tau - 1][level] for tau in range(start, end + 1))
            assert total <= 5 * np.log(end + 1) * np.sqrt(end - start + 1)
