"""A kernel and its values: compiled where it is one of inner products, else by scikit-learn."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metrack.engine.numerics.kernels import Floats, inner, kernel
from metrack.engine.numerics.pairs import Pairs

LARGEST = 1e100  # value of a polynomial kernel: what is squared stays finite

RBF, POLYNOMIAL, COSINE, LINEAR = range(4)
COMPILED = {
    "rbf": RBF,
    "poly": POLYNOMIAL,
    "polynomial": POLYNOMIAL,
    "cosine": COSINE,
    "linear": LINEAR,
}


class KernelRule(NamedTuple):
    """A kernel, and its bandwidths, side by side."""

    # A name that scikit-learn's `pairwise_kernels` knows, or a function of two points.
    function: str | Callable[..., Any]
    gammas: tuple[float, ...]  # one for each space; 0: there is none, or what scikit-learn takes
    relative: bool  # gammas are in units of the data: their scale is found from the points
    degree: float
    coef0: float

    @property
    def of_differences(self) -> bool:
        """Whether k(x, z) is one of x - z."""
        return self.function in ("rbf", "laplacian")

    @property
    def code(self) -> int | None:
        """What compiled code knows it by; None: scikit-learn computes it."""
        return COMPILED.get(self.function) if isinstance(self.function, str) else None


def dense(rows: Pairs, n_features: int) -> Floats:
    """Points, one a row, as an array."""
    if rows.starts.size == 0:
        return rows.u.reshape(-1, n_features)
    shape = len(rows.y), n_features
    matrix: Any = sp.csr_array((rows.u, rows.where, rows.starts), shape=shape)
    found: Floats = matrix.toarray()
    return found


def as_dense(points: Any) -> Floats:
    """Points as an array."""
    return points if isinstance(points, np.ndarray) else np.asarray(points.toarray())


def values(rule: KernelRule, gamma: float, X: Any, Z: Floats) -> Floats:
    """k(x, z) of all x, rows of an array or CSR matrix, and z."""
    if rule.code is None:
        return by_scikit_learn(rule, gamma, X, Z)
    products = np.asarray(X @ Z.T)
    formula = Formula(rule.code, gamma, rule.degree, rule.coef0)
    _apply(formula, products, squares_of(X), squares_of(Z))
    return products


def by_scikit_learn(rule: KernelRule, gamma: float, X: Any, Z: Floats) -> Floats:
    """The same, of any kernel; refuses what is no number."""
    from sklearn.metrics.pairwise import pairwise_kernels

    if callable(rule.function):
        X = as_dense(X)
        found = pairwise_kernels(X, Z, metric=rule.function)
    else:
        asked = {"degree": rule.degree, "coef0": rule.coef0}
        if gamma > 0.0:
            asked["gamma"] = gamma
        found = pairwise_kernels(X, Z, metric=rule.function, filter_params=True, **asked)
    if not np.isfinite(found).all():
        raise ValueError(f"the kernel {rule.function!r} gives numbers that are not finite")
    return np.asarray(found, dtype=np.float64)


def own_squares(rule: KernelRule, gamma: float, X: Floats) -> Floats:
    """k(x, x), the squared lengths of points."""
    if rule.code is None:
        return np.array([by_scikit_learn(rule, gamma, x[None], x[None])[0, 0] for x in X])
    found = squares_of(X)[:, None]
    _apply_to_itself(Formula(rule.code, gamma, rule.degree, rule.coef0), found)
    return found[:, 0]


def squares_of(points: Any) -> Floats:
    """Squared lengths of points, rows of an array or CSR matrix."""
    if not isinstance(points, np.ndarray):  # CSR
        return np.asarray(points.multiply(points).sum(axis=1)).ravel()
    found: Floats = np.einsum("ij,ij->i", points, points)
    return found


class Formula(NamedTuple):
    """A kernel of inner products."""

    code: int
    gamma: float
    degree: float
    coef0: float


@inner
def value(formula: Formula, product: float, x: float, z: float) -> float:
    """K of two points with this inner product and these squared lengths."""
    if formula.code == RBF:
        return math.exp(-formula.gamma * max(x + z - 2.0 * product, 0.0))
    if formula.code == POLYNOMIAL:
        power = (formula.gamma * product + formula.coef0) ** formula.degree
        return float(min(max(power, -LARGEST), LARGEST))
    if formula.code == COSINE:
        return product / math.sqrt(x * z) if x > 0.0 and z > 0.0 else 0.0
    return product


@kernel
def _apply(formula: Formula, products: Floats, x: Floats, z: Floats) -> None:
    """Replace inner products by what the kernel makes of them."""
    for i in range(x.size):
        for j in range(z.size):
            products[i, j] = value(formula, products[i, j], x[i], z[j])


@kernel
def _apply_to_itself(formula: Formula, squares: Floats) -> None:
    for i in range(len(squares)):
        square = squares[i, 0]
        squares[i, 0] = value(formula, square, square, square)
