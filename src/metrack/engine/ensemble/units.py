"""Each feature in units of its own: the running root mean square of how far pairs differ in it.

Features come in whatever units they have, and one of a thousandfold spread drowns all others. In
units of their own, all differ alike; but how much features spread can mean something, too, so some
learners see pairs as they come, and some in these units.

The mean square m of a feature is over the pairs that differ in it: a feature that is 0 in most
pairs is not blown up. A square counts as at most CLIP m, so that a single error of measurement does
not rule, and the k-th of them moves m by 2 / (k + 1) of the way, which forgets the first ones,
and from some time on by a fixed share, which follows units that change. A pair is measured by what
was seen before it, and in a feature that was never seen to differ by its own difference. As long as
few differences are known, their mean square may be far too small: so no difference counts for more
than if it had its own share of the mean square, and the others none.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from metrack.engine.numerics.kernels import Floats, Ints, inner, kernel
from metrack.engine.numerics.pairs import Pairs
from metrack.engine.numerics.records import counts, floats

CLIP = 9.0  # times the mean square: three standard deviations
LEAST_SHARE = 1.0 / 4096.0  # of a difference in the mean square
SMALLEST = 1e-300  # of a square: one below has lost its digits
ROUNDING = 1e-12  # a spread of less, beside the largest number, is none


class Units(NamedTuple):
    """What is known of each feature's own scale."""

    square: Annotated[Floats, floats("n", least=0.0)]  # mean square of differences; 0: none yet
    differing: Annotated[Ints, counts("n")]  # pairs that differed


def new_units(n_features: int) -> Units:
    """Nothing seen yet."""
    return Units(np.zeros(n_features), np.zeros(n_features, np.int64))


def scales(units: Units) -> Floats:
    """What a difference is divided by; 1 where none was seen."""
    return np.where(units.square > 0.0, np.sqrt(units.square), 1.0)


def own_units(points: Floats) -> Floats:
    """One over each feature's standard deviation among some points; 1 where it is constant."""
    largest = np.abs(points).max(axis=0)
    unit = np.where(largest > 0.0, largest, 1.0)
    spread = np.std(points / unit, axis=0) * unit  # squares of the largest numbers stay finite
    varies = spread > ROUNDING * largest
    units: Floats = np.divide(1.0, spread, where=varies, out=np.ones_like(spread))
    return units


def in_own_units(units: Units, pairs: Pairs) -> Pairs:
    """Pairs with each feature in its own units, each by those before it; all then count."""
    found = np.empty_like(pairs.u)
    if pairs.starts.size > 0:
        _measure_sparse(units, pairs.u, pairs.where, found)
    else:
        _measure_dense(units, pairs.u, found)
    return pairs._replace(u=found)


def widen(units: Units, n_features: int) -> Units:
    """The same with more features, which have been 0 so far."""
    more = n_features - len(units.square)
    return Units(np.pad(units.square, (0, more)), np.pad(units.differing, (0, more)))


@kernel
def _measure_dense(units: Units, u: Floats, found: Floats) -> None:
    width = units.square.size
    for first in range(0, u.size, width):
        for j in range(width):
            found[first + j] = _measured(units, j, u[first + j])


@kernel
def _measure_sparse(units: Units, u: Floats, where: Ints, found: Floats) -> None:
    for i in range(u.size):
        found[i] = _measured(units, where[i], u[i])


@inner
def _measured(units: Units, j: int, value: float) -> float:
    """A difference in units of feature j; it then counts for those that come after it."""
    square, k = value * value, units.differing[j]
    differs = square > SMALLEST
    mean = units.square[j] if k > 0 else max(square, SMALLEST)
    share = max(2.0 / (k + 2.0), LEAST_SHARE)
    largest = math.sqrt(1.0 / share)
    length = min(max(value / math.sqrt(mean), -largest), largest)
    moved = mean + share * (min(square, CLIP * mean) - mean)
    units.square[j] = moved if differs else units.square[j]
    units.differing[j] = k + differs
    return length if differs else 0.0
