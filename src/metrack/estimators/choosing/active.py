"""Which pairs are worth judging: a committee's doubt, looked for among few of all pairs.

Pairs are drawn at random, those in doubt more often than others, and never only the best: learners
that saw nothing but pairs at the threshold would know little of all others. Each pair's chance is
known, and so how many pairs it stands for: what is estimated with these weights is not biased by
the choice.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from metrack.engine.numerics.kernels import Floats, Ints

DOUBT = 0.1  # margins, in thresholds, at which an expert is hardly sure
EXPLORED = 0.1  # share of pairs that are drawn whatever the committee says ...
AFTER_A_CHANGE = 0.4  # ... and how much more at a change, when the committee is wrong ...
SETTLED = 100.0  # ... which fades over so many pairs
CANDIDATES, PER_PAIR = 2048, 16  # at least so many in all, and for each pair that is asked for
COMPARED = 4096  # pairs, to see what has changed
AHEAD = 1.5  # times as much may change with as many answers again
PARTNERS = 2048  # points among which a point's neighbours are looked for
NEAR_BEFORE_LEARNING = 0.1  # of random pairs: what counts as alike while nothing is known


class Expert(NamedTuple):
    """What a member of the committee says: alike where |L (x - z)|^2 is at most mu."""

    components: Floats  # L
    mu: float
    weight: float


class Candidates(NamedTuple):
    """Pairs of rows, and how many pairs of all each stands for, up to a factor."""

    rows: Ints  # (n_candidates, 2)
    stands_for: Floats


class Suggestions(NamedTuple):
    """Pairs that were chosen, and their weights: 1 on average over random pairs."""

    rows: Ints
    weights: Floats


class Change(NamedTuple):
    """How much a metric's judgements have changed.

    Attributes
    ----------
    share : float
        Of all pairs of points that are called alike now, or were then, those of which only one is
        true.
    low, high : float
        Its 95 % interval: pairs were sampled.
    ahead : float
        If the number of answers has doubled meanwhile: what as many answers again will change at
        most, as long as the question stays the same. Right in nine of ten simulated cases.
    """

    share: float
    low: float
    high: float
    ahead: float


def doubt(squares: Sequence[Floats], committee: Sequence[Expert]) -> Floats:
    """How much the vote on each pair is in doubt, from 0 to 1.

    An expert near its threshold is in doubt, and so is a committee whose experts are sure of
    different things. Half of a vote goes by trust, half is one voice each: after a change those
    are right whom nobody trusted.

    Parameters
    ----------
    squares : an array (n_pairs,) for each expert
        Squared distances.
    committee : sequence of Expert
    """
    alike = np.zeros(len(squares[0]))
    for q, expert in zip(squares, committee, strict=True):
        voice = 0.5 * (expert.weight + 1.0 / len(committee))
        alike += voice * expit((1.0 - q / max(expert.mu, 1e-300)) / DOUBT)
    found: Floats = 4.0 * alike * (1.0 - alike)
    return np.clip(found, 0.0, 1.0)


def exploration(since_change: float) -> float:
    """The share of pairs that are drawn whatever the committee says."""
    return float(EXPLORED + AFTER_A_CHANGE * np.exp(-since_change / SETTLED))


def suggest(
    points: Any,
    n_pairs: int,
    components: Floats | None,
    committee: Sequence[Expert],
    explored: float,
    rng: np.random.RandomState,
) -> Suggestions:
    """Draw pairs of points that are worth judging, the best first.

    Parameters
    ----------
    points : array or CSR matrix (n_points, n_features)
    n_pairs : int
    components : array (rank, n_features) or None
        L of the metric in which neighbours are looked for; None: plain distance.
    committee : sequence of Expert
        Empty: nothing is known yet, and near pairs are worth judging.
    explored : float
        Share of pairs that are drawn whatever the committee says.
    rng : RandomState
    """
    wanted = max(CANDIDATES, PER_PAIR * n_pairs)
    found = candidates(points, wanted, components, rng)
    if committee:
        squares = squares_of(points, found.rows, [each.components for each in committee])
    else:
        squares = squares_of(points, found.rows, [components])
        committee = [Expert(np.empty((0, 0)), _nearest(squares[0], found.stands_for), 1.0)]
    score = doubt(squares, committee)
    mean = np.average(score, weights=found.stands_for)
    in_doubt = score / mean if mean > 0.0 else np.ones(len(score))
    # By how much a pair is more likely to be drawn than at random.
    odds = explored + (1.0 - explored) * in_doubt
    chosen = _draw(found, odds, n_pairs, rng)
    chosen = chosen[np.argsort(-score[chosen], kind="stable")]
    return Suggestions(found.rows[chosen], 1.0 / odds[chosen])


def candidates(
    points: Any, wanted: int, components: Floats | None, rng: np.random.RandomState
) -> Candidates:
    """About so many pairs of points, half of them near ones.

    Some points, the anchors, are compared with some others, all drawn at random: any two points are
    such a pair with the same chance. Of an anchor's pairs the nearest are kept, and as many of the
    others, which stand for all the rest. So the work does not grow with the number of points.
    """
    n_points = points.shape[0]
    if n_points * (n_points - 1) // 2 <= wanted:
        rows = np.stack(np.triu_indices(n_points, 1), axis=1)
        return Candidates(rng.permutation(rows), np.ones(len(rows)))
    n_anchors = min(n_points // 2, wanted // 4)
    n_partners = min(n_points - n_anchors, PARTNERS)
    drawn = rng.permutation(n_points)[: n_anchors + n_partners]
    embedded = _embedded(points[drawn], components)
    x, z = embedded[:n_anchors], embedded[n_anchors:]
    squares = np.einsum("ij,ij->i", z, z) - 2.0 * (x @ z.T)  # up to |x|^2, the same in a row
    n_near = min(-(-wanted // (2 * n_anchors)), n_partners // 2)
    near = np.argpartition(squares, n_near - 1, axis=1)[:, :n_near]
    lots = rng.random_sample(squares.shape)
    np.put_along_axis(lots, near, np.inf, axis=1)
    others = np.argpartition(lots, n_near - 1, axis=1)[:, :n_near]
    partners = np.concatenate([near, others], axis=1)
    rows = np.stack([np.repeat(np.arange(n_anchors), 2 * n_near), n_anchors + partners.ravel()], 1)
    stands_for = np.repeat([1.0, (n_partners - n_near) / n_near], n_near)
    return Candidates(drawn[rows], np.tile(stands_for, n_anchors))


def change(points: Any, now: Expert, then: Expert, rng: np.random.RandomState) -> Change:
    """How much judgements of pairs have changed; see `Change`.

    Pairs that nobody calls alike do not count: they would be nearly all, whatever was learned.
    """
    found = candidates(points, COMPARED, now.components, rng)
    squares = squares_of(points, found.rows, [now.components, then.components])
    alike, was = squares[0] <= now.mu, squares[1] <= then.mu
    of_either = found.stands_for * (alike | was)
    if (total := of_either.sum()) == 0.0:
        return Change(0.0, 0.0, 1.0, 1.0)
    share = float(np.sum(of_either * (alike != was)) / total)
    # Of a ratio of two sums; and no surer than of one pair more that differs.
    error = np.sqrt(np.sum((of_either * ((alike != was) - share)) ** 2)) / total
    width = 1.96 * float(error) + float(found.stands_for.mean() / total)
    high = min(share + width, 1.0)
    return Change(share, max(share - width, 0.0), high, min(AHEAD * high, 1.0))


def _nearest(squares: Floats, stands_for: Floats) -> float:
    """A threshold that calls few of all pairs alike."""
    order = np.argsort(squares)
    share = np.cumsum(stands_for[order]) / stands_for.sum()
    return float(squares[order[np.searchsorted(share, NEAR_BEFORE_LEARNING)]])


def _embedded(points: Floats | sp.csr_array, components: Floats | None) -> Floats:
    if components is not None:
        return np.asarray(points @ components.T)
    return points.toarray() if isinstance(points, sp.csr_array) else np.asarray(points)


def squares_of(points: Any, rows: Ints, embeddings: Sequence[Floats | None]) -> list[Floats]:
    """Squared distances of pairs of rows, in each embedding: every point is embedded once."""
    used, where = np.unique(rows, return_inverse=True)
    where = where.reshape(rows.shape)
    some, found = points[used], []
    for components in embeddings:
        embedded = _embedded(some, components)
        gaps = embedded[where[:, 0]] - embedded[where[:, 1]]
        found.append(np.einsum("ij,ij->i", gaps, gaps))
    return found


def _draw(found: Candidates, odds: Floats, n_pairs: int, rng: np.random.RandomState) -> Ints:
    """Which candidates are drawn, by their odds and without replacement (Gumbel's trick).

    A point is asked about once, as long as there are others: that keeps a batch diverse.
    """
    keys = np.log(found.stands_for * odds) + rng.gumbel(size=len(odds))
    order = np.argsort(-keys, kind="stable")
    fresh, repeated = [], []
    asked: set[int] = set()
    for i, pair in zip(order.tolist(), found.rows[order].tolist(), strict=True):
        if asked.isdisjoint(pair):
            fresh.append(i)
            asked.update(pair)
        else:
            repeated.append(i)
        if len(fresh) == n_pairs:
            break
    return np.array((fresh + repeated)[:n_pairs])
