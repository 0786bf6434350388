"""Learners on a basis that follows the stream, to the textbook."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from metrack.engine.ensemble import basis
from metrack.engine.ensemble.ensemble import Ensemble
from metrack.engine.ensemble.space import Space
from metrack.engine.ensemble.views import AS_THEY_COME
from metrack.engine.learners import additive, gradient
from metrack.engine.learners.additive import AdditiveBank
from metrack.engine.learners.blocks import block_at
from metrack.engine.learners.gradient import GradientBank
from metrack.engine.learners.moment import PLAIN, MomentBank
from metrack.engine.learners.plain import PlainBank
from metrack.engine.learners.target import Pace, TargetBank
from metrack.engine.numerics.divergences import BURG
from metrack.engine.representations.dense_factor import DENSE_FACTOR, change_basis
from metrack.engine.representations.protocol import Geometry
from tests.engine.ensemble.given import SHARING, dense, ensemble_of, mixture, observe, sparse, state
from tests.reference import basis as textbook

N, NARROW, WIDE = 14, 3, 6
NARROW_PACE = Pace(
    rate=np.array([0.3, 0.05]),
    rho=np.array([0.5, 0.02]),
    replays=np.array([3, 5]),
    window=np.array([8, 64]),
    outside=np.array([0.25, 0.25]),
)
WIDE_PACE = Pace(
    rate=np.array([0.1, 0.05]),
    rho=np.array([0.0, 0.1]),
    replays=np.array([0, 5]),
    window=np.array([1, 64]),
    outside=np.array([1.0, 1.0]),
)
MEMORIES = np.array([50.0])
ADDING = additive.Pace(rate=np.array([0.3, 0.05]), forgets=np.array([0.01, 0.04]))
GRADIENT = gradient.Pace(
    rate=np.array([0.05, 0.1]),
    window=np.array([64, 0]),
    mean=np.array([20.0, 100.0]),
    replays=np.array([2, 1]),
)
MOST = 5


def stream(n_pairs=600, n=N, seed=0):
    """Differences of falling variance; alike by two of them. The question changes half-way."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n_pairs, n)) * np.arange(1, n + 1) ** -0.5
    u *= np.sqrt(2.0 / np.mean((u**2).sum(axis=1)))
    asked = np.where(np.arange(n_pairs) < n_pairs // 2, u[:, 0] ** 2, 4.0 * u[:, 9 % n] ** 2)
    return u, np.where(asked < np.median(asked), 1.0, -1.0)


def tracker(n=N, narrow=NARROW, wide=WIDE, on_basis=True, scaled=False):
    banks = (
        TargetBank(narrow, NARROW_PACE),
        TargetBank(wide, WIDE_PACE),
        PlainBank(1 if on_basis else n),
        MomentBank(wide, MEMORIES, 32),
    )
    return ensemble_of(n, banks, scaled=scaled, width=wide if on_basis else 0, neighbours=True)


def vectors_of(ensemble):
    """The directions of the one space."""
    return ensemble.spaces[0].basis.vectors


def whole(bank, j, B):
    """A learner's metric of all features."""
    n, w = len(B), bank.n_features
    L, s = bank.learners.factor[j], bank.pace.outside[j]
    own = B[:, :w]
    used = np.diag((own**2).sum(axis=0) > 0.5).astype(float)
    return own @ (L.T @ L - s * used) @ own.T + s * np.eye(n)


def test_blocks_grow_to_their_length():
    t, found = 0, []
    while t < 1100:
        begin, end = block_at(t)
        assert all(block_at(each) == (begin, end) for each in range(begin, end))
        found.append(end)
        t = end
    assert found == [1, 2, 4, 8, 16, 32, *range(64, 512, 64), *range(512, 1281, 256)]


@pytest.mark.parametrize("given", [dense, sparse])
def test_parts_of_pairs(given):
    rng = np.random.default_rng(1)
    u, y = rng.normal(size=(9, 4)) * (rng.random((9, 4)) < 0.5), np.arange(9.0)
    some = given(u, y).part(3, 7)
    np.testing.assert_array_equal(some.y, y[3:7])
    if given is sparse:
        found = sp.csr_array((some.u, some.where, some.starts), shape=(4, 4)).toarray()
    else:
        found = some.u.reshape(4, 4)
    np.testing.assert_array_equal(found, u[3:7])


def test_learners_are_the_textbooks(monkeypatch):
    """The same bases, and n x n matrices: all metrics, at the end of every block."""
    u, y = stream()
    ensemble, bases, metrics, done = tracker(), {}, [], 0
    while done < len(y):
        bases[done] = vectors_of(ensemble).copy()
        end = min(block_at(done)[1], len(y))
        before = block_at(done)[1] == end
        if before:  # what the last pair leaves, before the renewal
            monkeypatch.setattr(Space, "end_block", lambda *_: None)
        observe(ensemble, u[done:end], y[done:end])
        B = vectors_of(ensemble)
        metrics.append([whole(bank, j, B) for bank in ensemble.banks[:2] for j in range(2)])
        monkeypatch.undo()
        if before:
            ensemble._end_block(done, end)
        done = end
    assert len(bases) == 15
    i = 0
    for bank in ensemble.banks[:2]:
        for rate, rho, *pace in zip(*bank.pace, strict=True):
            learner = textbook.TargetOnDirections(N, learning_rate=rate, rho=rho)
            given_ = u / np.sqrt(2.0), y, bases, bank.n_features, pace, MOST, basis.LAST
            expected, _ = textbook.follow(learner, *given_)
            for block, M in enumerate(expected):
                np.testing.assert_allclose(metrics[block][i], M, rtol=1e-6, atol=1e-8)
            i += 1


def test_where_the_basis_is_the_whole_space_nothing_is_lost():
    """Turned as it may be, it is the learner of the whole matrix."""
    u, y = stream(n=8)
    on_basis, plainly = tracker(8, 3, 8), tracker(8, 8, 8, on_basis=False)
    vectors_of(on_basis)[:] = np.eye(8)
    observe(on_basis, u, y)
    observe(plainly, u, y)
    B = vectors_of(on_basis)
    np.testing.assert_allclose(B.T @ B, np.eye(8), atol=1e-12)
    assert not np.allclose(B, np.eye(8))
    for j in range(2):
        L = plainly.banks[1].learners.factor[j]
        np.testing.assert_allclose(whole(on_basis.banks[1], j, B), L.T @ L, rtol=1e-8, atol=1e-8)
        found, M = (each.banks[3].learners.metric[j] for each in (on_basis, plainly))
        np.testing.assert_allclose(B @ found @ B.T, M, rtol=1e-8, atol=1e-8)
    found = [each.spaces[0].similar.scatter for each in (on_basis, plainly)]
    np.testing.assert_allclose(np.trace(found[0]), np.trace(found[1]), rtol=0.5)


def test_calls_of_any_sizes():
    u, y = stream()
    found = []
    for sizes in ((600,), (1,), (7, 64, 300, 1)):
        ensemble = tracker(scaled=True)
        losses = observe(ensemble, u, y, sizes)
        found.append([losses.tobytes(), state(ensemble)])
    assert found[0] == found[1] == found[2]


def test_sparse_pairs_are_the_dense_ones():
    rng = np.random.default_rng(4)
    u, y = stream()
    u *= rng.random(u.shape) < 0.4
    ours, theirs = tracker(), tracker()
    losses = ours.observe(sparse(u, y), np.empty(0))
    np.testing.assert_allclose(losses, observe(theirs, u, y), rtol=1e-6, atol=1e-8)


def test_directions_follow_the_stream():
    """They are orthonormal, and hold what pairs differ in: first here, then there."""
    rng = np.random.default_rng(5)
    places = np.linalg.qr(rng.normal(size=(30, 8)))[0]
    u = np.vstack([rng.normal(size=(1500, 4)) @ places[:, i : i + 4].T for i in (0, 4)])
    y = np.where(np.abs(u @ places[:, 0]) + np.abs(u @ places[:, 4]) < 0.7, 1.0, -1.0)
    ensemble = tracker(30)
    for stop, held in ((1500, slice(0, 4)), (3000, slice(4, 8))):
        observe(ensemble, u[stop - 1500 : stop], y[stop - 1500 : stop])
        B = vectors_of(ensemble)
        n_used = min(stop // 375, WIDE)
        np.testing.assert_allclose(B.T @ B, np.diag(np.arange(WIDE) < n_used), atol=1e-10)
        np.testing.assert_allclose(B @ B.T @ places[:, held], places[:, held], atol=0.05)


def test_pairs_that_span_less_than_the_basis():
    """Directions that are not there are 0, and the metric is plain in all others."""
    rng = np.random.default_rng(6)
    u = np.zeros((200, 20))
    u[:, :3] = rng.normal(size=(200, 3))
    ensemble = tracker(20)
    observe(ensemble, u, np.where(np.abs(u[:, 0]) < 0.7, 1.0, -1.0))
    lengths = (vectors_of(ensemble) ** 2).sum(axis=0)
    np.testing.assert_allclose(lengths, [1, 1, 1, 0, 0, 0], atol=1e-12)
    for read in (ensemble.mixture, ensemble.neighbours):
        M = read(ensemble.experts.weights).matrix()
        np.testing.assert_allclose(M[3:, 3:], M[3, 3] * np.eye(17), atol=1e-12)
        np.testing.assert_allclose(M[:3, 3:], 0.0, atol=1e-12)
        assert np.linalg.eigvalsh(M)[0] > 0.0


def test_the_mixture_is_the_sum():
    u, y = stream()
    ensemble = tracker()
    observe(ensemble, u, y)
    p = np.array([0.1, 0.2, 0.15, 0.1, 0.15, 0.1, 0.2])
    expected = sum(w * ensemble.metric(j).matrix() for j, w in enumerate(p))
    mixture = ensemble.mixture(p)
    np.testing.assert_allclose(mixture.matrix(), expected, rtol=1e-8, atol=1e-10)
    L = mixture.components()
    np.testing.assert_allclose(L.T @ L, expected, rtol=1e-8, atol=1e-10)
    lengths = (L**2).sum(axis=1)
    assert (np.diff(lengths) <= 1e-12 * lengths[0]).all()
    for j in range(4):  # each on a scale of its own
        found = ensemble.metric(j).matrix()
        M = whole(ensemble.banks[j // 2], j % 2, vectors_of(ensemble))
        np.testing.assert_allclose(found, M * np.trace(found) / np.trace(M), atol=1e-9)


def test_what_is_predicted_is_what_is_read():
    u, y = stream()
    ensemble = tracker()
    observe(ensemble, u[:-1], y[:-1])
    last, p = u[-1], ensemble.experts.weights
    q, mu = last @ ensemble.mixture(p).matrix() @ last, p @ ensemble.mu
    expected = max(0.0, 1.0 - y[-1] * (mu - q))
    assert observe(ensemble, u[-1:], y[-1:])[0] == pytest.approx(expected, rel=1e-8)


@given(st.integers(1, 6), st.integers(0, 4), st.integers(1, 6), st.integers(0, 2**31), st.data())
def test_a_change_of_basis_restricts_the_metric(n, more, kept, seed, data):
    """M of the old and the new directions, seen from those to go on with."""
    rng = np.random.default_rng(seed)
    width = data.draw(st.integers(1, min(kept, n + more)))
    turn = np.linalg.qr(rng.normal(size=(n + more, n + more)))[0][:, :width]
    learners = DENSE_FACTOR.new_learners(2, n, Geometry(BURG, n), True)
    learners = learners._replace(factor=rng.normal(size=(2, n, n)) ** 3)
    outside = np.array([1.0, 0.25])
    found = change_basis(learners, turn, outside)
    assert found.factor.shape == (2, min(width, n + more), width)
    for j in range(2):
        M = np.diag(np.full(n + more, outside[j]))
        M[:n, :n] = learners.factor[j].T @ learners.factor[j]
        expected = turn.T @ M @ turn
        L = found.factor[j]
        np.testing.assert_allclose(L.T @ L, expected, atol=1e-10 * max(1.0, np.abs(M).max()))


@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 2**31), st.data())
def test_covariances_are_those_of_the_directions_that_are_kept(n, more, seed, data):
    """In new directions there was nothing, and the metric is plain."""
    rng = np.random.default_rng(seed)
    width = data.draw(st.integers(1, n))
    turn = np.linalg.qr(rng.normal(size=(n + more, n + more)))[0][:, :width]
    old, bank = MomentBank(n, MEMORIES), MomentBank(width, MEMORIES)
    A = rng.normal(size=(4, n, n))
    squares = A @ A.transpose(0, 2, 1)
    old.learners = old.learners._replace(scatter=squares[None, :2], metric=squares[2:])
    bank.change_basis(old, turn)
    for found, matrix, plain in (
        *zip(bank.learners.scatter[0], squares[:2], (0.0, 0.0), strict=True),
        *zip(bank.learners.metric, squares[2:], (PLAIN, PLAIN), strict=True),
    ):
        M = np.diag(np.full(n + more, plain))
        M[:n, :n] = matrix
        np.testing.assert_allclose(found, turn.T @ M @ turn, atol=1e-10)


def test_extremes_lead_to_no_nan():
    rng = np.random.default_rng(7)
    u, y = stream(300)
    u[::7] *= 1e40
    u[1::7] *= 1e-40
    u[2::7] = 0.0
    ensemble = tracker(scaled=True)
    assert np.isfinite(observe(ensemble, u, y)).all()
    assert all(np.isfinite(each).all() for each in ensemble.spaces[0].basis.directions)
    for bank in ensemble.banks[:2]:
        assert np.isfinite(bank.learners.factor).all()
    assert np.isfinite(ensemble.neighbours(rng.dirichlet(np.ones(7))).matrix()).all()


KINDS = {
    "target": lambda n: TargetBank(n, WIDE_PACE),
    "additive": lambda n: AdditiveBank(n, ADDING),
    "moment": lambda n: MomentBank(n, MEMORIES, 32),
    "gradient": lambda n: GradientBank(n, GRADIENT, 16),
    "plain": PlainBank,
}


def bank_alone(kind, n, n_learners, width=0, scaled=False):
    """One bank on so many directions, or features."""
    return ensemble_of(n, [KINDS[kind](n_learners)], scaled=scaled, width=width, neighbours=True)


@pytest.mark.parametrize("kind", KINDS)
def test_on_the_whole_space_every_kind_is_what_it_is_without_a_basis(kind):
    """However directions are turned, renewal after renewal."""
    u, y = stream(n=6)
    ours, theirs = bank_alone(kind, 6, 6, 6), bank_alone(kind, 6, 6)
    vectors_of(ours)[:] = np.eye(6)
    losses = [observe(each, u, y) for each in (ours, theirs)]
    assert not np.allclose(vectors_of(ours), np.eye(6))
    np.testing.assert_allclose(*losses, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mixture(ours).matrix(), mixture(theirs).matrix(), atol=1e-5)
    near = [each.neighbours(each.experts.weights).matrix() for each in (ours, theirs)]
    np.testing.assert_allclose(*near, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_knows_how_long_pairs_are_beyond_its_directions(kind):
    """What it predicts is what is read of all features, whatever it works on."""
    u, y = stream(601)
    ensemble, said = bank_alone(kind, N, NARROW, WIDE), []
    observe(ensemble, u[:600], y[:600])
    # Forms of additive learners need not be metrics.
    forms = [ensemble.spaces[0].form([p]) for p in np.eye(ensemble.experts.n_active)]
    expected = [u[600] @ form @ u[600] for form in forms]
    ensemble.observe(dense(u[600:], y[600:]), np.empty(0), said)
    np.testing.assert_allclose(said[0][0].q[0], expected, rtol=1e-7)


@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 2**31), st.data())
def test_additive_forms_are_those_of_the_directions_that_are_kept(n, more, seed, data):
    """In new directions there is plain distance, the same as beyond."""
    rng = np.random.default_rng(seed)
    width = data.draw(st.integers(1, n))
    turn = np.linalg.qr(rng.normal(size=(n + more, n + more)))[0][:, :width]
    old, bank = AdditiveBank(n, ADDING), AdditiveBank(width, ADDING)
    A = rng.normal(size=(2, n, n))
    old.learners = old.learners._replace(matrix=A + A.transpose(0, 2, 1))
    bank.change_basis(old, turn)
    for p in np.eye(2):
        (form, outside), (found, beyond) = old.matrix(p), bank.matrix(p)
        M = outside * np.eye(n + more)
        M[:n, :n] = form
        np.testing.assert_allclose(found, turn.T @ M @ turn, atol=1e-9)
        assert beyond == outside


@pytest.mark.parametrize("kind", ["target", "plain"])
def test_directions_are_ordered_by_what_the_combiner_trusts(kind):
    """By variance alone, where plain distance is trusted; else by what learners look at, too."""
    rng = np.random.default_rng(9)
    u = rng.normal(size=(512, 5)) * np.array([1.2, 1.1, 1.0, 0.9, 0.5])
    y = np.where(np.abs(u[:, 4]) < 0.3, 1.0, -1.0)
    ensemble = ensemble_of(5, [TargetBank(5, WIDE_PACE), PlainBank(1)], width=5)
    observe(ensemble, u[:511], y[:511])
    trusted = [np.full(2, float(kind == "target")), np.full(1, float(kind == "plain"))]
    space = ensemble.spaces[0]
    first = [np.argmax(np.abs(vectors_of(ensemble)[:, 0]))]
    for shares in (trusted, [np.zeros(2), np.zeros(1)]):
        space.end_block(448, 512, shares)
        first.append(np.argmax(np.abs(vectors_of(ensemble)[:, 0])))
    assert first[1] == (4 if kind == "target" else 0)
    assert first[2] == 4  # where none is trusted, all are alike: more of them are of the pairs


def test_a_pair_that_is_forgotten_is_not_replayed():
    """All pairs before it are the same: only replays can tell one future from another."""
    u, y = stream(200)
    kept, undone = tracker(), tracker()
    for ensemble in (kept, undone):
        observe(ensemble, u[:150], y[:150])
    assert undone.forget(dense(u[100:150], np.zeros(50))) == 50
    for ensemble in (kept, undone):
        observe(ensemble, u[150:], y[150:])
    first, second = (ensemble.banks[0].learners.factor for ensemble in (kept, undone))
    assert np.abs(first - second).max() > 1e-6


@pytest.mark.parametrize("wide", [WIDE, WIDE + 2])
def test_with_more_features_it_goes_on(wide):
    """With the metrics that it had, on as many directions or more."""
    u, y = stream()
    old, new = tracker(), tracker(N + 4, wide=wide)
    observe(old, u, y)
    new.continue_from(old)
    new.check()
    np.testing.assert_array_equal(new.experts.weights, old.experts.weights)
    np.testing.assert_allclose(vectors_of(new)[:N, :WIDE], vectors_of(old), atol=1e-12)
    for j in range(4):
        M, before = new.metric(j).matrix(), old.metric(j).matrix()
        np.testing.assert_allclose(M[:N, :N], before, atol=1e-9)
        np.testing.assert_allclose(M[N:, N:], M[N, N] * np.eye(4), atol=1e-9)
    assert np.isfinite(observe(new, np.pad(u, ((0, 0), (0, 4))), y)).all()


def test_from_all_features_it_goes_on_to_a_basis():
    """As wide as they were, nothing of a metric is lost; on fewer directions, the least of it."""
    u, y = stream(n=6)
    old_banks = [TargetBank(6, NARROW_PACE), TargetBank(6, WIDE_PACE), PlainBank(6)]
    old = ensemble_of(6, old_banks, neighbours=True)
    observe(old, u, y)
    for width in (6, 4):
        banks = [TargetBank(3, NARROW_PACE), TargetBank(width, WIDE_PACE), PlainBank(1)]
        new = ensemble_of(8, banks, width=width, neighbours=True)
        new.continue_from(old)
        new.check()
        B = vectors_of(new)
        np.testing.assert_allclose(B.T @ B, np.eye(width), atol=1e-10)
        np.testing.assert_allclose(B[6:], 0.0, atol=1e-12)
        for j in range(2):
            L = old.banks[1].learners.factor[j]
            restricted = B[:6].T @ L.T @ L @ B[:6]
            factor = new.banks[1].learners.factor[j]
            np.testing.assert_allclose(factor.T @ factor, restricted, atol=1e-8)
        assert np.isfinite(observe(new, np.pad(u, ((0, 0), (0, 2))), y)).all()


@pytest.mark.parametrize("n_pairs", [3, 600])  # some directions are in use, or all
def test_learners_on_all_features_join_those_on_the_basis(n_pairs):
    """They go on by what they learned of the features, and not by other learners' directions."""
    u, y = stream(n_pairs, n=8)
    spaces = [
        Space(8, [TargetBank(6, NARROW_PACE), PlainBank(6)], False, basis.Basis(8, 6)),
        Space(8, [TargetBank(8, WIDE_PACE._replace(rho=np.zeros(2)))], False),
    ]
    old = Ensemble(8, spaces, (AS_THEY_COME, AS_THEY_COME), SHARING)
    observe(old, u, y)
    banks = [TargetBank(6, NARROW_PACE), PlainBank(6), TargetBank(7, WIDE_PACE)]
    new = ensemble_of(9, banks, width=7)
    new.continue_from(old)
    new.check()
    np.testing.assert_array_equal(new.experts.weights[:2], old.experts.weights[:2])
    B = vectors_of(new)[:8]
    used = np.flatnonzero((B**2).sum(axis=0) > 0.5)
    assert (len(used) < 6) == (n_pairs == 3)
    for j in range(2):
        L, factor = old.banks[2].learners.factor[j], new.banks[2].learners.factor[j]
        expected = np.eye(7)
        expected[np.ix_(used, used)] = B[:, used].T @ L.T @ L @ B[:, used]
        np.testing.assert_allclose(factor.T @ factor, expected, atol=1e-9)
    assert np.isfinite(observe(new, np.pad(u, ((0, 0), (0, 1))), y)).all()
