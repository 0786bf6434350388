"""What the batch methods ask of their descent; that it goes down well is scipy's own affair."""

import numpy as np
from numpy.testing import assert_allclose

from metrack.engine.batch.descent import minimise


def bowl(x):
    """Least at 3 everywhere, where it is 0; curvatures from 0.01 to 100."""
    curvature = np.logspace(-2, 2, x.size).reshape(x.shape)
    return float(0.5 * np.sum(curvature * (x - 3.0) ** 2)), curvature * (x - 3.0)


def never(n_iter, value):
    return False


def test_it_ends_where_the_caller_is_content():
    seen = []

    def report(n_iter, value):
        seen.append((n_iter, value))
        return value < 1e-6

    found = minimise(bowl, np.zeros((4, 5)), 10_000, report)
    assert found.done
    assert found.x.shape == (4, 5)
    assert [n_iter for n_iter, _ in seen] == list(range(1, found.n_iter + 1))
    assert found.value == seen[-1][1] == bowl(found.x)[0]
    assert_allclose(found.x, 3.0, atol=np.sqrt(2e-6 / 0.01))  # where 0.01 (x - 3)^2 / 2 < 1e-6


def test_the_objective_was_last_called_at_the_point_reported():
    called = []

    def objective(x):
        called.append(bowl(x)[0])
        return bowl(x)

    minimise(objective, np.zeros(20), 30, lambda n_iter, value: called[-1] != value)
    assert len(called) > 20  # it did not end at once


def test_it_ends_at_max_iter():
    found = minimise(bowl, np.zeros(20), 5, never)
    assert not found.done
    assert found.n_iter == 5


def test_it_ends_where_rounding_hides_the_way_down():
    found = minimise(lambda x: (1.0 + bowl(x)[0], bowl(x)[1]), np.zeros(20), 100_000, never)
    assert not found.done
    assert found.n_iter < 100_000
    flat = minimise(lambda x: (1.0, np.zeros(3)), np.ones(3), 5, never)
    assert flat.n_iter == 0
    assert_allclose(flat.x, np.ones(3))
