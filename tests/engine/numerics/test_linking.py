"""Routines are linked into what calls them, and are compiled no further for themselves."""

import numba
import numpy as np
import pytest

from metrack.engine.numerics.kernels import inner, kernel, reduction, routine
from metrack.engine.numerics.linking import LinkedLibrary


@routine
def half(x):
    return x / 2


@routine
def checked(x):
    if x < 0:
        raise ValueError("a number below zero")
    return half(x)


@kernel
def quarter(x):
    return half(checked(x))


@numba.njit
def of_a_user(x):
    return quarter(x) + checked(x)


@pytest.mark.parametrize(("caller", "of_one"), [(quarter, 0.25), (of_a_user, 0.75)])
def test_what_calls_a_routine_has_it_linked_in(caller, of_one):
    assert caller(4.0) == 4 * of_one
    assert caller(3) == 3 * of_one  # compiled anew, for whole numbers


@pytest.mark.parametrize("caller", [quarter, of_a_user])
def test_an_exception_leaves_a_routine(caller):
    with pytest.raises(ValueError, match="a number below zero"):
        caller(-1.0)


@pytest.mark.parametrize("decorate", [routine, inner, reduction])
def test_a_routine_has_no_machine_code_of_its_own(decorate):
    @decorate
    def part(a):
        return a[0] + a[1]

    whole = numba.njit(lambda a: part(a))
    assert whole(np.array([1.0, 2.0])) == 3.0
    (compiled,) = part.overloads.values()
    assert isinstance(compiled.library, LinkedLibrary)
    assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0
    (compiled,) = whole.overloads.values()
    assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) != 0
