"""A metric that is plain but in a few directions: L, and what can be told without it."""

import numpy as np
import pytest

from metrack.engine.numerics.factored import Factored, OnFrame, is_metric
from metrack.engine.numerics.frame import Frame


@pytest.mark.parametrize(("n", "rank"), [(7, 3), (7, 0), (7, 7), (30, 9), (1, 1)])
@pytest.mark.parametrize("outside", [0.0, 0.7])
@pytest.mark.parametrize("least", [0.0, 0.1])
def test_read_outs_agree(n, rank, outside, least):
    rng = np.random.default_rng(n + rank)
    vectors = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :rank].T
    values = rng.permutation(np.linspace(least, 2.0, rank)) if outside else np.full(rank, 2.0)
    check_read_outs(Factored(values, vectors, outside))


@pytest.mark.parametrize(("n", "width"), [(7, 3), (7, 0), (7, 6), (30, 9)])
@pytest.mark.parametrize("least", [0.0, 0.1])
def test_read_outs_on_a_frame_agree(n, width, least):
    rng = np.random.default_rng(n + width)
    directions = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :width]
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0]
    values = np.linspace(2.0, least, width)
    metric = OnFrame(Frame(directions), (turn * values) @ turn.T, 0.7)
    known = Factored(values, (directions @ turn).T, 0.7)
    np.testing.assert_allclose(metric.matrix(), known.matrix(), atol=1e-12)
    check_read_outs(metric)
    leading, expected = metric.leading(2), known.leading(2)
    if width > 4:  # two directions above all others
        np.testing.assert_allclose(leading.matrix(), expected.matrix(), atol=1e-12)
    many = rng.normal(size=(2 * n, n))
    few = np.concatenate([metric.squared_distances(many[:n]), metric.squared_distances(many[n:])])
    np.testing.assert_allclose(metric.squared_distances(many), few, atol=1e-12)


def test_a_frame_and_what_it_leaves_out_are_a_basis():
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 4)))[0]
    frame = Frame(vectors)
    whole = np.concatenate([vectors.T, frame.others()])
    np.testing.assert_allclose(whole @ whole.T, np.eye(9), atol=1e-12)
    points = np.random.default_rng(1).normal(size=(3, 9))
    found = np.empty((len(points), vectors.shape[0] - vectors.shape[1]))
    frame.left_out(points, points @ vectors, found)
    np.testing.assert_allclose(found, points @ frame.others().T, atol=1e-12)


def check_read_outs(metric):
    """All by L and M, whose rows fall."""
    n, rng = metric.vectors.shape[1], np.random.default_rng(0)
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


def test_a_form_that_is_a_metric_stays_and_another_becomes_the_nearest():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    metric = (turn * [3.0, 2.0, 1.0, 0.5, 0.1]) @ turn.T
    frame = Frame(np.eye(7)[:, :5])
    assert is_metric(metric)
    np.testing.assert_allclose(OnFrame(frame, metric, 0.7).matrix()[:5, :5], metric, atol=1e-12)
    form = (turn * [3.0, 2.0, 1.0, -0.5, -1.0]) @ turn.T
    assert not is_metric(form)
    whole = OnFrame(frame, form, 0.7)
    check_read_outs(whole)
    u = rng.normal(size=(3, 7))  # few enough to need no eigenvectors
    expected = np.einsum("ij,jk,ik->i", u, whole.matrix(), u)
    np.testing.assert_allclose(OnFrame(frame, form, 0.7).squared_distances(u), expected)
    found = whole.matrix()[:5, :5]
    assert np.linalg.eigvalsh(found)[0] > 0.0
    least = np.sum((found - form) ** 2)
    for _ in range(200):  # convexity: nothing on the way to another metric is nearer
        A = rng.normal(size=(5, 5))
        other = found + 0.01 * (A @ A.T - found)
        assert np.sum((other - form) ** 2) > least - 1e-5
