"""Every representation keeps what the protocol promises, against dense matrices."""

import numba
import numpy as np
import pytest

from metrack.engine.numerics.divergences import BURG, FROBENIUS
from metrack.engine.numerics.pairs import Difference
from metrack.engine.representations import protocol
from metrack.engine.representations.choice import for_nuclear_norm
from metrack.engine.representations.cone import CONE
from metrack.engine.representations.dense_factor import DENSE_FACTOR
from metrack.engine.representations.diagonal import DIAGONAL
from metrack.engine.representations.elementwise import ELEMENTWISE
from metrack.engine.representations.protocol import Geometry, Source, Step
from metrack.engine.representations.spectral import SPECTRAL

N = 5
OURS = (SPECTRAL, DENSE_FACTOR, CONE, ELEMENTWISE, DIAGONAL)


@pytest.fixture(params=OURS, ids=lambda each: each.name)
def representation(request):
    return request.param


@pytest.fixture
def geometry(representation):
    return Geometry(BURG if representation is DENSE_FACTOR else FROBENIUS, N)


@numba.njit
def learn(learners, scratch, j, geometry, u, b, shrink):
    q = protocol.squared_distance(learners, scratch, j, geometry, u)
    protocol.update(learners, scratch, j, geometry, u, Step(q, b, shrink))
    return q


@numba.njit
def step_norm(learners, u):
    return protocol.step_norm(learners, u)


@numba.njit
def copy_learner(learners, source, target):
    protocol.copy_learner(learners, source, target)


@numba.njit
def is_full(learners, capacity):
    return protocol.is_full(learners, capacity)


def dense(u):
    return Difference(u, np.arange(len(u)), u, float(u @ u))


def sparse(u):
    where = np.flatnonzero(u)
    return Difference(u[where], where, u, float(u @ u))


def matrices(representation, learners, geometry):
    n = len(learners.mu)
    return [representation.metric(learners, j, geometry, 1.0).matrix() for j in range(n)]


def moved(representation, M, u, b):
    """The step without regulariser, on a dense matrix that it leaves positive."""
    if representation is DENSE_FACTOR:
        return np.linalg.inv(np.linalg.inv(M) + b * np.outer(u, u))
    added = np.outer(u, u)
    return M - b * (np.diag(np.diag(added)) if representation is DIAGONAL else added)


def taught(representation, geometry, n_learners=3, n_pairs=7):
    """Learners that have learned different pairs, and what they should be."""
    rng = np.random.default_rng(0)
    learners = representation.new_learners(n_learners, N, geometry, True)
    expected = [np.eye(N) for _ in range(n_learners)]
    for t in range(n_pairs):
        u = rng.normal(size=N) * (rng.random(N) < 0.7)
        pair = dense(u) if t % 2 else sparse(u)
        for j in range(n_learners):
            while is_full(learners, geometry.capacity):
                learners = representation.grow(learners, geometry.capacity)
            scratch = representation.make_scratch(learners, N)
            b = 0.05 * (j + 1)
            b = b if representation is DENSE_FACTOR else -b  # away from the cone's edge
            q = learn(learners, scratch, j, geometry, pair, b, 0.0)
            assert q == pytest.approx(u @ expected[j] @ u, rel=1e-10)
            expected[j] = moved(representation, expected[j], u, b)
    return learners, expected


def test_every_representation_is_known(representation):
    assert protocol.REPRESENTATIONS[representation.kind] is representation
    assert "mu" in representation.kind._fields
    assert len({each.name for each in OURS}) == len(OURS)


@pytest.mark.parametrize("identity", [True, False])
def test_learners_start_where_they_are_asked_to(representation, geometry, identity):
    if representation is DENSE_FACTOR and not identity:
        pytest.skip("Burg cannot leave 0")
    learners = representation.new_learners(2, N, geometry, identity)
    assert (learners.mu == 1.0).all()
    assert all(len(array) == 2 for array in learners)
    for M in matrices(representation, learners, geometry):
        np.testing.assert_array_equal(M, identity * np.eye(N))


def test_distances_and_steps_are_those_of_dense_matrices(representation, geometry):
    learners, expected = taught(representation, geometry)
    for M, wanted in zip(matrices(representation, learners, geometry), expected, strict=True):
        np.testing.assert_allclose(M, wanted, rtol=1e-9, atol=1e-9)


def test_the_regulariser_shrinks(representation, geometry):
    learners, expected = taught(representation, geometry, 1)
    scratch, u = representation.make_scratch(learners, N), np.ones(N)
    b = 0.1 if representation is DENSE_FACTOR else 0.0  # LogDet is silent where no step is taken
    learn(learners, scratch, 0, geometry, dense(u), b, 0.05)
    plain = moved(representation, expected[0], u, b)
    M = matrices(representation, learners, geometry)[0]
    assert u @ M @ u < u @ plain @ u - 1e-6


def test_step_norm_is_the_length_of_what_a_step_adds(representation, geometry):
    learners = representation.new_learners(1, N, geometry, True)
    u = np.array([1.0, -2.0, 0.0, 0.5, 3.0])
    added = np.eye(N) - moved(representation, np.eye(N), u, 1.0)
    if representation is DENSE_FACTOR:  # in the dual, where M^-1 moves by +b uu'
        added = np.outer(u, u)
    for pair in (dense(u), sparse(u)):
        assert step_norm(learners, pair) == pytest.approx(np.linalg.norm(added))


def test_a_copy_goes_its_own_way(representation, geometry):
    learners, expected = taught(representation, geometry)
    learners.mu[:] = [1.0, 2.0, 3.0]
    copy_learner(learners, 0, 2)
    assert learners.mu.tolist() == [1.0, 2.0, 1.0]
    np.testing.assert_allclose(matrices(representation, learners, geometry)[2], expected[0])
    u = np.ones(N)
    learn(learners, representation.make_scratch(learners, N), 2, geometry, dense(u), -0.1, 0.0)
    after = matrices(representation, learners, geometry)
    np.testing.assert_allclose(after[0], expected[0], atol=1e-9)
    np.testing.assert_allclose(after[2], moved(representation, expected[0], u, -0.1), atol=1e-9)


def test_mixtures_are_weighted_sums(representation, geometry):
    learners, expected = taught(representation, geometry)
    p = np.array([0.2, 0.8])
    mixed = representation.mixture(learners, p, geometry, 4.0).matrix()
    np.testing.assert_allclose(mixed, (0.2 * expected[0] + 0.8 * expected[1]) / 4.0, atol=1e-9)
    one = representation.metric(learners, 1, geometry, 4.0).matrix()
    np.testing.assert_allclose(one, expected[1] / 4.0, atol=1e-9)


def test_density_counts_entries(representation, geometry):
    learners, expected = taught(representation, geometry)
    assert representation.density(learners, 1, geometry) == np.mean(expected[1] != 0.0)


def test_nothing_is_truncated_without_need(representation, geometry):
    learners, _ = taught(representation, geometry)
    assert [representation.truncated_mass(learners, j) for j in range(3)] == [0.0] * 3


def test_rho_falls_with_the_memory_or_stays(representation):
    rho = representation.rho_for_length(0.5, np.array([1.0, 32.0, 128.0, 512.0]))
    assert rho.shape == (4,)
    assert rho[0] == 0.5
    assert (np.diff(rho) <= 0.0).all()


def test_new_features_are_at_their_start(representation, geometry):
    learners, expected = taught(representation, geometry)
    geometry = geometry._replace(capacity=N + 2)
    new = representation.new_learners(1, N + 2, geometry, True)
    wider = representation.widen(learners, new, geometry)
    representation.check(wider, geometry, N + 2)
    for M, before in zip(matrices(representation, wider, geometry), expected, strict=True):
        wanted = np.eye(N + 2)
        wanted[:N, :N] = before
        np.testing.assert_allclose(M, wanted, atol=1e-9)


@pytest.mark.parametrize("other", OURS, ids=lambda each: each.name)
def test_metrics_of_others_are_adopted(representation, geometry, other):
    """What a diagonal cannot keep is lost; all else stays, and new features are at their start."""
    theirs = Geometry(BURG if other is DENSE_FACTOR else FROBENIUS, N)
    learners, expected = taught(other, theirs)
    learners.mu[:] = [1.0, 2.0, 3.0]
    geometry = geometry._replace(capacity=N + 2)
    new = representation.new_learners(1, N + 2, geometry, True)
    adopted = representation.adopt(Source(other, learners, theirs), new, geometry)
    representation.check(adopted, geometry, N + 2)
    assert type(adopted) is representation.kind
    assert adopted.mu.tolist() == [1.0, 2.0, 3.0]
    for M, before in zip(matrices(representation, adopted, geometry), expected, strict=True):
        wanted = np.eye(N + 2)
        wanted[:N, :N] = np.diag(np.diag(before)) if representation is DIAGONAL else before
        np.testing.assert_allclose(M, wanted, atol=1e-9)
    scratch, u = representation.make_scratch(adopted, N + 2), np.ones(N + 2)
    learn(adopted, scratch, 0, geometry, dense(u), 0.01, 0.0)


def test_entries_are_those_of_the_metric(representation, geometry):
    learners, expected = taught(representation, geometry)
    for j, M in enumerate(expected):
        matrix, untouched = representation.entries(learners, j, geometry)
        np.testing.assert_allclose(matrix, M, atol=1e-9)
        assert untouched == 1.0


def test_learners_of_another_geometry_are_refused(representation, geometry):
    learners, _ = taught(representation, geometry)
    representation.check(learners, geometry, N)
    wrong = Geometry(FROBENIUS if representation is DENSE_FACTOR else BURG, N)
    if representation is SPECTRAL:  # keeps any divergence, but no more columns than it has
        wrong = Geometry(FROBENIUS, 2)
    with pytest.raises(ValueError, match=r"alone|do not fit"):
        representation.check(learners, wrong, N)


@pytest.mark.parametrize(
    ("divergence", "rho", "capacity", "chosen"),
    [
        (BURG, 0.0, N, DENSE_FACTOR),
        (BURG, 0.1, N, SPECTRAL),
        (BURG, 0.0, N - 1, SPECTRAL),
        (FROBENIUS, 0.0, N, SPECTRAL),
    ],
)
def test_the_fastest_exact_one_is_chosen(divergence, rho, capacity, chosen):
    assert for_nuclear_norm(Geometry(divergence, capacity), rho, N) is chosen
