"""Losses, steps and divergences against the textbook's own formulas."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrack.engine.numerics import losses, steps
from metrack.engine.numerics.divergences import DIVERGENCES
from metrack.engine.numerics.losses import LOSSES
from metrack.engine.numerics.steps import STEPS
from tests.reference.comid import LOSSES as TEXTBOOK
from tests.reference.comid import DenseCOMID


@numba.njit
def loss(kind, s):
    return losses.loss(kind, s)


@numba.njit
def gradient(kind, s):
    return losses.gradient(kind, s)


@numba.njit
def signed_step(step, kind, divergence, e, y, q, mu, norm2):
    way = steps.Way(step, kind, divergence)
    return steps.signed_step(way, steps.Question(e, y, q, mu, norm2))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("m", [-1e3, -31.0, -2.5, 0.0, 0.999, 1.0, 3.0, 800.0])
def test_losses_are_the_textbook_formulas(name, m):
    value, gradient_there = TEXTBOOK[name]
    assert loss(LOSSES[name], 1 - m) == pytest.approx(value(1 - m), rel=1e-13)
    assert gradient(LOSSES[name], 1 - m) == pytest.approx(gradient_there(1 - m), rel=1e-13)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("step", STEPS)
@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.0, 50.0),
    st.floats(1.0, 20.0),
    st.floats(-3.0, 3.0),
    st.sampled_from([-1.0, 1.0]),
    st.floats(1e-3, 30.0),
)
def test_step_lengths(divergence, name, step, q, mu, log_norm, y, e):
    norm2 = 10.0**log_norm
    eigenvalue = max(q / norm2, 1e-12)
    oracle = DenseCOMID(1, loss=name, divergence=divergence, step=step, init="identity")
    oracle.set_iterate([[eigenvalue]], mu)
    u = np.array([math.sqrt(norm2)])
    q = float(u @ oracle.M @ u)
    codes = STEPS[step], LOSSES[name], DIVERGENCES[divergence]
    b = signed_step(*codes, e, y, q, mu, float(u @ u))
    expected = oracle.signed_step(u, y, e)
    assert b == pytest.approx(expected, rel=1e-9, abs=1e-12 * e)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_a_rate_that_is_no_number_ends(divergence):
    b = signed_step(
        STEPS["implicit"], LOSSES["logistic"], DIVERGENCES[divergence], math.nan, 1.0, 2.0, 1.0, 1.0
    )
    assert math.isnan(b)
