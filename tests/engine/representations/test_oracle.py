"""The learner against the textbook one: the same metric and threshold at every step.

Burg with the nuclear norm has another representation than without: both are held here.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrack import COMID
from metrack.engine.numerics.divergences import DIVERGENCES
from metrack.engine.numerics.losses import LOSSES
from metrack.engine.representations.dense_factor import DenseFactor
from metrack.engine.representations.spectral import Spectral
from tests.reference.comid import DenseCOMID

PRECISION = 1e-9
LOGDET = {"divergence": "burg", "regularizer": "logdet"}
GEOMETRIES = [*({"divergence": d} for d in DIVERGENCES), {"divergence": "burg", "rho": 0.0}, LOGDET]


def both(n, **options):
    """The learner and its oracle with the same settings."""
    settings_ = {
        "divergence": "frobenius",
        "rho": 0.01,
        "learning_rate": 0.1,
        "step": "implicit",
    } | options
    return COMID(scale=None, **settings_), DenseCOMID(n, **settings_)


def assert_same(learner, oracle, size, where):
    """Agreement relative to ``size``, the largest matrix that was rounded on the way.

    Where von Neumann or Burg steps have shrunk all of M far below that, q has lost digits, and so
    has mu.
    """
    M = learner.get_mahalanobis_matrix()
    assert np.abs(M - oracle.M).max() <= PRECISION * size, where
    lost = 0.0 if oracle.divergence == "frobenius" else 1e-13 * size / np.abs(oracle.M).max()
    assert learner.mu_ == pytest.approx(oracle.mu, rel=max(PRECISION, lost)), where


def lockstep(learner, oracle, us, ys, losses=True):
    """Feed both the same pairs; compare at every step."""
    zero, size = np.zeros(us.shape[1]), 1e-300
    for t, (u, y) in enumerate(zip(us, ys, strict=True)):
        suffered = learner.observe([[u, zero]], [y])[0]
        size = max(size, np.abs(oracle.M).max())
        expected = oracle.observe(u, y)
        size = max(size, np.abs(oracle.M).max())
        if losses:
            assert suffered == pytest.approx(expected, rel=1e-8, abs=1e-9), t
        assert_same(learner, oracle, size, t)


def random_pairs(rng, n_pairs, n):
    """Differences of points in two blobs, alike or not with equal odds."""
    y = rng.choice([-1, 1], size=n_pairs)
    u = rng.normal(size=(n_pairs, n))
    u[y == -1, 0] += 2.0
    return u / np.sqrt(n), y


@pytest.mark.parametrize("step", ["explicit", "implicit"])
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_and_geometry(loss, geometry, step):
    us, ys = random_pairs(np.random.default_rng(0), 2000, 6)
    learner, oracle = both(6, loss=loss, step=step, **geometry)
    lockstep(learner, oracle, us, ys)
    kind = Spectral if len(geometry) == 1 else DenseFactor
    assert isinstance(learner.engine_.banks[0].learners, kind)


@pytest.mark.parametrize(
    "options",
    [
        {"init": "identity"},
        {"init": "identity", "rho": 0.3},
        {"regularizer": None},
        {"rho": 0.0},
        {"schedule": "invsqrt", "learning_rate": 2.0},
        {"learning_rate": 5.0},
        {"rho": 1.0},
    ],
)
def test_settings(options):
    us, ys = random_pairs(np.random.default_rng(1), 2000, 8)
    lockstep(*both(8, **options), us, ys)


def test_wide_points():
    us, ys = random_pairs(np.random.default_rng(2), 2000, 25)
    lockstep(*both(25), us, ys)


KINDS = {
    "repeats": lambda rng, n: np.repeat(rng.normal(size=(1, n)), 6, axis=0),
    "zeros": lambda rng, n: np.zeros((3, n)),
    "in a plane": lambda rng, n: rng.normal(size=(6, 2)) @ np.eye(2, n),
    "along axes": lambda rng, n: np.eye(n)[rng.integers(n, size=6)],
    "equal lengths": lambda rng, n: rng.choice([-1.0, 1.0], size=(6, n)),
    "plain": lambda rng, n: rng.normal(size=(6, n)),
    "any size": lambda rng, n: rng.normal(size=(6, n)) * 10.0 ** rng.integers(-8, 9, size=(6, 1)),
}


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6),
    st.integers(1, 5),
    st.integers(0, 2**31),
)
def test_awkward_pairs(loss, geometry, kinds, n, seed):
    rng = np.random.default_rng(seed)
    us = np.concatenate([KINDS[kind](rng, n) for kind in kinds])
    learner, oracle = both(n, loss=loss, **{"rho": 0.002} | geometry)
    lockstep(learner, oracle, us, rng.choice([-1, 1], size=len(us)), losses=False)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(-8, 8), st.integers(0, 2**31), st.sampled_from([-1, 1]))
def test_one_explicit_step_of_any_size(geometry, n, exponent, seed, y):
    """From the same state: a huge explicit step leaves the dense form no digits to go on with."""
    rng = np.random.default_rng(seed)
    us, ys = random_pairs(rng, 40, n)
    learner, oracle = both(n, step="explicit", **geometry)
    learner.fit(np.stack([us, np.zeros_like(us)], axis=1), ys)
    oracle.set_iterate(learner.get_mahalanobis_matrix(), learner.mu_)
    oracle.steps = getattr(learner.engine_.banks[0].learners, "steps", [0])[0]
    u = rng.normal(size=n) * 10.0**exponent
    size = max(np.abs(oracle.M).max(), 0.1 * (u @ u))
    learner.learn_one(u, np.zeros(n), y)
    oracle.observe(u, y)
    assert_same(learner, oracle, max(size, np.abs(oracle.M).max()), exponent)
