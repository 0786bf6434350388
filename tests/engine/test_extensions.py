"""A loss, a combiner and a representation from outside of the package."""

from typing import NamedTuple

import numpy as np
import pytest

from metrack import COMID, SADL
from metrack.engine.ensemble import combiners
from metrack.engine.ensemble.combine import Combination
from metrack.engine.ensemble.combiners.protocol import Combiner, nothing_to_activate
from metrack.engine.learners.mirror import CONSTANT, Ladder, MirrorBank, Rule
from metrack.engine.numerics import losses
from metrack.engine.numerics.divergences import BURG
from metrack.engine.numerics.factored import Factored
from metrack.engine.numerics.kernels import inner
from metrack.engine.numerics.losses import HINGE
from metrack.engine.numerics.steps import IMPLICIT
from metrack.engine.representations import protocol
from metrack.engine.representations.protocol import Entries, Representation
from metrack.evaluate import comparator_losses
from tests.engine.ensemble.given import dense, ensemble_of, mixture


def stream(n_pairs=300, n=4):
    pairs = np.random.default_rng(0).normal(size=(n_pairs, 2, n))
    return pairs, np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)


class Rounded(NamedTuple):
    """The hinge, rounded off over a width."""

    width: float


@inner
def rounded_loss(record, s):
    a = min(max(s / record.width, 0.0), 1.0)
    return a * (s - 0.5 * record.width * a)


@inner
def rounded_gradient(record, s):
    return min(max(s / record.width, 0.0), 1.0)


@pytest.fixture
def rounded():
    losses.register("rounded", Rounded(1e-9), rounded_loss, rounded_gradient)
    losses.register("very_round", Rounded(0.5), rounded_loss, rounded_gradient)
    yield
    for name in ("rounded", "very_round"):
        del losses.LOSSES[name]


@pytest.mark.usefixtures("rounded")
@pytest.mark.parametrize("divergence", ["frobenius", "burg"])
def test_a_loss_from_outside(divergence):
    """With no width it is the hinge, found by bisection instead of its closed form."""
    pairs, y = stream()
    ours = COMID(loss="hinge", divergence=divergence).fit(pairs, y)
    sharp = COMID(loss="rounded", divergence=divergence).fit(pairs, y)
    M = ours.get_mahalanobis_matrix()
    np.testing.assert_allclose(sharp.get_mahalanobis_matrix(), M, atol=1e-5)
    smooth = COMID(loss="very_round", divergence=divergence).fit(pairs, y)
    assert np.abs(smooth.get_mahalanobis_matrix() - M).max() > 1e-3
    tracker = SADL(loss="very_round")
    assert tracker.observe(pairs, y)[200:].mean() < 0.5
    theirs = comparator_losses(pairs, y, (np.eye(4), 1.0), loss="rounded")
    np.testing.assert_allclose(
        theirs, comparator_losses(pairs, y, (np.eye(4), 1.0), loss="hinge"), atol=1e-8
    )


class Leader(NamedTuple):
    """Follow the leader; statistics: the sum of losses."""


@inner
def leader_weigh(record, statistics, n, t, p):
    best = 0
    for j in range(n):
        p[j] = 0.0
        if statistics[j, 0] < statistics[best, 0]:
            best = j
    p[best] = 1.0


@inner
def leader_update(record, statistics, n, p, told):
    for j in range(n):
        statistics[j, 0] += told[j]


def test_a_combiner_from_outside():
    leader = Combiner(Leader(), nothing_to_activate, leader_weigh, leader_update, always_on=True)
    combiners.register("leader", leader)
    try:
        pairs, y = stream()
        tracker = SADL(combiner="leader")
        told = np.zeros(12)
        for pair, label in zip(pairs, y, strict=True):
            tracker.learn_one(*pair, label)
            told += tracker.engine_.experts.known.losses
            assert tracker.weights_.tolist() == np.eye(12)[np.argmin(told)].tolist()
    finally:
        del combiners.COMBINERS["leader"]


class Matrices(NamedTuple):
    """Burg's steps on dense matrices, as a textbook has them."""

    matrix: np.ndarray  # (J, n, n)
    mu: np.ndarray


class Scratch(NamedTuple):
    image: np.ndarray  # Mu


@inner
def matrix_distance(learners, scratch, j, geometry, u):
    q = 0.0
    for i in range(u.full.size):
        for k in range(u.full.size):
            q += u.full[i] * learners.matrix[j, i, k] * u.full[k]
    return q


@inner
def matrix_update(learners, scratch, j, geometry, u, step):
    M, image = learners.matrix[j], scratch.image
    for i in range(image.size):
        image[i] = 0.0
        for k in range(image.size):
            image[i] += M[i, k] * u.full[k]
    c = step.b / (1.0 + step.b * step.q)
    for i in range(image.size):
        for k in range(image.size):
            M[i, k] -= c * image[i] * image[k]


@inner
def matrix_copy(learners, source, target):
    for i in range(learners.matrix.shape[1]):
        for k in range(learners.matrix.shape[1]):
            learners.matrix[target, i, k] = learners.matrix[source, i, k]
    learners.mu[target] = learners.mu[source]


class OfMatrices(Representation):
    def new_learners(self, n_learners, n_features, geometry, identity):
        return Matrices(np.tile(np.eye(n_features), (n_learners, 1, 1)), np.ones(n_learners))

    def make_scratch(self, learners, n_features):
        return Scratch(np.empty(n_features))

    def widen(self, learners, new, geometry):
        n = learners.matrix.shape[1]
        wider = self.new_learners(len(learners.mu), new.matrix.shape[1], geometry, True)
        wider.matrix[:, :n, :n] = learners.matrix
        return learners._replace(matrix=wider.matrix)

    def adopt(self, source, new, geometry):
        matrices = np.array([metric.matrix() for metric in source.metrics()])
        return self.widen(Matrices(matrices, source.mu), new, geometry)

    def check(self, learners, geometry, n_features):
        if geometry.divergence != BURG:
            raise ValueError("matrices are for the Burg divergence alone")

    def entries(self, learners, j, geometry):
        return Entries(learners.matrix[j], 1.0)

    def metric(self, learners, j, geometry, unit):
        values, vectors = np.linalg.eigh(learners.matrix[j])
        return Factored(values[::-1] / unit, vectors.T[::-1], 0.0)


MATRICES = OfMatrices("matrices", Matrices, matrix_distance, matrix_update, matrix_copy)


def test_a_representation_from_outside():
    """On the cover: the textbook's matrices beside the package's own factor."""
    protocol.register(MATRICES)
    try:
        pairs, y = stream(200)
        rule = Rule(HINGE, BURG, IMPLICIT, CONSTANT, 0.0, 4, 1)
        bank = MirrorBank(4, rule, Ladder(0.8), MATRICES, 2)
        record = combiners.COMBINERS["cbce"].record
        ours = ensemble_of(4, [bank], Combination(HINGE, record, cap=4.0), scaled=True)
        batch = dense(pairs[:, 0] - pairs[:, 1], y.astype(float))
        tracker = SADL(regularizer=None, eta0=0.8)
        np.testing.assert_allclose(
            ours.observe(batch, np.empty(0)), tracker.observe(pairs, y), atol=1e-8
        )
        theirs = tracker.get_mahalanobis_matrix()
        np.testing.assert_allclose(mixture(ours).matrix(), theirs, atol=1e-8)
    finally:
        del protocol.REPRESENTATIONS[Matrices]
