"""The forms in which a bank keeps its metrics, and how the compiled loop finds the right one.

A form is a module with a NamedTuple class of arrays, one entry a learner and ``mu`` among them, and
these functions on it: compiled `project`, `move`, `step_norm`, `copy_learner` and `is_full`, which
`rounds` calls for every pair; and `new_learners`, `make_scratch`, `grow` and `widen`, with which
the `Bank` allocates. It reads a learner's `metric`, or, where a form keeps entries, the `mixture`
of any number at once. Compiled code tells forms apart by the type of the arrays, so a stream
compiles only the form it uses.
"""

from typing import Any

from numba.extending import overload

from metrack.engine import cone, diagonal, elementwise, spectral, whole
from metrack.engine.divergences import BURG
from metrack.engine.kernels import OPTIONS, ROUTINE, Difference, F

FORMS: dict[type, Any] = {
    spectral.Spectral: spectral,
    whole.Whole: whole,
    cone.Cone: cone,
    elementwise.Elementwise: elementwise,
    diagonal.Diagonal: diagonal,
}


def choose(divergence: int, rho: float, capacity: int, n_features: int) -> Any:
    """The fastest form that is exact, for the nuclear norm."""
    if divergence == BURG and rho == 0.0 and capacity == n_features:
        return whole
    return spectral


def by_form(stub: F) -> F:
    """Compile calls of a function as calls of its namesake in the form of its first argument."""

    def implementation(learners: Any, *_: Any) -> Any:
        return getattr(FORMS[learners.instance_class], stub.__name__).py_func

    options: Any = OPTIONS | ROUTINE
    overload(stub, jit_options=options, strict=False)(implementation)
    return stub


@by_form
def project(
    learners: Any, scratch: Any, j: int, divergence: int, u: Difference, norm2: float
) -> float:
    """Squared distance q = u'Mu of learner j."""
    raise NotImplementedError


@by_form
def move(
    learners: Any,
    scratch: Any,
    j: int,
    divergence: int,
    u: Difference,
    q: float,
    b: float,
    amount: float,
    capacity: int,
) -> None:
    """The step: M moves by -b uu' in the divergence's dual, then shrinks by ``amount``."""
    raise NotImplementedError


@by_form
def step_norm(learners: Any, u: Difference, norm2: float) -> float:
    """Frobenius norm of what a step of size 1 adds to M in the dual."""
    raise NotImplementedError


@by_form
def copy_learner(learners: Any, source: int, target: int) -> None:
    """Make one learner the equal of another."""
    raise NotImplementedError


@by_form
def is_full(learners: Any, capacity: int) -> bool:
    """Whether the learners need more room before the next step."""
    raise NotImplementedError
