"""Eigenvalues and eigenvectors of diag(d) + c zz' in O(k^2): the secular equation.

The eigenvalues are the roots of f(x) = 1 + c sum_j z_j^2 / (d_j - x), one in each gap between
neighbouring d. Each is found as an offset from its nearest d, so that the differences d_j - x keep
their full relative accuracy. The eigenvectors are those of the nearby problem whose roots are
exactly the ones found (Gu and Eisenstat, 1994): they are orthogonal to working precision however
close the roots lie. Entries of z that are negligible, and neighbours in d that are equal to
rounding, are deflated first (the rules are those of LAPACK's dlaed2, the iteration for a root that
of dlaed4).
"""

import math
from typing import NamedTuple

import numpy as np

from metrack.engine.numerics.kernels import Floats, Ints, copy, dot, fill, inner, reduction, routine

EPS = float(np.finfo(np.float64).eps)
CONVERGED = 1e-9  # steps square the error: after one as small as this, what is left is rounding
MOST_ITERATIONS = 200  # three or four are usual; a bisection may need many


class SecularScratch(NamedTuple):
    """Working memory for problems of up to k poles."""

    poles: Floats  # ascending, scaled
    weights: Floats  # z, of unit length
    roots: Floats
    d: Floats  # poles left after deflation
    w: Floats  # c z^2 of those
    origin: Floats  # of a root: the pole nearest to it
    x: Floats  # its offset from there
    low: Floats  # bracket of x; low = high once x has converged
    high: Floats
    f: Floats
    slope: Floats
    refined: Floats
    gaps: Floats  # (k, k): d_j - root_i
    active: Ints  # which poles are left
    position: Ints  # of an eigenvalue in the order of the result
    turned: Ints  # (k, 2): the coordinates of each plane rotation
    angles: Floats  # (k, 2): its cosine and sine


def make_secular_scratch(k: int) -> SecularScratch:
    """Allocate for problems of up to k poles."""
    vectors, gaps, angles = np.empty((12, k)), np.empty((k, k)), np.empty((k, 2))
    active, position = np.empty((2, k), np.int64)
    turned = np.empty((k, 2), np.int64)
    return SecularScratch._make([*vectors, gaps, active, position, turned, angles])


@routine
def rank_one_eigh(
    d: Floats, z: Floats, c: float, k: int, values: Floats, vectors: Floats, scratch: SecularScratch
) -> None:
    """Decompose diag(d[:k]) + c zz', d descending.

    Writes the eigenvalues, descending, to ``values[:k]`` and their eigenvectors to the rows of
    ``vectors[:k, :k]``.
    """
    poles, weights, roots = scratch.poles, scratch.weights, scratch.roots
    largest = length = 0.0
    for i in range(k):
        largest = max(largest, abs(z[i]))
    if largest > 0.0:
        for i in range(k):
            length += (z[i] / largest) ** 2
        length = largest * math.sqrt(length)
    # Poles ascend and the weight is positive: for c < 0 decompose the negative. All is scaled to at
    # most 1.
    rho = abs(c) * length * length
    scale = max(max(abs(d[0]), abs(d[k - 1])), rho)
    if scale == 0.0:
        scale = length = 1.0
    down = c < 0.0
    for i in range(k):
        source = i if down else k - 1 - i
        poles[i] = (-d[source] if down else d[source]) / scale
        weights[i] = z[source] / length if rho > 0.0 else 0.0
    rho /= scale

    n_active, n_rotations = _deflate(scratch, rho, k)
    copy(roots, poles, k)
    _find_roots(scratch, rho, n_active)
    _sort(scratch, k)
    for i in range(k):
        place = scratch.position[i] if down else k - 1 - scratch.position[i]
        scratch.position[i] = place
        values[place] = (-roots[i] if down else roots[i]) * scale
    _eigenvectors(scratch, n_active, k, down, vectors)
    for i in range(n_rotations - 1, -1, -1):
        _turn_back(scratch, i, k, down, vectors)


@inner
def _deflate(scratch: SecularScratch, rho: float, k: int) -> tuple[int, int]:
    """Split off what the update does not move.

    Returns the numbers of poles left and of plane rotations.
    """
    poles, weights, active = scratch.poles, scratch.weights, scratch.active
    n_active = n_rotations = 0
    tolerance = 8.0 * EPS  # poles and weights are at most 1
    for i in range(k):
        if rho * abs(weights[i]) <= tolerance:
            continue
        if n_active > 0:
            p = active[n_active - 1]
            # |gap cos sin| <= tolerance, the angle being the one that turns p's weight into i's
            product = abs(weights[p] * weights[i])
            square = weights[p] ** 2 + weights[i] ** 2
            if (poles[i] - poles[p]) * product <= tolerance * square:
                cosine, sine = weights[i] / math.sqrt(square), -weights[p] / math.sqrt(square)
                weights[i], weights[p] = math.sqrt(square), 0.0
                low, high = poles[p], poles[i]
                poles[p] = low * cosine**2 + high * sine**2
                poles[i] = low * sine**2 + high * cosine**2
                scratch.turned[n_rotations, 0], scratch.turned[n_rotations, 1] = p, i
                scratch.angles[n_rotations, 0], scratch.angles[n_rotations, 1] = cosine, sine
                n_rotations += 1
                n_active -= 1
        active[n_active] = i
        n_active += 1
    return n_active, n_rotations


@inner
def _find_roots(scratch: SecularScratch, rho: float, k: int) -> None:
    """The roots over the k active poles, and ``gaps``, their differences from the poles.

    All roots iterate side by side: what one waits for, another computes.
    """
    d, w, origin, x = scratch.d, scratch.w, scratch.origin, scratch.x
    for i in range(k):
        d[i] = scratch.poles[scratch.active[i]]
        w[i] = rho * scratch.weights[scratch.active[i]] ** 2
    _first_guesses(scratch, k)
    moving = k if k > 1 else 0
    for _ in range(MOST_ITERATIONS):
        if moving == 0:
            break
        for i in range(k):
            if scratch.low[i] < scratch.high[i]:
                scratch.f[i], scratch.slope[i] = _sums(d, w, origin[i], x[i], k)
        moving = 0
        for i in range(k):
            if scratch.low[i] < scratch.high[i]:
                moving += _improve(scratch, i, k)
    for i in range(k):
        scratch.roots[scratch.active[i]] = origin[i] + x[i]
        gap = scratch.gaps[i]
        for j in range(k):
            gap[j] = (d[j] - origin[i]) - x[i]


@inner
def _first_guesses(scratch: SecularScratch, k: int) -> None:
    """Nearest pole, bracket and start of every root."""
    d, w, origin, x = scratch.d, scratch.w, scratch.origin, scratch.x
    low, high = scratch.low, scratch.high
    total = 0.0
    for i in range(k):
        total += w[i]
        half = 0.5 * (d[i + 1] - d[i]) if i < k - 1 else 0.0
        scratch.f[i], scratch.slope[i] = _sums(d, w, d[i], half, k)
    for i in range(k - 1):
        # Between two poles, the sum over all others is held fixed at its value half-way.
        gap = d[i + 1] - d[i]
        half = 0.5 * gap
        f = 1.0 + scratch.f[i]
        rest = f + (w[i] - w[i + 1]) / half
        if f >= 0.0:
            origin[i], low[i], high[i] = d[i], 0.0, half
            a, b = rest * gap + w[i] + w[i + 1], w[i] * gap
        else:
            origin[i], low[i], high[i] = d[i + 1], -half, 0.0
            a, b = w[i] + w[i + 1] - rest * gap, -w[i + 1] * gap
        x[i] = _inner_root(rest, a, b)
        if not low[i] < x[i] < high[i]:
            x[i] = 0.5 * (low[i] + high[i])
    if k > 0:
        # The last root lies beyond its own weight, and within the sum of all (which was rounded).
        origin[k - 1], x[k - 1] = d[k - 1], w[k - 1]
        low[k - 1], high[k - 1] = w[k - 1], total * (1.0 + 4.0 * EPS)


@reduction
def _sums(d: Floats, w: Floats, origin: float, x: float, k: int) -> tuple[float, float]:
    """Sum of w / (d - origin - x) over k poles, and its derivative."""
    value = slope = 0.0
    for j in range(k):
        inverse = 1.0 / ((d[j] - origin) - x)
        term = w[j] * inverse
        value += term
        slope += term * inverse
    return value, slope


@inner
def _improve(scratch: SecularScratch, i: int, k: int) -> int:
    """One step of root i; returns 1 where another may be needed.

    The step goes to the zero of a rational function with f's two nearest poles that agrees with f
    and f' here, and with f in the weight of the nearer pole.
    """
    d, w, low, high = scratch.d, scratch.w, scratch.low, scratch.high
    x, slope = scratch.x[i], scratch.slope[i]
    f = 1.0 + scratch.f[i]
    # |x f'| is of the size of f's terms: this is their rounding.
    if abs(f) <= EPS * (k + abs(x) * slope):
        low[i] = high[i]
        return 0
    if f < 0.0:
        low[i] = x
    else:
        high[i] = x
    lower = min(i, k - 2)
    first, second = (d[lower] - scratch.origin[i]) - x, (d[lower + 1] - scratch.origin[i]) - x
    a = (first + second) * f - first * second * slope
    b = first * second * f
    if i == k - 1:  # beyond both poles
        own = w[k - 1] / (second * second)
        c = abs(f - first * (slope - own) - second * own)
        discriminant = math.sqrt(abs(a * a - 4.0 * b * c))
        step = (a + discriminant) / (2.0 * c) if a >= 0.0 else 2.0 * b / (a - discriminant)
    else:
        if scratch.origin[i] == d[i]:
            c = f - second * slope + (second - first) * w[i] / (first * first)
        else:
            c = f - first * slope - (second - first) * w[i + 1] / (second * second)
        step = _inner_root(c, a, b)
    if low[i] < x + step < high[i]:
        scratch.x[i] = x + step
        if abs(step) <= CONVERGED * abs(x):
            low[i] = high[i]
            return 0
        return 1
    # Out of the bracket, or lost in infinities.
    middle = 0.5 * (low[i] + high[i])
    if not low[i] < middle < high[i]:
        low[i] = high[i]
        return 0
    scratch.x[i] = middle
    return 1


@inner
def _inner_root(c: float, a: float, b: float) -> float:
    """The root of c x^2 - a x + b between the two poles."""
    discriminant = math.sqrt(abs(a * a - 4.0 * b * c))
    return (a - discriminant) / (2.0 * c) if a <= 0.0 else 2.0 * b / (a + discriminant)


@inner
def _sort(scratch: SecularScratch, k: int) -> None:
    """Rank of each root, ascending."""
    roots, position = scratch.roots, scratch.position
    for i in range(k):
        position[i] = 0
    for i in range(k):
        for j in range(i):
            if roots[j] > roots[i]:
                position[j] += 1
            else:
                position[i] += 1


@inner
def _eigenvectors(
    scratch: SecularScratch, n_active: int, k: int, down: bool, vectors: Floats
) -> None:
    """Eigenvectors of the problem whose roots are the ones found, each at its place."""
    d, gaps, refined, active = scratch.d, scratch.gaps, scratch.refined, scratch.active
    _refine_weights(scratch, n_active)
    if n_active < k:
        for i in range(k):
            fill(vectors[scratch.position[i]], 0.0, k)
            vectors[scratch.position[i], i if down else k - 1 - i] = 1.0
    for i in range(n_active):
        gap, vector = gaps[i], vectors[scratch.position[active[i]]]
        for j in range(n_active):
            d[j] = refined[j] / gap[j]
        inverse = 1.0 / math.sqrt(dot(d, d, n_active))
        if n_active < k:
            for j in range(n_active):
                vector[active[j] if down else k - 1 - active[j]] = d[j] * inverse
        elif down:
            for j in range(k):
                vector[j] = d[j] * inverse
        else:
            for j in range(k):
                vector[k - 1 - j] = d[j] * inverse


@inner
def _refine_weights(scratch: SecularScratch, k: int) -> None:
    """The z for which the roots found are exact (Loewner's formula), up to a common factor."""
    d, refined, between = scratch.d, scratch.refined, scratch.f
    for j in range(k):
        refined[j] = 1.0
    for i in range(k):
        gap = scratch.gaps[i]
        for j in range(k):
            between[j] = d[j] - d[i]
        between[i] = 1.0
        for j in range(k):
            refined[j] *= gap[j] / between[j]
    for j in range(k):
        size = math.sqrt(abs(refined[j]))
        refined[j] = math.copysign(size, scratch.weights[scratch.active[j]])


@inner
def _turn_back(scratch: SecularScratch, rotation: int, k: int, down: bool, vectors: Floats) -> None:
    """Bring the eigenvectors back from the two coordinates that a deflation has turned."""
    p, i = scratch.turned[rotation, 0], scratch.turned[rotation, 1]
    cosine, sine = scratch.angles[rotation, 0], scratch.angles[rotation, 1]
    if not down:
        p, i = k - 1 - p, k - 1 - i
    for row in range(k):
        x, y = vectors[row, p], vectors[row, i]
        vectors[row, p] = cosine * x - sine * y
        vectors[row, i] = sine * x + cosine * y
