"""The embedding whose position does not depend on signs, order, or how many features follow."""

import numpy as np
import pytest

from metrack.estimators.reading.alignment import aligned, leading


def components(rng, rank, n):
    """Rows orthogonal, as `components_` has them."""
    vectors = np.linalg.qr(rng.normal(size=(n, rank)))[0].T
    return np.sort(rng.uniform(0.1, 3.0, size=rank))[::-1, None] * vectors


@pytest.mark.parametrize(("rank", "width", "n"), [(3, 6, 6), (6, 6, 6), (3, 4, 9), (4, 4, 9)])
def test_distances_are_kept_and_the_position_depends_on_m_alone(rank, width, n):
    rng = np.random.default_rng(0)
    L = components(rng, rank, n)
    S = aligned(L, width)
    assert S.shape == (width, n)
    np.testing.assert_allclose(S.T @ S, L.T @ L, atol=1e-12)
    signs, order = rng.choice([-1.0, 1.0], size=rank), rng.permutation(rank)
    np.testing.assert_allclose(aligned(signs[:, None] * L[order], width), S, atol=1e-12)


def test_with_all_features_it_is_the_square_root():
    L = components(np.random.default_rng(1), 3, 5)
    S = aligned(L, 5)
    np.testing.assert_allclose(S, S.T, atol=1e-12)
    assert np.linalg.eigvalsh(S)[0] > -1e-12


@pytest.mark.parametrize(("width", "n"), [(6, 6), (3, 9)])
def test_features_that_do_not_matter_change_nothing(width, n):
    L = components(np.random.default_rng(2), 3, n)
    wider = np.pad(L, ((0, 0), (0, 4)))
    S = aligned(wider, width if width < n else n + 4)
    np.testing.assert_allclose(S[:width, :n], aligned(L, width), atol=1e-12)
    assert not S[width:].any()
    assert not S[:, n:].any()


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_what_leads_does_not_depend_on_how_equal_rows_are_turned(width):
    """Two directions matter more than at the start, five as much, one less."""
    rng = np.random.default_rng(4)
    vectors = np.linalg.qr(rng.normal(size=(8, 8)))[0].T
    lengths = np.array([3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5])
    L = lengths[:, None] * vectors
    turned = L.copy()
    turned[2:7] = np.linalg.qr(rng.normal(size=(5, 5)))[0] @ L[2:7]
    found = leading(L, width)
    np.testing.assert_allclose(found @ found.T, np.diag(lengths[:width] ** 2), atol=1e-12)
    np.testing.assert_allclose(leading(turned, width), found, atol=1e-12)
    np.testing.assert_allclose(found[:2], L[: min(width, 2)], atol=1e-12)


def test_what_leads_at_the_identity_are_the_first_features():
    np.testing.assert_array_equal(leading(np.eye(5), 2), np.eye(5)[:2])


def test_no_direction_is_a_point():
    assert not aligned(np.empty((0, 4)), 4).any()
    assert not aligned(np.empty((0, 4)), 2).any()


@pytest.mark.parametrize("width", [8, 3])
def test_it_moves_little_where_the_metric_moves_little(width):
    """Two equal eigenvalues: the rows of L turn as they like, the embedding does not."""
    rng = np.random.default_rng(3)
    L = components(rng, 3, 8)
    L *= (np.array([2.0, 2.0, 1.0]) / np.linalg.norm(L, axis=1))[:, None]
    start = aligned(L, width)
    for _ in range(20):
        change = 1e-6 * rng.normal(size=(8, 8))
        values, vectors = np.linalg.eigh(L.T @ L + change @ change.T * 1e3)
        near = np.sqrt(values[-3:, None]) * vectors.T[-3:]
        assert np.abs(aligned(near[::-1], width) - start).max() < 1e-4
