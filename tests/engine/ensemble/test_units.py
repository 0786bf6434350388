"""Features in their own units: what changes them, and what does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrack.engine.ensemble import units
from tests.engine.ensemble.given import dense, sparse


def measured(u, sizes=(10_000,), form=dense):
    """Differences in own units, and what is known in the end."""
    found, known, done, call = [], units.new_units(u.shape[1]), 0, 0
    while done < len(u):
        rows = u[done : done + sizes[call % len(sizes)]]
        found.append(units.in_own_units(known, form(rows, np.ones(len(rows)))).u)
        done, call = done + len(rows), call + 1
    return np.concatenate(found), known


def test_features_of_any_scale_differ_alike():
    rng = np.random.default_rng(0)
    scale = np.array([1e-6, 1.0, 3.0, 1e9])
    u = rng.normal(size=(2000, 4)) * scale
    found, known = measured(u)
    spread = np.sqrt(np.mean(found.reshape(u.shape)[500:] ** 2, axis=0))
    np.testing.assert_allclose(spread, 1.0, rtol=0.15)
    np.testing.assert_allclose(units.scales(known), scale, rtol=0.15)


@given(st.integers(0, 100), st.floats(1e-12, 1e12))
def test_multiplying_a_feature_changes_nothing(seed, factor):
    u = np.random.default_rng(seed).normal(size=(50, 3))
    found, _ = measured(u)
    again, _ = measured(u * [1.0, factor, 1.0])
    np.testing.assert_allclose(again, found, rtol=1e-9)


def test_a_power_of_two_changes_no_digit():
    u = np.random.default_rng(1).normal(size=(300, 3))
    np.testing.assert_array_equal(measured(u)[0], measured(u * [1024.0, 1.0, 0.125])[0])


def test_a_pair_is_measured_by_those_before_it():
    u = np.array([[2.0], [1.0]])
    found, _ = measured(u)
    np.testing.assert_allclose(found, [1.0, 0.5])


def test_rare_features_are_not_blown_up():
    """One that differs in a pair of a hundred has its own scale there, not a tenth of it."""
    rng = np.random.default_rng(2)
    u = np.where(rng.random((5000, 1)) < 0.01, rng.normal(size=(5000, 1)), 0.0)
    found, _ = measured(u)
    assert np.sqrt(np.mean(found[found != 0.0] ** 2)) < 2.0


def test_constant_features_stay_zero_and_later_ones_start_anew():
    u = np.random.default_rng(3).normal(size=(100, 2))
    u[:, 0] = 0.0
    u[:60, 1] = 0.0
    found, known = measured(u)
    found = found.reshape(u.shape)
    assert not found[:, 0].any()
    assert not found[:60, 1].any()
    assert abs(found[60, 1]) == 1.0
    assert units.scales(known)[0] == 1.0


@pytest.mark.parametrize("odd", [1e-9, 1e9])
def test_a_first_difference_that_is_odd_is_soon_forgotten(odd):
    u = np.random.default_rng(4).normal(size=(2000, 1))
    u[0] = odd
    found, known = measured(u)
    assert np.abs(found).max() < 70.0  # however far a difference is: the root of 4096
    # An error of 1e9 in squares of 1 fades as the square of the number of pairs: 1e18 by 2000.
    if odd < 1.0:
        assert units.scales(known)[0] == pytest.approx(1.0, rel=0.15)


def test_units_that_change_are_followed():
    u = np.random.default_rng(5).normal(size=(60_000, 1))
    u[20_000:] *= 1000.0
    _, known = measured(u)
    assert units.scales(known)[0] == pytest.approx(1000.0, rel=0.1)


def test_calls_of_any_sizes_and_sparse_rows():
    u = np.random.default_rng(6).normal(size=(200, 3))
    u *= np.random.default_rng(7).random(u.shape) < 0.5
    found, known = measured(u)
    for sizes in ((1,), (7, 64, 3)):
        again, other = measured(u, sizes)
        np.testing.assert_array_equal(again, found)
        np.testing.assert_array_equal(other.square, known.square)
    by_entries, other = measured(u, form=sparse)
    np.testing.assert_array_equal(by_entries, found[u.ravel() != 0.0])
    np.testing.assert_array_equal(other.square, known.square)
