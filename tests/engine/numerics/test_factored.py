"""A metric that is plain but in a few directions: L, and what can be told without it."""

import numpy as np
import pytest

from metrack.engine.numerics.factored import Factored


@pytest.mark.parametrize(("n", "rank"), [(7, 3), (7, 0), (7, 7), (30, 9), (1, 1)])
@pytest.mark.parametrize("outside", [0.0, 0.7])
@pytest.mark.parametrize("least", [0.0, 0.1])
def test_read_outs_agree(n, rank, outside, least):
    rng = np.random.default_rng(n + rank)
    vectors = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :rank].T
    values = rng.permutation(np.linspace(least, 2.0, rank)) if outside else np.full(rank, 2.0)
    metric = Factored(values, vectors, outside)
    points = rng.normal(size=(5, n))
    M, L = metric.matrix(), metric.components()
    np.testing.assert_allclose(L.T @ L, M, atol=1e-12)
    lengths = (L**2).sum(axis=1)
    assert (np.diff(lengths) <= 1e-12).all()
    np.testing.assert_allclose(L @ L.T, np.diag(lengths), atol=1e-12)
    np.testing.assert_allclose(metric.embed(points), points @ L.T, atol=1e-12)
    expected = np.einsum("ij,jk,ik->i", points, M, points)
    np.testing.assert_allclose(metric.squared_distances(points), expected, atol=1e-12)
    assert (metric.squared_distances(np.zeros((2, n))) == 0.0).all()
