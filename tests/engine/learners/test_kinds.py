"""Learners that are always on, and their calibration, to the textbook."""

import numpy as np
import pytest

from metrack.engine.ensemble.combine import Combination
from metrack.engine.learners import additive
from metrack.engine.learners.additive import AdditiveBank
from metrack.engine.learners.bank import Predictions
from metrack.engine.learners.calibration import calibrate, new_calibration
from metrack.engine.learners.plain import PlainBank
from metrack.engine.learners.target import UNIT, Pace, TargetBank
from metrack.engine.numerics.losses import HINGE
from tests.engine.ensemble.given import ensemble_of, observe
from tests.engine.learners.given import learn
from tests.reference import kinds as textbook

N = 4
PACE = Pace(
    rate=np.array([0.8, 0.05, 0.1]),
    rho=np.array([0.5, 0.02, 0.0]),
    replays=np.array([3, 5, 0]),
    window=np.array([8, 64, 1]),
    outside=np.ones(3),
)
MOST = 5
ADDING = additive.Pace(rate=np.array([0.3, 0.05]), forgets=np.array([0.0, 0.04]))


def stream(n_pairs=150, seed=0, spread=2.0):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n_pairs, N)) * np.sqrt(spread / N)
    return u, np.where(np.abs(u[:, 0]) < 0.5, 1.0, -1.0)


def test_target_learners_are_the_textbooks():
    u, y = stream()
    bank = TargetBank(N, PACE)
    found = learn(bank, u, y)
    for j, (rate, rho, replays, window) in enumerate(zip(*PACE[:4], strict=True)):
        learner = textbook.DenseTarget(N, learning_rate=rate, rho=rho)
        plain = textbook.follow(learner, u / np.sqrt(UNIT), y, replays, window, MOST)
        q, mu = textbook.calibrated(plain[:, 0], y).T
        np.testing.assert_allclose(found.q[:, j], q, rtol=1e-8)
        np.testing.assert_allclose(found.mu[:, j], mu, rtol=1e-8)
        M = bank.metric(j, 1.0).matrix()
        expected = learner.M * np.trace(M) / np.trace(learner.M)
        np.testing.assert_allclose(M, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_rounding_errors_of_target_learners_stay_small(seed):
    """No step goes beyond its target: there, fast learners would go too far by ever more."""
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=(1000, N)) / np.sqrt(N), rng.choice([-1.0, 1.0], 1000)
    few = np.full(3, 8)
    pace = Pace(np.array([0.2, 0.8, 2.0]), np.zeros(3), few, 4 * few, np.ones(3))
    moved = u * (1.0 + 1e-12 * rng.normal(size=u.shape))
    q, again = (learn(TargetBank(N, pace), given, y).q for given in (u, moved))
    np.testing.assert_allclose(again, q, rtol=1e-6, atol=1e-6)


def matrices(bank):
    """M of each additive learner."""
    return bank.learners.size[:, None, None] * bank.learners.matrix


@pytest.mark.parametrize("sizes", [(10_000,), (1, 30, 7)])
def test_additive_learners_are_the_textbooks(sizes):
    u, y = stream(300)
    bank = AdditiveBank(N, ADDING)
    np.testing.assert_allclose(bank.metric(0, 2.0).matrix(), 0.5 * np.eye(N))
    found = learn(bank, u, y, sizes)
    for j, (rate, forgets) in enumerate(zip(*ADDING, strict=True)):
        learner = textbook.DenseAdditive(N, rate, forgets)
        said = np.array([learner.observe(*pair) for pair in zip(u, y, strict=True)])
        expected = textbook.calibrated(said, y)
        np.testing.assert_allclose(found.q[:, j], expected[:, 0], rtol=1e-8)
        np.testing.assert_allclose(found.mu[:, j], expected[:, 1], rtol=1e-8)
        np.testing.assert_allclose(matrices(bank)[j], learner.M, rtol=1e-8, atol=1e-12)
        form, beyond = bank.matrix(np.eye(2)[j])
        scale = beyond / 0.02
        np.testing.assert_allclose(form, scale * learner.form, rtol=1e-8, atol=1e-12)
        values, vectors = np.linalg.eigh(form)
        nearest = (vectors * np.maximum(values, 1e-9 * values.mean())) @ vectors.T
        np.testing.assert_allclose(bank.metric(j, 2.0).matrix(), nearest / 2.0, atol=1e-9)


def test_additive_learners_weigh_pairs():
    u, y = stream(300)
    y[::7] *= 0.5
    y[::5] *= 3.0
    y[::11] = 0.0  # nothing is asked
    bank = AdditiveBank(N, ADDING)
    learn(bank, u, y)
    for j, (rate, forgets) in enumerate(zip(*ADDING, strict=True)):
        learner = textbook.DenseAdditive(N, rate, forgets)
        for pair in zip(u, y, strict=True):
            learner.observe(*pair)
        np.testing.assert_allclose(matrices(bank)[j], learner.M, rtol=1e-8, atol=1e-12)
        assert bank.learners.mu[j] == pytest.approx(learner.mu, rel=1e-9)


def test_an_additive_step_is_the_proximal_one():
    """Nothing near what it comes to has less of the pair's loss and of the way there."""
    u, y = stream(40, seed=3)
    bank = AdditiveBank(N, additive.Pace(np.array([0.1]), np.zeros(1)))
    rng, tried = np.random.default_rng(0), 0
    for row in range(len(y)):
        before, mu = matrices(bank)[0], bank.learners.mu[0]
        learn(bank, u[row : row + 1], y[row : row + 1])

        def objective(M, threshold, row=row, before=before, mu=mu):
            lost = max(0.0, 1.0 - y[row] * (threshold - u[row] @ M @ u[row]))
            return 0.1 * lost + 0.5 * np.sum((M - before) ** 2) + 0.5 * (threshold - mu) ** 2

        after, threshold = matrices(bank)[0], bank.learners.mu[0]
        if threshold == 1.0:
            continue  # where it would fall below, it is cut afterwards
        tried += 1
        least = objective(after, threshold)
        for size in (1e-4, 1e-2):
            for each in size * rng.normal(size=(20, N + 1, N)):
                assert objective(after + each[:N], threshold + each[N, 0]) >= least - 1e-12
    assert tried > 5


@pytest.mark.parametrize("make", [lambda: TargetBank(N, PACE), lambda: AdditiveBank(N, ADDING)])
def test_calls_of_any_sizes(make):
    u, y = stream()
    found = []
    for sizes in ((150,), (1,), (7, 64, 1)):
        bank = make()
        said = learn(bank, u, y, sizes)
        parts = (*said, *(getattr(bank, part) for part in bank.STATE))
        arrays = [a for part in parts for a in (part if isinstance(part, tuple) else (part,))]
        found.append([each.tobytes() for each in arrays])
    assert found[0] == found[1] == found[2]


def test_what_the_calibration_predicts_is_what_is_read():
    """The scale after the last pair is that of the next prediction."""
    u, y = stream()
    bank = TargetBank(N, PACE)
    learn(bank, u[:-1], y[:-1])
    last = u[-1]
    read = [last @ bank.metric(j, 1.0).matrix() @ last for j in range(3)], bank.mu.copy()
    fresh = TargetBank(N, PACE)
    said = learn(fresh, u, y)
    np.testing.assert_allclose(said.q[-1], read[0], rtol=1e-9)
    np.testing.assert_allclose(said.mu[-1], read[1], rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(("memory", "start"), [(300.0, 2.0), (1000.0, 4.0)])
def test_calibration_knows_no_units(unit, memory, start):
    rng = np.random.default_rng(3)
    y = rng.choice([-1.0, 1.0], 2000)
    q = unit * rng.gamma(2.0, np.where(y > 0, 1.0, 4.0))[:, None]
    said = Predictions(q.copy(), np.empty_like(q))
    state = new_calibration(1, start)
    calibrate(state, said, y, memory)
    expected = textbook.calibrated(q[:, 0], y, memory=memory, start=start)
    np.testing.assert_allclose(np.column_stack(said), expected, rtol=1e-8)
    losses = np.maximum(0.0, 1.0 - y * (said.mu - said.q)[:, 0])
    grid = np.geomspace(0.03, 10.0, 60)
    best = min(
        np.maximum(0.0, 1.0 - y * (a - c * q[:, 0] / q.mean())).mean()
        for a in np.linspace(1.0, 5.0, 40)
        for c in grid
    )
    assert losses[500:].mean() < 1.1 * best


def test_nothing_but_zeros():
    """Pairs of equal points say nothing, and break nothing."""
    u, y = np.zeros((20, N)), np.ones(20)
    for bank in (TargetBank(N, PACE), AdditiveBank(N, ADDING), PlainBank(N)):
        said = learn(bank, u, y)
        assert np.isfinite(said.q).all()
        assert np.isfinite(said.mu).all()
        assert np.isfinite(bank.mixture(np.ones(len(bank.lengths)), 1.0).matrix()).all()


@pytest.mark.parametrize(("memory", "start"), [(300.0, 2.0), (50.0, 4.0)])
def test_plain_distance_is_plain(memory, start):
    u, y = stream()
    bank = PlainBank(N, memory, start)
    found = learn(bank, u, y)
    expected = textbook.calibrated((u**2).sum(axis=1), y, memory=memory, start=start)
    np.testing.assert_allclose(np.column_stack(found), expected, rtol=1e-8)
    M = bank.metric(0, 1.0).matrix()
    np.testing.assert_allclose(M, M[0, 0] * np.eye(N))
    np.testing.assert_allclose(bank.mixture(np.array([0.3]), 1.0).matrix(), 0.3 * M)


def test_the_mixture_is_the_sum():
    u, y = stream()
    p = np.array([0.2, 0.5, 0.3])
    bank = TargetBank(N, PACE)
    learn(bank, u, y)
    expected = sum(w * bank.metric(j, 2.0).matrix() for j, w in enumerate(p))
    np.testing.assert_allclose(bank.mixture(p, 2.0).matrix(), expected, rtol=1e-9, atol=1e-12)


def test_kinds_side_by_side():
    """As good as plain distance where that decides, and far better where it does not."""
    rng = np.random.default_rng(1)
    u = rng.normal(size=(3000, N))
    plain = np.where((u**2).sum(axis=1) < 3.0, 1.0, -1.0)
    one = np.where(np.abs(u[:, 0]) < 0.7, 1.0, -1.0)
    for y, most in ((plain, 1.05), (one, 0.5)):
        banks = AdditiveBank(N, ADDING), TargetBank(N, PACE), PlainBank(N)
        alone = ensemble_of(N, [PlainBank(N)], Combination(HINGE), scaled=True)
        ours = observe(ensemble_of(N, banks, scaled=True), u, y)
        theirs = observe(alone, u, y)
        assert ours[-1000:].mean() <= most * theirs[-1000:].mean()
