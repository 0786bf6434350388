"""The rank-one eigenproblem against ``eigh``, where numbers are friendly and where they are not."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrack.engine.numerics.secular import make_secular_scratch, rank_one_eigh

SIZES = st.integers(1, 12)


@numba.njit
def decompose(d, z, c, k, values, vectors, scratch):
    """The engine's routine, which only compiled code can call."""
    rank_one_eigh(d, z, c, k, values, vectors, scratch)


def check(d, z, c):
    """Backward error, orthogonality and order of one decomposition."""
    d, z = np.array(sorted(d, reverse=True), dtype=float), np.array(z, dtype=float)
    k = len(d)
    values, vectors = np.empty(k), np.empty((k, k))
    decompose(d, z, float(c), k, values, vectors, make_secular_scratch(k))
    matrix = np.diag(d) + c * np.outer(z, z)
    size = max(np.abs(d).max(), abs(c) * (z @ z), 1e-300)
    assert np.abs(vectors @ vectors.T - np.eye(k)).max() < 1e-14 * k
    assert np.abs(vectors.T @ np.diag(values) @ vectors - matrix).max() < 2e-14 * size
    assert np.abs(np.linalg.eigvalsh(matrix)[::-1] - values).max() < 2e-14 * size
    assert (np.diff(values) <= 0).all()


def numbers(low, high):
    """Signed numbers of any size between 10^low and 10^high, and zero."""
    sized = st.builds(
        lambda mantissa, exponent, sign: sign * mantissa * 10.0**exponent,
        st.floats(1, 10),
        st.integers(low, high),
        st.sampled_from([-1.0, 1.0]),
    )
    return st.one_of(st.just(0.0), sized)


@pytest.mark.parametrize("c", [1e-12, -1e-12, 0.3, -0.3, 1e9, -1e9, 0.0])
@pytest.mark.parametrize("k", [1, 2, 3, 10, 40])
def test_random_problems(k, c):
    rng = np.random.default_rng(k)
    for _ in range(20):
        check(rng.normal(size=k), rng.normal(size=k), c)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_hard_problems(data):
    k = data.draw(SIZES)
    d = data.draw(st.lists(numbers(-10, 10), min_size=k, max_size=k))
    z = data.draw(st.lists(numbers(-20, 4), min_size=k, max_size=k))
    check(d, z, data.draw(numbers(-12, 12)))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_equal_and_nearly_equal_poles(data):
    k = data.draw(SIZES)
    d = data.draw(st.lists(st.integers(0, 2), min_size=k, max_size=k))
    jitter = data.draw(st.sampled_from([0.0, 1e-16, 1e-15, 1e-13, 1e-9]))
    z = data.draw(st.lists(st.sampled_from([0.0, 1e-17, 1e-9, 1.0, -1.0]), min_size=k, max_size=k))
    check([1.0 + pole + jitter * i for i, pole in enumerate(d)], z, data.draw(numbers(-6, 6)))
