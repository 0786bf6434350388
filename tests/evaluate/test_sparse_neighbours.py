import numpy as np
import pytest
import scipy.sparse as sp

from metrack.evaluate import leave_one_out_error
from metrack.evaluate.sparse_neighbours import sparse_nearest


def brute_force(points, k):
    """Nearest rows by whole numbers, in which equal distances are equal; the first of them."""
    found = []
    for i, point in enumerate(points):
        squares = ((points - point) ** 2).sum(axis=1)
        order = [j for j in np.lexsort((np.arange(len(points)), squares)) if j != i]
        found.append(sorted(order[:k]))
    return np.array(found)


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("scale", [1, 7, 0.1])
def test_neighbours_are_the_nearest_and_of_equals_the_first(k, scale):
    rng = np.random.default_rng(k)
    points = rng.poisson(0.15, size=(300, 12))  # most distances occur many times
    found = sparse_nearest(sp.csr_array(points * scale), 300, k)
    assert np.array_equal(np.sort(found, axis=1), brute_force(points, k))


def test_errors_are_those_of_the_dense_rows():
    rng = np.random.default_rng(0)
    points = sp.random(400, 30, density=0.4, random_state=rng, format="csr")
    labels = rng.integers(3, size=400)
    for n_tested in (None, 150):
        dense = leave_one_out_error(points.toarray(), labels, n_tested=n_tested)
        assert leave_one_out_error(points, labels, n_tested=n_tested) == dense


def test_bad_rows_are_named():
    points = sp.csr_array([[1.0, 0.0], [0.0, np.nan]])
    with pytest.raises(ValueError, match="X row 1 is not finite"):
        leave_one_out_error(points, [0, 1], n_neighbors=1)
    with pytest.raises(ValueError, match="X has 2 points"):
        leave_one_out_error(sp.eye_array(2, format="csr"), [0], n_neighbors=1)
