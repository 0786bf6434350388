"""Learners on a basis that follows the stream, to the textbook."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from metrack.engine.ensemble import basis
from metrack.engine.ensemble.always_on import AlwaysOnBank, Pace
from metrack.engine.ensemble.basis import BasisEnsemble
from metrack.engine.ensemble.blocks import block_at
from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.combiners import COMBINERS
from metrack.engine.ensemble.kinds import Margin, Target
from metrack.engine.ensemble.moments import PLAIN, MomentBank
from metrack.engine.ensemble.moments import Pace as Memories
from metrack.engine.ensemble.plain import PlainBank
from metrack.engine.ensemble.similar import NeighbourEnsemble
from metrack.engine.numerics.divergences import BURG
from metrack.engine.numerics.losses import HINGE
from metrack.engine.numerics.pairs import part
from metrack.engine.representations.dense_factor import DENSE_FACTOR, change_basis
from metrack.engine.representations.protocol import Geometry
from tests.engine.ensemble.given import dense, observe, sparse
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
MEMORIES = Memories(np.array([50.0]))
MOST = 5


def stream(n_pairs=600, n=N, seed=0):
    """Differences of falling variance; alike by two of them. The question changes half-way."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n_pairs, n)) * np.arange(1, n + 1) ** -0.5
    u *= np.sqrt(2.0 / np.mean((u**2).sum(axis=1)))
    asked = np.where(np.arange(n_pairs) < n_pairs // 2, u[:, 0] ** 2, 4.0 * u[:, 9 % n] ** 2)
    return u, np.where(asked < np.median(asked), 1.0, -1.0)


def tracker(n=N, narrow=NARROW, wide=WIDE, kind=BasisEnsemble, scaled=False):
    banks = (
        AlwaysOnBank(narrow, Margin(), NARROW_PACE),
        AlwaysOnBank(wide, Target(), WIDE_PACE),
        PlainBank(1 if kind is BasisEnsemble else n),
        MomentBank(wide, MEMORIES, 32),
    )
    combination = Combination(HINGE, COMBINERS["adaptive_share"].record, cap=4.0)
    return kind(n, banks, combination, scaled)


def state(ensemble):
    parts = [ensemble.basis, ensemble.recent, ensemble.similar, ensemble.experts]
    for bank in ensemble.banks:
        parts.append(bank.calibration)
        parts += [bank.learners] if hasattr(bank, "learners") else []
    return [array.tobytes() for record in parts for array in record]


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
    some = part(given(u, y), 3, 7)
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
        bases[done] = ensemble.basis.vectors.copy()
        end = min(block_at(done)[1], len(y))
        before = block_at(done)[1] == end
        if before:  # what the last pair leaves, before the renewal
            monkeypatch.setattr(BasisEnsemble, "_renew", lambda self, begin: None)
        observe(ensemble, u[done:end], y[done:end])
        B = ensemble.basis.vectors
        metrics.append([whole(bank, j, B) for bank in ensemble.banks[:2] for j in range(2)])
        monkeypatch.undo()
        if before:
            ensemble._renew(done)
        done = end
    assert len(bases) == 15
    i = 0
    for bank, kind, scale in zip(
        ensemble.banks,
        (textbook.MarginOnDirections, textbook.TargetOnDirections),
        (1.0, np.sqrt(2.0)),
        strict=False,
    ):
        for rate, rho, *pace in zip(*bank.pace, strict=True):
            learner = kind(N, learning_rate=rate, rho=rho)
            given_ = u / scale, y, bases, bank.n_features, pace, MOST, basis.LAST
            expected, _ = textbook.follow(learner, *given_)
            for block, M in enumerate(expected):
                np.testing.assert_allclose(metrics[block][i], M, rtol=1e-6, atol=1e-8)
            i += 1


def test_where_the_basis_is_the_whole_space_nothing_is_lost():
    """Turned as it may be, it is the learner of the whole matrix."""
    u, y = stream(n=8)
    on_basis, plainly = tracker(8, 3, 8), tracker(8, 8, 8, kind=NeighbourEnsemble)
    on_basis.basis.vectors[:] = np.eye(8)
    observe(on_basis, u, y)
    observe(plainly, u, y)
    B = on_basis.basis.vectors
    np.testing.assert_allclose(B.T @ B, np.eye(8), atol=1e-12)
    assert not np.allclose(B, np.eye(8))
    for j in range(2):
        L = plainly.banks[1].learners.factor[j]
        np.testing.assert_allclose(whole(on_basis.banks[1], j, B), L.T @ L, rtol=1e-8, atol=1e-8)
        found, M = (each.banks[3].learners.metric[j] for each in (on_basis, plainly))
        np.testing.assert_allclose(B @ found @ B.T, M, rtol=1e-8, atol=1e-8)
    found = on_basis.similar.scatter, plainly.similar.scatter
    np.testing.assert_allclose(np.trace(found[0]), np.trace(found[1]), rtol=0.5)


def test_calls_of_any_sizes():
    u, y = stream()
    found = []
    for sizes in ((600,), (1,), (7, 64, 300, 1)):
        ensemble = tracker(scaled=True)
        losses = observe(ensemble, u, y, sizes)
        found.append([losses.tobytes(), *state(ensemble)])
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
        B = ensemble.basis.vectors
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
    lengths = (ensemble.basis.vectors**2).sum(axis=0)
    np.testing.assert_allclose(lengths, [1, 1, 1, 0, 0, 0], atol=1e-12)
    for read in (ensemble.mixture, ensemble.neighbours):
        M = read(ensemble.weights).matrix()
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
        M = whole(ensemble.banks[j // 2], j % 2, ensemble.basis.vectors)
        np.testing.assert_allclose(found, M * np.trace(found) / np.trace(M), atol=1e-9)


def test_what_is_predicted_is_what_is_read():
    u, y = stream()
    ensemble = tracker()
    observe(ensemble, u[:-1], y[:-1])
    last, p = u[-1], ensemble.weights
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
    assert all(np.isfinite(each).all() for each in ensemble.basis)
    for bank in ensemble.banks[:2]:
        assert np.isfinite(bank.learners.factor).all()
    assert np.isfinite(ensemble.neighbours(rng.dirichlet(np.ones(7))).matrix()).all()
