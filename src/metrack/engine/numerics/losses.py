"""Losses on the margin m = y (mu - q), written in the shortfall s = 1 - m: two formulas each.

The shortfall keeps its digits where mu is 1 and q tiny. A loss's gradient is dl/ds = -dl/dm, how
strongly it asks for a larger margin.

The package's own losses are known to compiled code by a number, all in one piece of it. One from
outside is a NamedTuple class (of its parameters, if any) with two compiled functions; `register`
gives it a name, by which estimators take it.
"""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from metrack.engine.numerics.dispatch import by_type
from metrack.engine.numerics.kernels import inner

HINGE, SQUARED_HINGE, LOGISTIC, EXPONENTIAL, LEAST_SQUARES = range(5)

Kind: TypeAlias = int | tuple[Any, ...]  # one of the above, or the record of a loss from outside

LOSSES: dict[str, Kind] = {
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
    "logistic": LOGISTIC,
    "exponential": EXPONENTIAL,
    "least_squares": LEAST_SQUARES,
}

# Below m = -STEEPEST the exponential loss continues as a straight line, so that it stays finite.
STEEPEST = 30.0


@inner
def shortfall(y: float, mu: float, q: float, gain: float = 0.0) -> float:
    """1 - y (mu + gain - q), summed so that nothing cancels that need not."""
    return (1.0 - mu) - gain + q if y > 0.0 else (1.0 + mu) + gain - q


@inner
def _loss(kind: int, s: float) -> float:
    if kind == HINGE:
        return max(0.0, s)
    if kind == SQUARED_HINGE:
        return 0.5 * max(0.0, s) ** 2
    if kind == LOGISTIC:
        return max(0.0, s - 1.0) + math.log1p(math.exp(-abs(s - 1.0)))
    if kind == EXPONENTIAL:
        return math.exp(min(s - 1.0, STEEPEST)) * (1.0 + max(0.0, s - 1.0 - STEEPEST))
    return 0.5 * s * s


@inner
def _gradient(kind: int, s: float) -> float:
    if kind == HINGE:
        return 1.0 if s > 0.0 else 0.0
    if kind == SQUARED_HINGE:
        return max(0.0, s)
    if kind == LOGISTIC:
        small = math.exp(-abs(s - 1.0))
        return (1.0 if s > 1.0 else small) / (1.0 + small)
    if kind == EXPONENTIAL:
        return math.exp(min(s - 1.0, STEEPEST))
    return s


@inner
def _own_kind(kind: int) -> int:
    return kind


@inner
def _no_kind(kind: Kind) -> int:
    return -1


@dataclass(frozen=True)
class Formulas:
    """The compiled functions of a loss; the first argument of each is the loss's record."""

    loss: Any
    gradient: Any
    closed_form: Any = _no_kind  # what its implicit steps are known by, where in closed form


FORMULAS: dict[type, Formulas] = {int: Formulas(_loss, _gradient, _own_kind)}


def register(name: str, record: tuple[Any, ...], loss: Any, gradient: Any) -> None:
    """Make a loss known by a name.

    The class of ``record``, a NamedTuple, tells the loss from others; its fields are parameters.
    ``loss``, convex and falling in the margin, and ``gradient``, its derivative in the shortfall s,
    are functions of (record, s), compiled by `kernels.inner`.
    """
    FORMULAS[type(record)] = Formulas(loss, gradient)
    LOSSES[name] = record


@by_type(FORMULAS, inline=True)
def loss(kind: Kind, s: float) -> float:
    """The loss at shortfall s."""
    found: float = FORMULAS[type(kind)].loss.py_func(kind, s)
    return found


@by_type(FORMULAS, inline=True)
def gradient(kind: Kind, s: float) -> float:
    """How strongly the loss asks for a larger margin, at shortfall s."""
    found: float = FORMULAS[type(kind)].gradient.py_func(kind, s)
    return found


@by_type(FORMULAS, inline=True)
def closed_form(kind: Kind) -> int:
    """The number of a loss whose implicit steps may have a closed form, else -1."""
    found: int = FORMULAS[type(kind)].closed_form.py_func(kind)
    return found
