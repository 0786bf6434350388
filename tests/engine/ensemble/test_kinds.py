"""Kinds of learners that are always on, their calibration and their combiner, to the textbook."""

import numpy as np
import pytest

from metrack.engine.ensemble import additive
from metrack.engine.ensemble.additive import AdditiveBank
from metrack.engine.ensemble.always_on import AlwaysOnBank, Pace
from metrack.engine.ensemble.bank import Predictions
from metrack.engine.ensemble.calibration import calibrate, new_calibration
from metrack.engine.ensemble.combine import Combination, new_experts, weights
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.ensemble.combiners.protocol import update
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.kinds import Margin, Target
from metrack.engine.ensemble.mirror import CONSTANT, Ladder, MirrorBank, Rule
from metrack.engine.ensemble.plain import PlainBank
from metrack.engine.ensemble.replay import Material, new_buffer, new_past, store
from metrack.engine.numerics.divergences import BURG
from metrack.engine.numerics.kernels import kernel
from metrack.engine.numerics.losses import HINGE
from metrack.engine.numerics.pairs import Chunk, Pairs
from metrack.engine.numerics.steps import IMPLICIT
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from tests.reference import kinds as textbook
from tests.reference.comid import DenseCOMID

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


def learn(bank, u, y, sizes=(10_000,)):
    """What a bank predicts, its pairs given in chunks."""
    buffer, found, done, call = new_buffer(N, 64), [], 0, 0
    while done < len(y):
        rows = slice(done, done + sizes[call % len(sizes)])
        given = u[rows]
        chunk = Chunk(
            given.ravel().copy(),
            np.arange(N),
            np.empty(0, np.int64),
            y[rows],
            (given**2).sum(axis=1),
            np.empty(0),
            done,
        )
        shape = len(given), len(bank.lengths)
        said = Predictions(np.empty(shape), np.empty(shape))
        bank.learn(Material(chunk, buffer, np.empty(0), new_past(0, chunk.where.size)), said)
        store(buffer, chunk)
        found.append(said)
        done, call = done + len(given), call + 1
    return Predictions(*map(np.concatenate, zip(*found, strict=True)))


def margin_learner(rate, rho):
    settings = {"divergence": "burg", "regularizer": "logdet", "step": "implicit"}
    return DenseCOMID(N, learning_rate=rate, rho=rho, **settings)


def target_learner(rate, rho):
    return textbook.DenseTarget(N, learning_rate=rate, rho=rho)


@pytest.mark.parametrize(
    ("kind", "dense", "unit"), [(Margin(), margin_learner, 1.0), (Target(), target_learner, 2.0)]
)
def test_learners_are_the_textbooks(kind, dense, unit):
    u, y = stream()
    bank = AlwaysOnBank(N, kind, PACE)
    found = learn(bank, u, y)
    for j, (rate, rho, replays, window) in enumerate(zip(*PACE[:4], strict=True)):
        learner = dense(rate, rho)
        plain = textbook.follow(learner, u / np.sqrt(unit), y, replays, window, MOST)
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
    q, again = (learn(AlwaysOnBank(N, Target(), pace), given, y).q for given in (u, moved))
    np.testing.assert_allclose(again, q, rtol=1e-6, atol=1e-6)


def test_without_replays_a_margin_learner_is_comid():
    """The same learner as a bank of its own representation and rule has it, bit for bit."""
    u, y = stream()
    pace = Pace(np.array([0.1]), np.array([0.0]), np.array([0]), np.array([1]), np.ones(1))
    rule = Rule(HINGE, BURG, IMPLICIT, CONSTANT, 0.0, N, 0)
    ours, theirs = AlwaysOnBank(N, Margin(), pace), MirrorBank(N, rule, Ladder(0.1), DENSE_FACTOR)
    for bank in (ours, theirs):
        learn(bank, u, y)
    np.testing.assert_array_equal(ours.learners.factor, theirs.learners.factor)
    np.testing.assert_array_equal(ours.learners.mu, theirs.learners.mu)


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


@pytest.mark.parametrize("kind", [Margin(), Target()])
def test_calls_of_any_sizes(kind):
    u, y = stream()
    found = []
    for sizes in ((150,), (1,), (7, 64, 1)):
        bank = AlwaysOnBank(N, kind, PACE)
        said = learn(bank, u, y, sizes)
        parts = (*said, *bank.learners, *bank.calibration, bank.generator)
        found.append([each.tobytes() for each in parts])
    assert found[0] == found[1] == found[2]


def test_what_the_calibration_predicts_is_what_is_read():
    """The scale after the last pair is that of the next prediction."""
    u, y = stream()
    bank = AlwaysOnBank(N, Target(), PACE)
    learn(bank, u[:-1], y[:-1])
    last = u[-1]
    read = [last @ bank.metric(j, 1.0).matrix() @ last for j in range(3)], bank.mu.copy()
    fresh = AlwaysOnBank(N, Target(), PACE)
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
    paced = AlwaysOnBank(N, Target(), PACE), AlwaysOnBank(N, Margin(), PACE)
    for bank in (*paced, AdditiveBank(N, ADDING), PlainBank(N)):
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
    for kind in (Margin(), Target()):
        bank = AlwaysOnBank(N, kind, PACE)
        learn(bank, u, y)
        expected = sum(w * bank.metric(j, 2.0).matrix() for j, w in enumerate(p))
        np.testing.assert_allclose(bank.mixture(p, 2.0).matrix(), expected, rtol=1e-9, atol=1e-12)


SHARE = COMBINERS["adaptive_share"]


@kernel
def one_round(record, statistics, p, losses):
    update(record, statistics, p.size, p, losses)


def rounds(losses):
    """Probabilities before each round, by the combiner."""
    n_rounds, n = losses.shape
    experts = new_experts(np.ones(n), SHARE.record)
    experts.statistics[:n, 0] = 1.0 / n
    found = np.empty((n_rounds, n))
    for t in range(n_rounds):
        weights(experts, Combination(HINGE, SHARE.record), t + 1, found[t])
        one_round(SHARE.record, experts.statistics, found[t], losses[t])
    return found


def hard_losses(n_rounds, n, seed):
    """Losses in [0, 1] whose best expert changes, sometimes every other round."""
    rng = np.random.default_rng(seed)
    losses = rng.random((n_rounds, n)) ** rng.choice([0.2, 1.0, 5.0])
    length = int(rng.integers(1, 200))
    best = np.arange(n_rounds) // length % n
    losses[np.arange(n_rounds), best] *= rng.random()
    return losses


@pytest.mark.parametrize("seed", range(4))
def test_adaptive_share_is_the_textbooks(seed):
    losses = hard_losses(300, 4, seed)
    book = textbook.AdaptiveShare(4, 300)
    for p, told in zip(rounds(losses), losses, strict=True):
        np.testing.assert_allclose(p, book.p(), rtol=1e-9, atol=1e-12)
        book.update(told)


@pytest.mark.parametrize("seed", range(6))
def test_regret_on_every_interval(seed):
    """Coin betting: a regret R on an interval needs a wealth that its prior and length bound.

    On an interval of the cover with prior pi, R <= sqrt(2 L (ln(1 / pi) + ln(2 L + 1))), where ln
    of 1 / pi is that of the interval's start and of the expert's share of the prior.
    """
    n_rounds, n = 1000, 5
    losses = hard_losses(n_rounds, n, seed)
    p = rounds(losses)
    regrets = np.cumsum((p * losses).sum(axis=1)[:, None] - losses, axis=0)
    regrets = np.vstack([np.zeros(n), regrets])
    for start, end in textbook.cover(n_rounds):
        stop = min(end, n_rounds)
        length = stop - start + 1
        prior = (1.0 - SHARE.record.prior) / n / (start**2 * (1 + np.floor(np.log2(start))))
        bound = np.sqrt(2.0 * length * (np.log(1.0 / prior) + np.log(2.0 * length + 1.0)))
        assert (regrets[stop] - regrets[start - 1]).max() <= bound


def test_it_is_for_experts_that_are_always_on():
    rule = Rule(HINGE, BURG, IMPLICIT, CONSTANT, 0.0, N, 1)
    bank = MirrorBank(N, rule, Ladder(0.1), DENSE_FACTOR, 2)
    with pytest.raises(ValueError, match="always on"):
        Ensemble(N, [bank], Combination(HINGE, SHARE.record), True)


def test_kinds_side_by_side():
    """As good as plain distance where that decides, and far better where it does not."""
    rng = np.random.default_rng(1)
    u = rng.normal(size=(3000, N))
    plain = np.where((u**2).sum(axis=1) < 3.0, 1.0, -1.0)
    one = np.where(np.abs(u[:, 0]) < 0.7, 1.0, -1.0)
    for y, most in ((plain, 1.05), (one, 0.5)):
        pairs = Pairs(u.ravel().copy(), np.arange(N), np.empty(0, np.int64), y)
        banks = AlwaysOnBank(N, Margin(), PACE), AlwaysOnBank(N, Target(), PACE), PlainBank(N)
        tracker = Ensemble(N, banks, Combination(HINGE, SHARE.record, cap=4.0), True)
        alone = Ensemble(N, [PlainBank(N)], Combination(HINGE), True)
        ours, theirs = (each.observe(pairs, np.empty(0)) for each in (tracker, alone))
        assert ours[-1000:].mean() <= most * theirs[-1000:].mean()
