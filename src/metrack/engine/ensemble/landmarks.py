"""Points of the stream as landmarks, and the features of a kernel that they give.

A kernel is the inner product k(x, z) in a space that is never written down. Points are seen there
by their shadows on the span of m landmarks Z, the points that stand for all others (Nystroem):

    phi(x) = K(Z, Z)^(-1/2) k(Z, x).

These are coordinates on an orthonormal basis of the span; the symmetric root keeps each of them
near its landmark. What a point has outside of the span is k(x, x) - |phi(x)|^2.

Landmarks are drawn from the latest points and those that are landmarks already, one after another,
each with a chance by what it has outside of the span of those before it: the randomly pivoted
Cholesky decomposition (Chen, Epperly, Tropp and Webber, 2023), which is near the best choice, and
not drawn to outliers as the largest pivot is.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from metrack.engine.ensemble.kernel_rule import (
    RBF,
    Formula,
    KernelRule,
    by_scikit_learn,
    dense,
    own_squares,
    squares_of,
    value,
    values,
)
from metrack.engine.numerics.kernels import Floats, Ints, combine, dot, inner, kernel
from metrack.engine.numerics.pairs import Pairs, span_of, times
from metrack.engine.numerics.records import TINY, counts, floats

POINTS_PER_LANDMARK = 2  # of the latest ones that are kept: those of as many pairs
LEAST = 1e-12  # of the largest eigenvalue of K(Z, Z): those below may be rounding's
ROUNDING = 1e-12  # of the largest squared length: nearer points may be the same
APART = 1e-6  # a point with a smaller share outside of the span of others is no landmark
NEGATIVE = 1e-6  # of the largest eigenvalue: with one so far below 0, a kernel is none

MOVED = 1.25  # a factor; units that have moved by less stay as they are
NOT_KNOWN = 2.0


class Landmarks(NamedTuple):
    """Landmarks, their features, and the latest points."""

    points: Annotated[Floats, floats("n", "landmarks", least=-1e40, most=1e40)]  # 0 where unused
    used: Annotated[Ints, counts(1)]  # the first ones
    roots: Annotated[Floats, floats("spaces", "landmarks", "landmarks")]  # K^(-1/2), space by space
    # The units of gamma: a squared distance of points, or length; 0: nothing is known yet.
    unit: Annotated[Floats, floats(1, least=0.0)]
    # Pair t (counted from 0) is in slots 2t and 2t + 1, modulo slots.
    latest: Annotated[Floats, floats("latest", "n", least=-1e40, most=1e40)]
    centre: Annotated[Floats, floats("n", least=-1e40, most=1e40)]  # mean of the latest, then
    # Of the squared lengths of points that came after these landmarks were drawn, the share
    # outside of their span; above 1: not known yet.
    outside: Annotated[Floats, floats(1, least=0.0, most=2.0)]


def no_landmarks(n_features: int, n_landmarks: int, n_spaces: int) -> Landmarks:
    """Nothing seen yet: all features are 0."""
    return Landmarks(
        np.zeros((n_features, n_landmarks)),
        np.zeros(1, np.int64),
        np.zeros((n_spaces, n_landmarks, n_landmarks)),
        np.zeros(1),
        np.zeros((POINTS_PER_LANDMARK * n_landmarks, n_features)),
        np.zeros(n_features),
        np.array([NOT_KNOWN]),
    )


def keep(landmarks: Landmarks, x: Pairs, z: Pairs, seen: int) -> None:
    """Put the points of pairs, before which ``seen`` came, in the place of the oldest."""
    slots, n = landmarks.latest.shape
    start = max(0, len(x.y) - slots // 2)
    at = 2 * np.arange(seen + start, seen + len(x.y))
    for i, rows in enumerate((x, z)):
        landmarks.latest[(at + i) % slots] = dense(rows, n)[start:]


def differences(rule: KernelRule, landmarks: Landmarks, x: Pairs, z: Pairs) -> list[Floats]:
    """phi(x) - phi(z), space by space; each row is the same whatever the others are."""
    n, m = landmarks.points.shape
    used, found = int(landmarks.used[0]), []
    for gamma, root in zip(gammas_of(rule, landmarks), landmarks.roots, strict=True):
        gaps = np.zeros((len(x.y), m))
        if rule.code is None:
            points = landmarks.points[:, :used].T
            both = dense(x, n), dense(z, n)
            for row in range(len(gaps) if used else 0):
                a, b = (by_scikit_learn(rule, gamma, each[row : row + 1], points) for each in both)
                gaps[row] = (a - b)[0] @ root[:used]
        else:
            own = np.einsum("ij,ij->j", landmarks.points, landmarks.points)
            work = np.empty((2, m)), np.arange(max(n, m))
            formula = Formula(rule.code, gamma, rule.degree, rule.coef0)
            _differences(formula, x, z, Known(landmarks.points, own, root, used), work, gaps)
        found.append(gaps)
    return found


def features(rule: KernelRule, landmarks: Landmarks, X: Any) -> list[Floats]:
    """Phi of points, an array or a CSR matrix with one a row, space by space."""
    used, gammas = int(landmarks.used[0]), gammas_of(rule, landmarks)
    points = landmarks.points[:, :used].T
    return [
        values(rule, gamma, X, points) @ root[:used]
        for gamma, root in zip(gammas, landmarks.roots, strict=True)
    ]


class Renewed(NamedTuple):
    """Other landmarks, and what they make of the features so far."""

    landmarks: Landmarks
    changes: list[Floats]  # space by space: products of new and old basis vectors


def renew(rule: KernelRule, landmarks: Landmarks, n_pairs: int) -> Renewed:
    """Draw landmarks from those that there are and the latest points, after so many pairs."""
    n, m = landmarks.points.shape
    used = int(landmarks.used[0])
    old, seen = landmarks.points[:, :used].T, min(2 * n_pairs, len(landmarks.latest))
    known = {point.tobytes() for point in np.ascontiguousarray(old)}
    others = [point for point in landmarks.latest[:seen] if point.tobytes() not in known]
    candidates = np.concatenate([old, np.reshape(others, (len(others), n))])
    unit = _unit(rule, landmarks.latest[:seen], float(landmarks.unit[0]))
    gammas = _gammas(rule, unit)
    all_values = [values(rule, gamma, candidates, candidates) for gamma in gammas]
    for each in all_values:
        _check_positive(rule, each)
    drawn = []
    if unit > 0.0:  # else all points were the same, and say nothing of the scale
        rng = np.random.RandomState(n_pairs % 2**32)
        drawn = _draw(np.mean(all_values, axis=0), m, rng)
    order = _in_their_slots(drawn, used)
    roots, changes = np.zeros_like(landmarks.roots), []
    for each, root, before in zip(all_values, roots, landmarks.roots, strict=True):
        size = len(order)
        root[:size, :size] = inverse_root(each[np.ix_(order, order)])
        if unit != landmarks.unit[0]:  # as near its landmark as it was
            before = np.zeros((m, m))
            before[:used, :used] = inverse_root(each[:used, :used])
        changes.append(root[:, :size] @ each[order, :used] @ before[:used])
    points = np.zeros((n, m))
    points[:, : len(order)] = candidates[order].T
    found = Landmarks(
        points,
        np.array([len(order)]),
        roots,
        np.array([unit]),
        landmarks.latest,
        landmarks.latest[:seen].mean(axis=0),
        np.array([NOT_KNOWN]),
    )
    return Renewed(found, changes)


def moved_along(landmarks: Landmarks) -> Landmarks:
    """Landmarks that have moved as far as the mean of the latest points has."""
    centre = landmarks.latest.mean(axis=0)
    points = landmarks.points.copy()
    points[:, : landmarks.used[0]] += (centre - landmarks.centre)[:, None]
    return landmarks._replace(points=points, centre=centre)


def share_outside(rule: KernelRule, landmarks: Landmarks) -> float:
    """Of the squared lengths of the latest points, what is outside of the landmarks' span.

    By one point of each pair, in the first space.
    """
    points, used = landmarks.latest[::2], int(landmarks.used[0])
    gamma = gammas_of(rule, landmarks)[0]
    inside = values(rule, gamma, points, landmarks.points[:, :used].T) @ landmarks.roots[0, :used]
    total = own_squares(rule, gamma, points).sum()
    return float(np.clip(1.0 - np.sum(inside**2) / total, 0.0, 1.0)) if total > 0.0 else 0.0


def inverse_root(matrix: Floats) -> Floats:
    """K^(-1/2), as scikit-learn's Nystroem has it."""
    spectrum, vectors = np.linalg.eigh(matrix)
    least = max(LEAST * spectrum.max(initial=0.0), TINY)
    found: Floats = (vectors / np.sqrt(np.maximum(spectrum, least))) @ vectors.T
    return found


def _check_positive(rule: KernelRule, matrix: Floats) -> None:
    """Refuse a kernel that is none; the compiled ones are."""
    if rule.code is not None:
        return
    spectrum = np.linalg.eigvalsh(matrix)
    if spectrum[0] < -NEGATIVE * np.abs(spectrum).max():
        raise ValueError(
            f"the kernel {rule.function!r} is not positive semidefinite on these points: its "
            f"matrix has the eigenvalue {spectrum[0]:.3g}; use another kernel, or other settings"
        )


def _draw(matrix: Floats, most: int, rng: np.random.RandomState) -> list[int]:
    """Randomly pivoted Cholesky: which points of a kernel matrix stand for all."""
    size = len(matrix)
    factor, left = np.zeros((size, min(most, size))), np.diag(matrix).copy()
    least, drawn = APART * left, []
    for i in range(factor.shape[1]):
        chances = np.cumsum(np.where(left > least, left, 0.0))
        lot = rng.random_sample() * chances[-1]
        if not chances[-1] > 0.0:
            break
        pivot = int(np.searchsorted(chances, lot, side="right"))
        column = matrix[:, pivot] - factor[:, :i] @ factor[pivot, :i]
        factor[:, i] = column / math.sqrt(left[pivot])
        left -= factor[:, i] ** 2
        left[pivot] = 0.0
        drawn.append(pivot)
    return drawn


def _in_their_slots(drawn: list[int], used: int) -> Ints:
    """Landmarks that stay keep their places, so that features move little; others fill gaps."""
    size = len(drawn)
    order, kept = np.full(size, -1), {i for i in drawn if i < min(used, size)}
    order[list(kept)] = list(kept)
    order[order < 0] = [i for i in drawn if i not in kept]
    return order


def _unit(rule: KernelRule, points: Floats, before: float) -> float:
    """What gammas are relative to; it stays while it is about right, so that features do."""
    if not rule.relative:
        return 1.0
    lengths = squares_of(points)
    squares, least = lengths, ROUNDING * lengths.max(initial=0.0)
    if rule.code == RBF:
        gaps = lengths[:, None] + lengths - 2.0 * points @ points.T
        squares = gaps[np.triu_indices(len(points), 1)]
    squares = squares[squares > least]
    found = float(np.median(squares)) if squares.size else 0.0
    about_right = before / MOVED <= found <= before * MOVED
    return before if about_right or found == 0.0 else found


def gammas_of(rule: KernelRule, landmarks: Landmarks) -> list[float]:
    """In the data's units."""
    return _gammas(rule, float(landmarks.unit[0]))


def _gammas(rule: KernelRule, unit: float) -> list[float]:
    return [gamma / unit if rule.relative and unit > 0.0 else gamma for gamma in rule.gammas]


class Known(NamedTuple):
    """Landmarks, as compiled code needs them."""

    points: Floats
    squares: Floats
    root: Floats
    used: int


@kernel
def _differences(
    formula: Formula, x: Pairs, z: Pairs, known: Known, work: tuple[Floats, Ints], found: Floats
) -> None:
    """Leave phi(x) - phi(z) of each pair."""
    both, order = work
    used, m = known.used, found.shape[1]
    for row in range(found.shape[0]):
        _values_of(formula, x, row, known, both[0])
        _values_of(formula, z, row, known, both[1])
        for j in range(used):
            both[0, j] -= both[1, j]
        combine(found[row], both[0], known.root, order, used, m)


@inner
def _values_of(formula: Formula, rows: Pairs, row: int, known: Known, found: Floats) -> None:
    """K of a point and each landmark."""
    times(rows, row, known.points, found[: known.used])
    start, stop = span_of(rows, row)
    point = rows.u[start:stop]
    square = dot(point, point, point.size)
    for j in range(known.used):
        found[j] = value(formula, found[j], square, known.squares[j])
